// Checks the DNS of a hostname, and tries its validation again (docs/interface.md#certificate-checks).
import { z } from "zod";
import { named, optional } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { withoutNull } from "../shared/fields.ts";
import { certificateDetails, dnsRecordDetails, ofHostname, toCertificateDetails } from "./details.ts";

export const checkCertificate = defineFunction({
  name: "checkCertificate",
  summary:
    "Checks the DNS of a hostname and validates its certificates again. In a preview it does nothing: its answer is unknown, or the last known one if the engine takes no unknown answer.",
  inputs: z.object(ofHostname),
  outputs: certificateDetails.extend({
    dnsRecords: named("DnsRecords", optional(dnsRecordDetails, "Records that the DNS has now.")),
  }),

  async call({ inputs: { app, hostname }, api }) {
    const { dnsRecords, ...live } = await api.certificates.check({ appName: app, hostname });
    return { ...toCertificateDetails(app, live), dnsRecords: dnsRecords && withoutNull(dnsRecords) };
  },

  async look({ inputs: { app, hostname }, api }) {
    return toCertificateDetails(app, await api.certificates.get({ appName: app, hostname }));
  },
});
