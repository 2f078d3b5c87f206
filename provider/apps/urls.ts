// The addresses of an App (docs/interface.md#apps).
import { z } from "zod";
import { optional } from "../../api/schema.ts";

/** Where an App can be opened. */
export const appUrls = {
  httpUrl: optional(
    z.string(),
    "Where the computer of the service opens the App's HTTP services. Only of a service whose Machines run on its computer.",
  ),
  httpsUrl: optional(z.string(), "The same for HTTPS services."),
};
