// Uploaded certificates (docs/interface.md#uploaded-certificates).
import { z } from "zod";
import { optional, required } from "../../api/schema.ts";
import {
  certificatesIn,
  chainProblem,
  datesProblem,
  isFor,
  namesOf,
  privateKeyIn,
} from "../../api/uploadedCertificate.ts";
import type { Api } from "../client/api.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { isAmbiguous } from "../client/errors.ts";
import { pathId } from "../core/ids.ts";
import { defineResource, type Problem } from "../core/resource.ts";
import { secretInput, valueToSend } from "../core/writeOnly.ts";
import { entryOf, facts, factsOf, holds, ofHostname, ofKind, removeKind, warnIfTaken } from "./hostnameCertificates.ts";
import type { Detail } from "./hostnameCertificates.ts";
import { listHostnames } from "./hostnameCertificates.ts";

const inputs = z.object({
  ...ofHostname,
  fullchain: required(
    z.string(),
    "PEM of the certificate, followed by the certificates that lead to its root. Changing it uploads it in place of the old one.",
  ),
  ...secretInput(
    "privateKey",
    z.string(),
    "PEM of the certificate's private key, without a passphrase. Changing it uploads both in place of the old ones.",
  ),
});

const outputs = z.object({
  ...facts,
  issuer: optional(z.string(), "Who issued it."),
  uploadedAt: required(z.string(), "RFC 3339 time of the upload."),
});

type Inputs = z.output<typeof inputs>;
const byUpload = ["fullchain", "privateKey", "privateKeyVersion"] as const;

const toLive = (app: string, hostname: string, detail: Detail) => ({
  app,
  hostname,
  ...factsOf(detail, "custom"),
  issuer: entryOf(detail, "custom")?.issuer ?? undefined,
  uploadedAt: entryOf(detail, "custom")?.createdAt ?? "",
});

export const customCertificate = defineResource({
  name: "CustomCertificate",
  summary: "A certificate of a hostname that you bring yourself.",
  description:
    "It is used once the DNS has the TXT record of `dnsRecords`, which proves who owns the hostname. A CertificateValidation waits for that. If the hostname also has an AcmeCertificate, the custom one is used. The hostname is removed with its last certificate. A hostname belongs to one App at a time. If another App of the organization has it, remove it there first. If another organization has it, that TXT record transfers it. The service never returns the private key: after an import, the next up uploads the program's chain and key.",
  inputs,
  outputs,
  id: pathId("app", "hostname"),
  list: {
    objects: async (pass, appName) =>
      (await listHostnames(pass, appName)).filter(({ custom }) => custom).map(({ object }) => object),
    shownBy: "certificates.get",
    deletedBy: "certificates.deleteCustom",
  },
  replaceOn: ["app", "hostname"],
  // A hostname belongs to one App of the service, so it leaves one before it comes to another.
  uniqueBy: ["hostname"],
  dependsOn: { status: byUpload, expiresAt: byUpload, issuer: byUpload, uploadedAt: byUpload, configured: byUpload },
  validate: uploadProblems,
  // Only a new upload is checked: a certificate that has expired since must not stop every other change.
  previewChecks: [
    {
      needs: ["fullchain"],
      ask: ({ fullchain }, api) => Promise.resolve(datesProblem(certificatesIn(fullchain) ?? [], api.clock.now())),
    },
  ],
  observed: ["uploadedAt", "expiresAt", "issuer"],

  async create({ inputs: { app, ...files }, owner, ...call }) {
    const { api } = call;
    const { hostname } = files;
    const send = () => api.certificates.createCustom({ appName: app, body: bodyOf(files) });
    const created = await createExactlyOnce(call, {
      ...ofKind(api, "CustomCertificate", { appName: app, hostname }),
      createdAt: (found) => entryOf(found, "custom")?.createdAt,
      owner,
      send,
      // The interrupted run may have uploaded another certificate.
      adopt: send,
    });
    warnIfTaken(call.warn, "CustomCertificate", app, created);
    return toLive(app, hostname, created);
  },

  async read({ id, state, api, warn }) {
    const live = await api.certificates.get({ appName: id.app, hostname: id.hostname });
    if (!holds(live, "custom")) return undefined;
    warnIfTaken(warn, "CustomCertificate", id.app, live);
    const found = toLive(id.app, id.hostname, live);
    const isAnother =
      state !== undefined &&
      (["expiresAt", "issuer", "uploadedAt"] as const).some(
        (name) => state[name] !== undefined && found[name] !== undefined && state[name] !== found[name],
      );
    return { ...found, fullchain: isAnother ? null : undefined };
  },

  async update({ id: { app, hostname }, inputs, api }) {
    return toLive(app, hostname, await upload(api, app, bodyOf({ ...inputs, hostname })));
  },

  delete: ({ id, api }) => removeKind(api, { appName: id.app, hostname: id.hostname }, "custom"),
});

const bodyOf = ({ hostname, fullchain, privateKey, privateKeyWo }: Omit<Inputs, "app">) => ({
  ...{ hostname, fullchain, privateKey: valueToSend("privateKey", privateKeyWo, privateKey) },
});

/** Uploads; repeats after a lost answer, because the same upload only replaces itself. */
async function upload(api: Api, appName: string, body: ReturnType<typeof bodyOf>) {
  try {
    return await api.certificates.createCustom({ appName, body });
  } catch (error) {
    if (!isAmbiguous(error)) throw error;
    return api.certificates.createCustom({ appName, body });
  }
}

/** Problems of an upload that do not depend on the time. No message quotes the private key. */
function uploadProblems({ fullchain, hostname, ...keys }: Partial<Inputs>): readonly Problem[] {
  const name = keys.privateKeyWo === undefined ? "privateKey" : "privateKeyWo";
  const privateKey = keys[name];
  const problem = (path: keyof Inputs, message: string, about: readonly string[] = [path]) => [
    { path: [path], message, about },
  ];
  const key = privateKey === undefined ? undefined : privateKeyIn(privateKey);
  if (privateKey !== undefined && !key)
    return problem(name, "is not a private key in PEM, or is encrypted; it must have no passphrase");
  if (fullchain === undefined) return [];
  const chain = certificatesIn(fullchain);
  const [own] = chain ?? [];
  if (!chain || !own) return problem("fullchain", "is not a chain of certificates in PEM");
  const matching = key ? chain.findIndex((certificate) => certificate.checkPrivateKey(key)) : 0;
  if (matching > 0)
    return problem("fullchain", `begins with another certificate; that of the private key is number ${matching + 1}`, [
      "fullchain",
      name,
    ]);
  if (matching < 0) return problem(name, "does not match the certificate", ["fullchain", name]);
  const broken = chainProblem(chain);
  if (broken !== undefined) return problem("fullchain", broken);
  if (hostname !== undefined && !isFor(own, hostname))
    return problem("fullchain", `is for ${namesOf(own).join(", ") || "no hostname"}, not for ${hostname}`, [
      "fullchain",
      "hostname",
    ]);
  return [];
}
