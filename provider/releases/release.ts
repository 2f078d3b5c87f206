// The component `Release` for programs on the plugin (docs/promotion.md). The classes for TypeScript are in sdk/nodejs/.
import { z } from "zod";
import { optional, required, named } from "../../api/schema.ts";
import { MachinesError } from "../client/errors.ts";
import { defineComponent, type Derived, type Passed } from "../core/component.ts";
import { hasUnknown, UNKNOWN } from "../core/values.ts";
import {
  adopted,
  begun,
  hashOf,
  isKept,
  ofFleet,
  ofMachine,
  pinnedRecord,
  recordOf,
  requireOrigin,
  requireRunners,
  requireToken,
  sourceUnknown,
  type Contents,
  type Promotion,
  type ReleaseRecord,
  type Running,
} from "./rules.ts";

const refuse = (message: string): Error => new MachinesError("refused", message);

const source = named(
  "ReleaseSource",
  z.object({
    endpoint: optional(z.string(), "Base URL of its service; this stack's when left out."),
    token: required(
      z.string(),
      "Token that may read its Machines. If the preview does not know it yet, it is used in the update.",
      {
        secret: true,
      },
    ),
  }),
);

const inputs = z.object({
  image: optional(
    z.string(),
    "Image of a release that begins in this stack. Its digest is the one that the service reports for the Machines that run it.",
  ),
  settings: optional(
    z.record(z.string(), z.string()),
    "Configuration of a release that begins in this stack, as texts by name, for example environment variables. The next stacks get the same.",
  ),
  from: optional(
    z.unknown(),
    "Release of the previous stack: its output with the result of `runBy`, read by a stack reference. All its Machines must be started there on its digest, and pass their checks. Otherwise the preview already refuses it, with the reason.",
  ),
  pinned: optional(
    z.unknown(),
    "Release that this stack keeps, whatever the previous stack runs: when it is set, `from` is not read. While its promotion is `pending`, it must equal `from` and be healthy there. `pulumi-machines promote` writes it into the configuration.",
  ),
  source: optional(
    source,
    "The service to read the Machines of `from` from. When left out, it is this stack's service, with its token.",
  ),
});

const outputs = z.object({
  image: required(
    z.string(),
    "Image for the Machines. In the stack in which the release begins, it is the program's reference; in every later stack, it has the digest.",
  ),
  digest: required(
    z.string(),
    "Digest of the image. It is empty in the stack in which the release begins, because there the Machines report it.",
  ),
  settings: required(z.record(z.string(), z.string()), "Configuration that is promoted with the image."),
  hash: required(z.string(), "SHA-256 of `settings`, in hexadecimal digits."),
  promotedBy: optional(z.string(), "The user who promoted the pinned release to this stack."),
  promotedAt: optional(z.string(), "RFC 3339 time at which it was promoted."),
});

type Outputs = Record<keyof typeof outputs.shape, Derived>;

/** A value that depends on one input, which may be unknown. */
const of = (name: string, input: unknown, value: () => unknown): Derived => ({
  value: hasUnknown(input) ? UNKNOWN : value(),
  secretLike: [name],
});

/** Outputs that are all computed from the same inputs; unknown without the release. */
function together(contents: Contents | undefined, made: Pick<Derived, "secretLike" | "decidedBy">) {
  const derived = (value: unknown): Derived => ({ value: contents === undefined ? UNKNOWN : value, ...made });
  return {
    image: derived(contents?.image),
    digest: derived(contents?.digest),
    settings: derived(contents?.settings),
    hash: derived(contents && hashOf(contents.settings)),
  };
}

/** The Machines of a resource that runs the release. */
function runningOf({ type, values }: Passed): Running[] {
  if (type === "Fleet") {
    const { machines, rollout, awaited } = values as {
      machines?: Parameters<typeof ofFleet>[0];
      rollout?: string;
      awaited?: string;
    };
    return ofFleet(machines ?? [], rollout, awaited);
  }
  const { id, imageRef } = values as { id: string; imageRef?: { digest?: string } };
  return ofMachine(id, imageRef);
}

export const release = defineComponent({
  name: "Release",
  summary: "The release of a stack: an image by its digest, and the configuration that is promoted with it.",
  description:
    "It begins in one stack, and the next stacks adopt it, so that production runs exactly what ran before it. It creates nothing in the service. `runBy` returns the record that the next stack adopts.",
  inputs,
  outputs,

  async construct({ image, settings, from, pinned, source }, { apiOf, warn }): Promise<Outputs> {
    requireOrigin(refuse, { image, settings, from });
    const promotion = hasUnknown(pinned) ? undefined : ((pinned ?? {}) as Promotion);
    const promoted = {
      promotedBy: of("pinned", pinned, () => promotion?.promotedBy),
      promotedAt: of("pinned", pinned, () => promotion?.promotedAt),
    };
    if (from === undefined) {
      const contents = begun(image ?? "", settings);
      return {
        image: of("image", image, () => contents.image),
        digest: { value: contents.digest, secretLike: [] },
        settings: of("settings", settings, () => contents.settings),
        hash: of("settings", settings, () => hashOf(contents.settings)),
        ...promoted,
      };
    }
    if (hasUnknown(pinned)) return { ...together(undefined, { secretLike: ["from", "pinned"] }), ...promoted };
    const kept = pinnedRecord(refuse, pinned);
    if (isKept(kept)) return { ...together(kept, { secretLike: ["pinned"] }), ...promoted };
    // The release is no secret, though the token that finds out about it is.
    const made = { secretLike: ["from", "pinned"], decidedBy: ["source"] };
    if (hasUnknown(source)) warn(sourceUnknown);
    if (hasUnknown(source) || hasUnknown(from)) return { ...together(undefined, made), ...promoted };
    if (source) requireToken(refuse, source.token);
    const api = apiOf(source);
    const contents = await adopted(refuse, from, kept, async (id) => {
      const [appName = "", machineId = ""] = id.split("/");
      return api.machines.get({ appName, machineId });
    });
    return { ...together(contents, made), ...promoted };
  },

  methods: {
    runBy: {
      description:
        "Returns the release that this stack runs, for its output `release`: the record that the next stack adopts. It fails if the Machines do not all run one image, unless canaries wait for their promotion.",
      argument: "machines",
      argumentDescription: "The Machines that run the image of the release, or the fleets whose Machines do.",
      takes: { Machine: ["id", "imageRef"], Fleet: ["machines", "rollout", "awaited?"] },
      result: "release",
      resultDescription:
        "The record: `image` with its digest, `digest`, `settings`, `hash`, `stack` that runs it as `project/stack`, ids of the `machines` there, and `promotedBy` and `promotedAt` after a promotion.",
      call({ name, self, passed, stack }) {
        // The engine names the method only.
        const named = (message: string): Error => refuse(`Release ${name}: ${message}`);
        requireRunners(named, passed);
        const contents = self as unknown as Contents & Pick<ReleaseRecord, "hash">;
        return { ...recordOf(named, contents, self as Promotion, passed.flatMap(runningOf), stack) };
      },
    },
  },
});
