// What is configured of a policy: declared once, for its JSON schema, its defaults, its types and its page in the docs.
import type { PolicyConfigSchema } from "@pulumi/policy";
import { z } from "zod";
import { nearest } from "../../provider/core/nearest.ts";

/** The settings of a policy. */
export interface Settings<T> {
  /** Their JSON schema: `configSchema` of the policy. */
  readonly schema: PolicyConfigSchema;
  /** What is set, defaults filled in. @throws when something is set that the policy does not know */
  readonly of: (args: { readonly getConfig: () => object }) => T;
}

/** Declares settings; each has a description, and a default or is optional. */
export function defineSettings<Shape extends z.ZodRawShape>(shape: Shape): Settings<z.infer<z.ZodObject<Shape>>> {
  const type = z.object(shape);
  const { properties = {} } = z.toJSONSchema(type, { io: "input" });
  return {
    schema: { properties: properties as PolicyConfigSchema["properties"] },
    of: (args) => {
      const { exceptions: _, enforcementLevel: __, ...given } = args.getConfig() as Record<string, unknown>;
      // The engine checks values against the schema, and lets names pass that are not in it.
      for (const name of Object.keys(given)) {
        if (Object.hasOwn(shape, name)) continue;
        const known = [...Object.keys(shape), "exceptions", "enforcementLevel"];
        const meant = nearest(name, known);
        throw new TypeError(
          `the configuration of the policy has ${JSON.stringify(name)}, which it does not know; ` +
            (meant === undefined ? `it knows ${known.join(", ")}` : `did you mean ${JSON.stringify(meant)}?`),
        );
      }
      return type.parse(given);
    },
  };
}
