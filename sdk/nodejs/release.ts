// Promotion from stack to stack: reports the release of one stack to the next one.
import { createHash } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import type { Fleet } from "./fleet.ts";
import type { GetMachineResult } from "./getMachine.ts";
import type { Machine } from "./machine.ts";
import { machineReader, type MachineReader } from "./releaseSource.ts";

/** The release of a stack: an output for the next stack to adopt. Plain values, which travel by `StackReference`. */
export interface ReleaseRecord {
  /** Image with its digest, `registry.example.com/shop:1.2.0@sha256:…`. */
  readonly image: string;
  /** The digest, `sha256:` and 64 hexadecimal digits, as the service reported it. */
  readonly digest: string;
  /** Configuration that travels with the image. */
  readonly settings: { readonly [name: string]: string };
  /** SHA-256 of `settings`, in hexadecimal digits: the same wherever they are the same, in whatever order they are written. */
  readonly hash: string;
  /** Stack that runs it, `project/stack`. */
  readonly stack: string;
  /** Ids of the Machines that run it there. */
  readonly machines: readonly string[];
  /** The user who promoted it to the stack; absent in the first stack. */
  readonly promotedBy?: string | undefined;
  /** When, in RFC 3339. */
  readonly promotedAt?: string | undefined;
  /** Whether the promotion is still under way: of a `pinned` release, the stack before has to run it healthy yet. */
  readonly pending?: boolean | undefined;
  /** Whether the way back to it is still under way. */
  readonly goingBack?: boolean | undefined;
}

/** How the Machines of the stack before are looked at, where this stack's own token cannot. */
export interface ReleaseSource {
  /** Base URL of its service; this stack's when left out. */
  readonly endpoint?: pulumi.Input<string> | undefined;
  /** A token that may read its Machines; it is kept secret. One that the preview does not know yet is used in the update. */
  readonly token: pulumi.Input<string>;
}

/** Arguments of a Release: either `image`, in the first stack, or `from`, in the stacks that adopt it. */
export interface ReleaseArgs {
  /**
   * Image of a release that begins in this stack. Its digest is the one that the service reports for the Machines that
   * run it.
   */
  image?: pulumi.Input<string> | undefined;
  /** Configuration of a release that begins in this stack, and that is to be the same in the next ones, for example variables of the environment: texts by name. */
  settings?: pulumi.Input<{ [name: string]: pulumi.Input<string> }> | undefined;
  /**
   * Release of the previous stack: `new pulumi.StackReference(stack).requireOutput("release")`. All its Machines must
   * be started there on its digest, with their checks passing. Otherwise it is refused, in the preview already, with
   * the reason.
   */
  from?: pulumi.Input<ReleaseRecord> | undefined;
  /**
   * Release that this stack keeps, whatever the previous stack runs meanwhile: with it, `from` is not read. While its
   * promotion is `pending`, it has to equal `from` and be healthy there.
   */
  pinned?: pulumi.Input<ReleaseRecord> | undefined;
  /** How the Machines of `from` are looked at; where this stack's own are, with its token, when left out. */
  source?: ReleaseSource | undefined;
}

/**
 * The release of a stack: an image by its digest, with the configuration that travels. It begins in one stack, and the
 * next stacks adopt it, so that production runs exactly what ran before it.
 */
export class Release extends pulumi.ComponentResource {
  /** Image for the Machines: where the release begins as the program has it, in every stack after that with its digest. */
  readonly image: pulumi.Output<string>;
  /** Digest of the image; empty in the stack in which the release begins, because its Machines report it. */
  readonly digest: pulumi.Output<string>;
  /** Configuration that travels with the image. */
  readonly settings: pulumi.Output<{ [name: string]: string }>;
  /** SHA-256 of `settings`, in hexadecimal digits. */
  readonly hash: pulumi.Output<string>;
  readonly #promotion: pulumi.Output<Pick<ReleaseRecord, "promotedBy" | "promotedAt">>;

