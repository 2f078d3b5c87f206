// The hostnames of an App (docs/interface.md#certificates).
import { z } from "zod";
import { certificates, certificateSummary } from "../../api/certificates.ts";
import { named, required } from "../../api/schema.ts";
import { everyCertificate } from "../client/pages.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, inApp } from "../shared/fields.ts";

const summary = camelObject(certificateSummary).extend({
  id: required(z.string(), "Id of the hostname's certificates, `app/hostname`, as `pulumi import` takes it."),
});

export const getCertificates = defineFunction({
  name: "getCertificates",
  summary: "Lists the hostnames of an App that have certificates or ask for them.",
  inputs: z.object({ ...inApp, ...camelObject(certificates.list.query).pick({ filter: true }).shape }),
  outputs: z.object({
    certificates: required(z.array(named("CertificateSummary", summary)), "The hostnames."),
  }),

  async call({ inputs: { app, filter }, api }) {
    const found = await everyCertificate(api, { appName: app, filter });
    return { certificates: found.map((live) => ({ ...live, id: `${app}/${live.hostname}` })) };
  },
});
