// Certificates that the platform issues with ACME (docs/interface.md#certificates).
import { z } from "zod";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { facts, factsOf, holds, ofHostname, ofKind, removeKind, type Detail } from "./hostnameCertificates.ts";
import { listHostnames } from "./hostnameCertificates.ts";

const inputs = z.object(ofHostname);
const outputs = z.object(facts);

const toLive = (app: string, hostname: string, detail: Detail) => ({ app, hostname, ...factsOf(detail, "acme") });

export const acmeCertificate = defineResource({
  name: "AcmeCertificate",
  summary: "A certificate of a hostname that the platform has issued and renews.",
  description:
    "It is issued once the DNS is as `dnsRecords` says; creating it does not wait for that, a CertificateValidation does. " +
    "A hostname may have a CustomCertificate besides, which then wins. The hostname is removed with its last certificate.",
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
  uniqueBy: ["app", "hostname"],

  async create({ inputs: { app, hostname }, owner, ...call }) {
    const created = await createExactlyOnce(call, {
      ...ofKind(call.api, "AcmeCertificate", { appName: app, hostname }),
      owner,
      send: () => call.api.certificates.createAcme({ appName: app, body: { hostname } }),
    });
    return toLive(app, hostname, created);
  },

  async read({ id, api }) {
    const live = await api.certificates.get({ appName: id.app, hostname: id.hostname });
    return holds(live, "acme") ? toLive(id.app, id.hostname, live) : undefined;
  },

  // Every input replaces: there is nothing to send.
  async update({ id, api }) {
    return toLive(id.app, id.hostname, await api.certificates.get({ appName: id.app, hostname: id.hostname }));
  },

  delete: ({ id, api }) => removeKind(api, { appName: id.app, hostname: id.hostname }, "acme"),
});
