import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { isLike } from "../core/wildcard.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({
  metadata: z
    .record(z.string(), z.string())
    .default({})
    .describe(
      'Keys that every Machine must have, with their allowed values. `*` stands for any text: `{ "team": "*" }` allows any team.',
    ),
});

/** Every Machine names its owner. */
export const requiredMetadata: ResourceValidationPolicy = {
  name: "required-metadata",
  description: "Machines have the required metadata.",
  severity: "low",
  remediationSteps: "Add the key to `config.metadata`.",
  configSchema: settings.schema,
  validateResource: validateMachine(({ config }, args, report) => {
    args.each(settings.of(args).metadata, (pattern, key) => {
      const { metadata = {} } = config;
      const value = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
      const allowed = pattern === "*" ? "Any text will do." : `Allowed is ${JSON.stringify(pattern)}.`;
      if (value === undefined) report(`config.metadata.${key} is missing. ${allowed}`);
      else if (!isLike(value, [pattern]))
        report(`config.metadata.${key} is not what is allowed: ${JSON.stringify(pattern)}.`);
    });
  }),
};
