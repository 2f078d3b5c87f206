import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { isLike } from "../core/wildcard.ts";
import { validateMachine } from "../resources.ts";

const settings = defineSettings({
  registries: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Registries images may come from, with a path where only a part of one is meant: `registry.example.com`, `docker.io/acme`; `*` stands for any text. Empty: any.",
    ),
});

/** An image with its registry written out: `nginx` is `docker.io/library/nginx`, as container runtimes read it. */
function written(image: string): string {
  const [first = "", ...rest] = image.split("/");
  if (rest.length === 0) return `docker.io/library/${image}`;
  return /[.:]/.test(first) || first === "localhost" ? image : `docker.io/${image}`;
}

/** Images come from registries that the team trusts. */
export const allowedRegistries: ResourceValidationPolicy = {
  name: "allowed-registries",
  description: "Images come from registries that are allowed.",
  severity: "high",
  remediationSteps: "Copy the image to a registry that is allowed, or add its registry to `registries`.",
  configSchema: settings.schema,
  validateResource: validateMachine((machine, args, report) => {
    const { registries } = settings.of(args);
    if (registries.length === 0) return;
    const allowed = registries.flatMap((registry) => [`${registry}/*`, `${registry}:*`, `${registry}@*`]);
    const check = (image: string | undefined, path: string): void => {
      if (image !== undefined && !isLike(written(image), [...registries, ...allowed]))
        report(`${path} comes from a registry that is not allowed. Allowed are ${registries.join(", ")}.`);
    };
    args.whenKnown(() => check(machine.config.image, "config.image"));
    args.each(machine.config.containers, ({ image }, i) => check(image, `config.containers[${i}].image`));
  }),
};
