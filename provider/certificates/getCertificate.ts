// A hostname of an App and its certificates (docs/interface.md#certificates).
import { z } from "zod";
import { defineFunction } from "../core/function.ts";
import { certificateDetails, ofHostname, toCertificateDetails } from "./details.ts";

export const getCertificate = defineFunction({
  name: "getCertificate",
  summary: "Looks up a hostname of an App and its certificates.",
  inputs: z.object(ofHostname),
  outputs: certificateDetails,

  async call({ inputs: { app, hostname }, api }) {
    return toCertificateDetails(app, await api.certificates.get({ appName: app, hostname }));
  },
});
