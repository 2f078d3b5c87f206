// Triggers: values without a meaning to the service, whose change causes an action.
import { z } from "zod";
import { optional } from "../../api/schema.ts";

/** The schema of triggers. `then` describes the action. */
export const triggers = (then: string) =>
  optional(
    z.record(z.string(), z.string()),
    `Values by name, any the program likes, for example a release or a date. When one of them changes, or there is one more or one less, ${then}.`,
    { sensitive: true },
  );
