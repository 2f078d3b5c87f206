import type { StackValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { isReferredTo } from "../core/references.ts";
import { validateStack } from "../core/validate.ts";

const settings = defineSettings({});

/** A deploy fails if its hostnames are not reachable. */
export const certificatesValidated: StackValidationPolicy = {
  name: "certificates-validated",
  description: "The program waits until every issued certificate is valid.",
  severity: "medium",
  remediationSteps:
    "Add a CertificateValidation of the certificate's hostname: the deploy fails if it is never issued.",
  configSchema: settings.schema,
  validateStack: validateStack((args, report) => {
    settings.of(args);
    const validations = args.all("CertificateValidation");
    args.each(args.all("AcmeCertificate"), (certificate) => {
      if (!isReferredTo(certificate, "hostname", validations))
        report("Nothing waits until it is valid. Add a CertificateValidation with its hostname.", certificate.urn);
    });
  }),
};
