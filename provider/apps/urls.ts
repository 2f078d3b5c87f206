// The addresses of an App (docs/interface.md#apps).
import { z } from "zod";
import { optional } from "../../api/schema.ts";

/** Where an App can be opened. */
export const appUrls = {
  httpUrl: optional(
    z.string(),
    "URL of the App's HTTP services on the service's computer. Only a service that runs Machines on its own computer sets it.",
  ),
  httpsUrl: optional(z.string(), "The same URL for HTTPS services."),
};
