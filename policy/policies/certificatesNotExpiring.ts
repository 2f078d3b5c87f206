import { X509Certificate } from "node:crypto";
import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { validateCustomCertificate } from "../validators.ts";

const settings = defineSettings({
  days: z.number().min(0).default(14).describe("Days for which a certificate must still be valid."),
});

/**
 * Uploaded certificates are replaced in time.
 * @param now the time for the comparison
 */
export const certificatesNotExpiring = (now: () => Date): ResourceValidationPolicy => ({
  name: "certificates-not-expiring",
  description: "Certificates of your own do not expire soon, because nothing renews them for you.",
  severity: "high",
  remediationSteps:
    "Get a new certificate and give it to the CustomCertificate, or use an AcmeCertificate, which is renewed by itself.",
  configSchema: settings.schema,
  validateResource: validateCustomCertificate(({ fullchain }, args, report) => {
    const { days } = settings.of(args);
    let ends: Date;
    try {
      ends = new X509Certificate(fullchain).validToDate;
    } catch {
      report("fullchain holds no certificate that can be read: its first block must be a certificate in PEM.");
      return;
    }
    const daysLeft = Math.floor((ends.getTime() - now().getTime()) / 86_400_000);
    if (daysLeft < 0) report(`fullchain has expired on ${ends.toISOString().slice(0, 10)}. Upload a new certificate.`);
    else if (daysLeft < days)
      report(
        `fullchain expires on ${ends.toISOString().slice(0, 10)}, in ${daysLeft} ${daysLeft === 1 ? "day" : "days"}; at least ${days} are wanted. Upload a new certificate.`,
      );
  }),
});