  /**
   * @param name name of the component in this program
   * @param args where the release comes from
   * @param opts options of the component
   */
  constructor(name: string, args: ReleaseArgs, opts?: pulumi.ComponentResourceOptions) {
    super("machines:index:Release", name, {}, opts);
    const { image, settings, from, pinned, source } = args;
    if ((image === undefined) === (from === undefined))
      throw this.#refuse("takes either image, in the first stack, or from, in a stack that adopts it");
    if (from !== undefined && settings !== undefined)
      throw this.#refuse("settings come from the adopted release; set them in the first stack");

    const found =
      from === undefined ? started(image, settings) : this.#taken(from, args, machineReader(name, this, source));
    this.image = found.apply(({ image }) => image);
    this.digest = found.apply(({ digest }) => digest);
    this.settings = found.apply(({ settings }): { [name: string]: string } => ({ ...settings }));
    this.hash = this.settings.apply(hashOf);
    this.#promotion = pulumi
      .output(pinned)
      .apply((record) => ({ promotedBy: record?.promotedBy, promotedAt: record?.promotedAt }));
    this.registerOutputs({ image: this.image, digest: this.digest, settings: this.settings, hash: this.hash });
  }

  /**
   * The release that this stack runs, for its output `release`.
   * @param machines the Machines that run the image of the release, or the fleets whose Machines do; or one of them
   * @returns the record that the next stack adopts; it fails if the Machines do not all run one image, unless canaries wait for their promotion
   */
  runBy(machines: Runner | readonly Runner[]): pulumi.Output<ReleaseRecord> {
    const runners = [machines].flat() as readonly Runner[];
    if (runners.length === 0) throw this.#refuse("runBy needs the Machines that run the release");
    const running = pulumi.all(runners.map(digestsOf)).apply((lists) => lists.flat());
    return pulumi
      .all([this.image, this.digest, this.settings, this.hash, this.#promotion, running])
      .apply(([image, promised, settings, hash, promotion, digests]) => {
        if (digests.length === 0) throw this.#refuse("its fleets have no Machines");
        const awaited = digests.find((machine) => machine.awaited !== undefined)?.awaited;
        const digest = promised === "" ? (awaited ?? digests[0]?.digest ?? "") : promised;
        // The others get it when the canaries are promoted. Until then the release is not healthy, and is not promoted.
        const others = digests.filter(
          (machine) => machine.awaited !== digest && (machine.digest !== digest || digest === ""),
        );
        if (others.length > 0)
          throw this.#refuse(
            `its Machines do not run one image: ${digests.map(({ id, digest }) => `${id} runs ${digest || "one without a digest"}`).join(", ")}${promised === "" ? "" : `; wanted is ${promised}`}`,
          );
        return {
          image: `${image.replace(/@sha256:[0-9a-f]+$/, "")}@${digest}`,
          digest,
          settings,
          hash,
          stack: `${pulumi.getProject()}/${pulumi.getStack()}`,
          machines: digests.map(({ id }) => id),
          ...promotion,
        };
      });
  }

  /**
   * The adopted release. A pinned release without a pending promotion is used alone; neither the value nor the secrecy
   * of `from` matters then.
   */
  #taken(
    from: pulumi.Input<ReleaseRecord>,
    { pinned, source }: ReleaseArgs,
    read: MachineReader,
  ): pulumi.Output<Begun> {
    const kept = pulumi.output(pinned).apply((record) => record && this.#recordOf("pinned", record));
    return kept.apply((kept) =>
      kept && kept.pending !== true
        ? pulumi.output(kept)
        : pulumi.all([from, this.#reachable(source)]).apply(async ([from]) => {
            const offered = this.#recordOf("from", from);
            if (kept && (kept.stack !== offered.stack || kept.digest !== offered.digest || kept.hash !== offered.hash))
              throw this.#refuse(
                `pinned is another release than ${offered.stack} runs: ${kept.image} of ${kept.stack}; promote from ${offered.stack} again`,
              );
            await this.#requireHealth(offered, read);
            return kept ?? offered;
          }),
    );
  }

