// Triggers: values without a meaning to the service, whose change causes an action.
import { z } from "zod";
import { optional } from "../../api/schema.ts";

/** The schema of triggers. `then` describes the action. */
export const triggers = (then: string) =>
  optional(
    z.record(z.string(), z.string()),
    `Any values by name, for example a release or a date. When a value is added, changed or removed, ${then}.`,
    { sensitive: true },
  );
