// Settings of a policy: declared once, for its JSON schema, its defaults, its types and its page in the docs.
import type { PolicyConfigSchema } from "@pulumi/policy";
import { z } from "zod";
import { settingNames, unknownName } from "./unknownName.ts";

/** The settings of a policy. */
export interface Settings<T> {
  /** Their JSON schema: `configSchema` of the policy. */
  readonly schema: PolicyConfigSchema;
  /** The settings, with defaults filled in. @throws if a setting is unknown to the policy */
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
      const known = settingNames(shape);
      for (const name of Object.keys(given))
        if (!known.includes(name))
          throw new TypeError(`the configuration of the policy has ${unknownName(name, known)}`);
      return type.parse(given);
    },
  };
}