  /** Whether `source` can be asked: unknown while its token is, so that nothing is asked with another one. */
  #reachable(source: ReleaseSource | undefined): pulumi.Output<boolean> {
    if (source === undefined) return pulumi.output(true);
    const reached = pulumi.all([source.endpoint, source.token]);
    const unknown =
      "source is not known yet: whether the stack before runs its release healthy is looked at in the update";
    void (reached as typeof reached & { readonly isKnown: Promise<boolean> }).isKnown.then((isKnown) =>
      isKnown ? undefined : pulumi.log.warn(unknown, this),
    );
    // The release is no secret, though the token that finds out about it is.
    return pulumi.unsecret(reached).apply(([, token]) => {
      if (!token) throw this.#refuse("source has no token: this stack's own is not sent to another place");
      return true;
    });
  }

  /** A record that came from another stack, or from the configuration. */
  #recordOf(input: string, value: unknown): ReleaseRecord {
    const record = (value ?? {}) as Partial<ReleaseRecord>;
    const { image, digest, settings, hash, machines } = record;
    const problem =
      value === undefined || value === null
        ? "does not exist yet: the previous stack has no release among its outputs, run `pulumi up` there first"
        : typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest)
          ? "has no digest: it must be the result of runBy() of a Release"
          : typeof image !== "string" || !image.endsWith(`@${digest}`)
            ? "has an image that is not of its digest"
            : !Array.isArray(machines) || machines.length === 0
              ? "names no Machines that run it"
              : hashOf(settings ?? {}) !== hash
                ? "has settings that differ from its original ones"
                : undefined;
    if (problem !== undefined) throw this.#refuse(`${input} ${problem}`);
    return record as ReleaseRecord;
  }

  /** Refuses a release that the stack before does not run healthy now. */
  async #requireHealth(release: ReleaseRecord, read: MachineReader): Promise<void> {
    const looked = await Promise.all(
      release.machines.map(async (id) => {
        try {
          return problemsOf(await read(id), release.digest).map((problem) => `${id} ${problem}`);
        } catch (error) {
          return [`${id} cannot be looked at: ${error instanceof Error ? error.message : String(error)}`];
        }
      }),
    );
    const problems = looked.flat();
    if (problems.length > 0)
      throw this.#refuse(`${release.stack} does not run its release healthy now: ${problems.join("; ")}`);
  }

  #refuse(message: string): pulumi.ResourceError {
    const text = `the release cannot be used: ${message}`;
    const error = new pulumi.ResourceError(text, this, true);
    // Pulumi would put the name of every input that uses the release before it.
    return Object.defineProperty(error, "message", { get: () => text, set: () => {} });
  }
}

type Begun = Pick<ReleaseRecord, "image" | "digest" | "settings">;

/**
 * A release that begins in this stack; the Machines that run it report its digest. Settings without a value are left
 * out.
 */
const started = (image: ReleaseArgs["image"], settings: ReleaseArgs["settings"]): pulumi.Output<Begun> =>
  pulumi.all([image, settings]).apply(([image = "", settings = {}]) => ({
    image,
    digest: "",
    settings: Object.fromEntries(Object.entries(settings).filter(([, value]) => typeof value === "string")),
  }));

/** A Machine, or a fleet of them. */
export type Runner = Pick<Machine, "id" | "imageRef"> | Pick<Fleet, "machines" | "rollout">;

interface Running {
  readonly id: string;
  readonly digest: string;
  /** The newest image of a fleet whose canaries wait for their promotion. */
  readonly awaited?: string | undefined;
}

/** The Machines of a runner, with the digests of their images. */
const digestsOf = (runner: Runner): pulumi.Output<readonly Running[]> =>
  "machines" in runner
    ? pulumi.all([runner.machines, runner.rollout]).apply(([all, rollout]) => {
        // Identifiers of versions are in the order of time.
        const [newest] = [...all].sort((a, b) => ((a.version ?? "") < (b.version ?? "") ? 1 : -1));
        const awaited = rollout === "canary" ? newest?.digest : undefined;
        return all.map(({ id, digest = "" }) => ({ id, digest, awaited }));
      })
    : pulumi.all([runner.id, runner.imageRef]).apply(([id, ref]) => [{ id, digest: ref?.digest ?? "" }]);

/** Why a Machine does not run a digest healthy. */
function problemsOf({ state, checks = [], imageRef }: GetMachineResult, digest: string): string[] {
  const failing = checks.filter(({ status }) => status !== "passing");
  return [
    ...(state === "started" ? [] : [`is ${state}, not started`]),
    ...(imageRef?.digest === digest ? [] : [`runs ${imageRef?.digest ?? "an image without a digest"}, not ${digest}`]),
    ...failing.map(({ name, status }) => `has the check ${name ?? "without a name"}, which is ${status ?? "unknown"}`),
  ];
}

/** SHA-256 of settings, the same in whatever order they are written. */
const hashOf = (settings: { readonly [name: string]: string }): string => {
  const sorted = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex");
};
