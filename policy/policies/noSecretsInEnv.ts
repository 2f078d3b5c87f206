import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { secretIn } from "../core/secretText.ts";
import { defineSettings } from "../core/settings.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({
  allow: z.array(z.string().min(1)).default([]).describe("Names of variables that may hold anything."),
  names: z
    .array(z.string().min(1))
    .default([])
    .describe("More names of variables that hold secrets; `*` stands for any text, and case does not matter."),
  entropy: z
    .number()
    .min(1)
    .max(8)
    .default(4.2)
    .describe(
      "Bits per character from which a long text counts as random. A lower number finds more secrets, and more texts that are none.",
    ),
});

/** Secrets belong in App secrets, because everyone who may read a Machine can read its environment. */
export const noSecretsInEnv: ResourceValidationPolicy = {
  name: "no-secrets-in-env",
  description:
    "Environment variables must not hold secrets: anyone who can read the Machine sees them, in every version.",
  severity: "critical",
  remediationSteps:
    "Put the value into AppSecrets or Secret under the same name: the Machine gets it as a variable of its environment, and it cannot be read back. A value that is not a secret goes into `allow`.",
  configSchema: settings.schema,
  validateResource: validateMachine(({ config }, args, report) => {
    const { allow, names, entropy } = settings.of(args);
    const check = (env: { readonly [key: string]: string } | undefined, path: string): void =>
      args.each(env, (value, name) => {
        if (allow.includes(name)) return;
        // Neither its value nor its length is ever reported.
        const why = secretIn(name, value, { names, entropy });
        if (why) report(`${path}.${name} looks like a secret, by ${why}. Put it into AppSecrets under the same name.`);
      });
    args.whenKnown(() => check(config.env, "config.env"));
    args.whenKnown(() => args.each(config.processes, ({ env }, i) => check(env, `config.processes[${i}].env`)));
    args.whenKnown(() => args.each(config.containers, ({ env }, i) => check(env, `config.containers[${i}].env`)));
  }),
};
