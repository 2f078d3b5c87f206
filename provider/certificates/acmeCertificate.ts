// Certificates that the platform issues with ACME (docs/interface.md#certificates).
import { z } from "zod";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { facts, factsOf, holds, ofHostname, ofKind, removeKind, warnIfTaken } from "./hostnameCertificates.ts";
import type { Detail } from "./hostnameCertificates.ts";
import { listHostnames } from "./hostnameCertificates.ts";

const inputs = z.object(ofHostname);
const outputs = z.object(facts);

const toLive = (app: string, hostname: string, detail: Detail) => ({ app, hostname, ...factsOf(detail, "acme") });

export const acmeCertificate = defineResource({
  name: "AcmeCertificate",
  summary: "A certificate of a hostname that the platform has issued and renews.",
  description:
    "It is issued once the DNS has the records of `dnsRecords`. Creating it does not wait for that; a CertificateValidation does. If the hostname also has a CustomCertificate, that one is used. The hostname is removed with its last certificate. A hostname belongs to one App at a time. If another App of the organization has it, remove it there first. If another organization has it, the TXT record of `dnsRecords` transfers it.",
  inputs,
  outputs,
  id: pathId("app", "hostname"),
  list: {
    objects: async (pass, appName) =>
      (await listHostnames(pass, appName)).filter(({ acme }) => acme).map(({ object }) => object),
    shownBy: "certificates.get",
    deletedBy: "certificates.deleteAcme",
  },
  replaceOn: ["app", "hostname"],
  // A hostname belongs to one App of the service, so it leaves one before it comes to another.
  uniqueBy: ["hostname"],

  async create({ inputs: { app, hostname }, owner, ...call }) {
    const created = await createExactlyOnce(call, {
      ...ofKind(call.api, "AcmeCertificate", { appName: app, hostname }),
      owner,
      send: () => call.api.certificates.createAcme({ appName: app, body: { hostname } }),
    });
    warnIfTaken(call.warn, "AcmeCertificate", app, created);
    return toLive(app, hostname, created);
  },

  async read({ id, api, warn }) {
    const live = await api.certificates.get({ appName: id.app, hostname: id.hostname });
    if (!holds(live, "acme")) return undefined;
    warnIfTaken(warn, "AcmeCertificate", id.app, live);
    return toLive(id.app, id.hostname, live);
  },

  // Every input replaces: there is nothing to send.
  async update({ id, api }) {
    return toLive(id.app, id.hostname, await api.certificates.get({ appName: id.app, hostname: id.hostname }));
  },

  delete: ({ id, api }) => removeKind(api, { appName: id.app, hostname: id.hostname }, "acme"),
});
