// A hostname and its certificates in the answers of functions (docs/interface.md#certificates,
// docs/interface.md#certificate-checks).
import { z } from "zod";
import { certificateDetail, dnsRecords } from "../../api/certificates.ts";
import { named, optional, required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { camelObject, inApp, withoutNull } from "../shared/fields.ts";

const wire = camelObject(certificateDetail);

/** The hostname that a function reads. */
export const ofHostname = {
  ...inApp,
  hostname: required(z.string().min(1), "The hostname, or the `id` of a certificate.", { format: "reference" }),
};

/** A hostname and its certificates in the answers of functions. */
export const certificateDetails = wire.extend({
  id: required(z.string(), "Id of the hostname's certificates, `app/hostname`, as `pulumi import` takes it."),
  certificates: named("CertificateEntry", wire.shape.certificates),
  dnsRequirements: named("DnsRequirements", wire.shape.dnsRequirements),
  rateLimitedUntil: optional(z.string(), "RFC 3339 time at which issuing goes on, if it is held up."),
  validation: named("CertificateChallenges", wire.shape.validation),
  validationErrors: named("CertificateValidationError", wire.shape.validationErrors),
});

/** The DNS records in the answers of functions. */
export const dnsRecordDetails = camelObject(dnsRecords).extend({
  acmeChallengeCname: optional(z.string(), "Target of the challenge record, if there is one."),
  ownershipTxt: optional(z.string(), "Value of the ownership record, if there is one."),
  soa: optional(z.string(), "Name server in charge, if there is one."),
});

/** The outputs of functions about a hostname. */
export const toCertificateDetails = (app: string, live: AnswerOf<"certificates", "get">) => ({
  ...withoutNull(live),
  id: `${app}/${live.hostname}`,
  certificates: live.certificates?.map(withoutNull),
  validationErrors: live.validationErrors?.map(withoutNull),
});
