// Settings of a policy: declared once, for its JSON schema, its defaults, its types and its docs page.
import type { PolicyConfigSchema } from "@pulumi/policy";
import { z } from "zod";
import { validated } from "../../api/validated.ts";
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
      // The engine checks values against the schema, but accepts unknown names.
      const known = settingNames(shape);
      for (const name of Object.keys(given))
        if (!known.includes(name))
          throw new TypeError(`the configuration of the policy has ${unknownName(name, known)}`);
      const { data, error } = validated(type, given);
      const [issue] = error?.issues ?? [];
      if (issue) throw new TypeError(`the configuration of the policy: ${issue.path.join(".")} ${issue.message}`);
      return data as z.infer<typeof type>;
    },
  };
}
