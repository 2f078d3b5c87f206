// The functions about hostnames and their certificates.
import { z } from "zod";
import { certificateDetail, certificates, certificateSummary, dnsRecords } from "../../api/certificates.ts";
import { named, optional, required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { everyCertificate } from "../client/pages.ts";
import { defineFunction, listFunction } from "../core/function.ts";
import { camelObject, inApp, withoutNull } from "../shared/fields.ts";

// docs/interface.md#certificates
const wire = camelObject(certificateDetail);

const ofHostname = {
  ...inApp,
  hostname: required(z.string().min(1), "The hostname, or the `id` of a certificate.", { format: "reference" }),
};

const id = required(z.string(), "Id of the hostname's certificates, `app/hostname`, as `pulumi import` takes it.");

const certificateDetails = wire.extend({
  id,
  certificates: named("CertificateEntry", wire.shape.certificates),
  dnsRequirements: named("DnsRequirements", wire.shape.dnsRequirements),
  rateLimitedUntil: optional(
    z.string(),
    "RFC 3339 time from which the service tries again to issue, if the certificate authority limits requests.",
  ),
  validation: named("CertificateChallenges", wire.shape.validation),
  validationErrors: named("CertificateValidationError", wire.shape.validationErrors),
});

const toCertificateDetails = (app: string, live: AnswerOf<"certificates", "get">) => ({
  ...withoutNull(live),
  id: `${app}/${live.hostname}`,
  certificates: live.certificates?.map(withoutNull),
  validationErrors: live.validationErrors?.map(withoutNull),
});

export const getCertificate = defineFunction({
  name: "getCertificate",
  summary: "Looks up a hostname of an App and its certificates.",
  inputs: z.object(ofHostname),
  outputs: certificateDetails,
  call: async ({ inputs: { app, hostname }, api }) =>
    toCertificateDetails(app, await api.certificates.get({ appName: app, hostname })),
});

export const getCertificates = listFunction({
  name: "getCertificates",
  summary: "Lists the hostnames of an App that have or request certificates.",
  inputs: { ...inApp, ...camelObject(certificates.list.query).pick({ filter: true }).shape },
  items: [
    "certificates",
    "The hostnames.",
    named("CertificateSummary", camelObject(certificateSummary).extend({ id })),
  ],
  list: async ({ app, filter }, api) =>
    (await everyCertificate(api, { appName: app, filter })).map((live) => ({ ...live, id: `${app}/${live.hostname}` })),
});

// docs/interface.md#certificate-checks
const dnsRecordDetails = camelObject(dnsRecords).extend({
  acmeChallengeCname: optional(z.string(), "Target of the challenge record, if there is one."),
  ownershipTxt: optional(z.string(), "Value of the ownership record, if there is one."),
  soa: optional(z.string(), "Authoritative name server, if there is one."),
});

export const checkCertificate = defineFunction({
  name: "checkCertificate",
  summary:
    "Checks the DNS of a hostname and validates its certificates again. In a preview it does nothing: its answer is unknown, or the last known one if the engine accepts no unknown answer.",
  inputs: z.object(ofHostname),
  outputs: certificateDetails.extend({
    dnsRecords: named("DnsRecords", optional(dnsRecordDetails, "Records that the DNS has now.")),
  }),

  async call({ inputs: { app, hostname }, api }) {
    const { dnsRecords: found, ...live } = await api.certificates.check({ appName: app, hostname });
    return { ...toCertificateDetails(app, live), dnsRecords: found && withoutNull(found) };
  },

  look: async ({ inputs: { app, hostname }, api }) =>
    toCertificateDetails(app, await api.certificates.get({ appName: app, hostname })),
});
