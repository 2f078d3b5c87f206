import type { ResourceValidationPolicy } from "@pulumi/policy";
import { eachImage } from "../core/machine.ts";
import { defineSettings } from "../core/settings.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({});

const isPinned = (image: string): boolean => /@sha256:[0-9a-f]{64}$/.test(image);

/** Images are pinned by digest, so that production runs exactly the tested image. */
export const imagesPinned: ResourceValidationPolicy = {
  name: "images-pinned",
  description: "Images are pinned by their digest, so that every Machine runs the tested image.",
  severity: "high",
  remediationSteps:
    "Write the image as name@sha256:…, or behind a tag as name:1.2.3@sha256:…, with the digest in the output imageRef of a Machine that runs it, in the output machines of a Fleet, or from the registry: `docker buildx imagetools inspect IMAGE`.",
  configSchema: settings.schema,
  validateResource: validateMachine((machine, args, report) => {
    settings.of(args);
    eachImage(machine, args, (image, path) => {
      if (!isPinned(image))
        report(
          `${path} has no digest: a tag may be moved to another image. Write it as name@sha256:…; the output imageRef of the Machine, or machines of the Fleet, and \`docker buildx imagetools inspect IMAGE\` show the digest.`,
        );
    });
  }),
};
