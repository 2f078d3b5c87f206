import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { eachImage } from "../core/machine.ts";
import { defineSettings } from "../core/settings.ts";
import { isLike } from "../core/wildcard.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({
  registries: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Registries that images may come from, with a path to allow only a part of one: `registry.example.com`, `docker.io/acme`. `*` stands for any text. An empty list allows any.",
    ),
});

/** Host and path of `registry.example.com/shop`; the Docker Hub has one name. */
function parted(text: string): readonly [host: string, path: string] {
  const at = text.indexOf("/");
  const host = at < 0 ? text : text.slice(0, at);
  return [/^(?:index|registry-1)\.docker\.io$/.test(host) ? "docker.io" : host, at < 0 ? "" : text.slice(at + 1)];
}

/** Registry and path of an image in the way of container runtimes: `nginx` is `docker.io/library/nginx`. */
function registryOf(image: string): readonly [host: string, path: string] {
  const [first, rest] = parted(image);
  const isHost = rest !== "" && (/[.:]/.test(first) || first === "localhost");
  const [host, path] = isHost ? [first, rest] : ["docker.io", image];
  return [host, host === "docker.io" && !path.includes("/") ? `library/${path}` : path];
}

/** Whether an image is of a registry. Host and path are compared separately: `*` in a host does not match the path. */
function isOf(image: string, registry: string): boolean {
  const [host, path] = registryOf(image);
  const [wantedHost, wantedPath] = parted(registry);
  const wanted = wantedPath.replace(/\/$/, "");
  return (
    isLike(host, [wantedHost]) && (wanted === "" || isLike(path, [wanted, `${wanted}/*`, `${wanted}:*`, `${wanted}@*`]))
  );
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
    const allowed = `Allowed ${registries.length === 1 ? "is" : "are"} ${registries.join(", ")}.`;
    eachImage(machine, args, (image, path) => {
      if (!registries.some((registry) => isOf(image, registry)))
        report(`${path} comes from a registry that is not allowed. ${allowed}`);
    });
  }),
};
