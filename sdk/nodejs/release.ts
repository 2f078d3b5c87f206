// Promotion from stack to stack: reports the release of one stack to the next one.
import * as pulumi from "@pulumi/pulumi";
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
  type ReleaseRecord,
  type Running,
} from "../../provider/dynamic/index.ts";
import type { Fleet } from "./fleet.ts";
import type { Machine } from "./machine.ts";
import type { ReleaseArgs, ReleaseSource } from "./releaseArgs.ts";
import { machineReader, type MachineReader } from "./releaseSource.ts";

export type { ReleaseRecord };

/**
 * The release of a stack: an image by its digest, and the configuration that is promoted with it. It begins in one stack, and the
 * next stacks adopt it, so that production runs exactly what ran before it.
 */
export class Release extends pulumi.ComponentResource {
  /** Image for the Machines. In the stack in which the release begins, it is the program's reference; in every later stack, it has the digest. */
  readonly image: pulumi.Output<string>;
  /** Digest of the image. It is empty in the stack in which the release begins, because there the Machines report it. */
  readonly digest: pulumi.Output<string>;
  /** Configuration that is promoted with the image. */
  readonly settings: pulumi.Output<{ [name: string]: string }>;
  /** SHA-256 of `settings`, in hexadecimal digits. */
  readonly hash: pulumi.Output<string>;
  /** The user who promoted the pinned release to this stack. */
  readonly promotedBy: pulumi.Output<string | undefined>;
  /** RFC 3339 time at which it was promoted. */
  readonly promotedAt: pulumi.Output<string | undefined>;

  /**
   * @param name name of the component in this program
   * @param args where the release comes from
   * @param opts options of the component
   */
  constructor(name: string, args: ReleaseArgs, opts?: pulumi.ComponentResourceOptions) {
    super("machines:index:Release", name, {}, opts);
    const { image, settings, from, pinned, source } = args;
    requireOrigin(this.#refuse, args);

    const found =
      from === undefined
        ? pulumi.all([image, settings]).apply(([image = "", settings]) => begun(image, settings))
        : this.#taken(from, args, machineReader(name, this, source));
    this.image = found.apply(({ image }) => image);
    this.digest = found.apply(({ digest }) => digest);
    this.settings = found.apply(({ settings }): { [name: string]: string } => ({ ...settings }));
    this.hash = this.settings.apply(hashOf);
    this.promotedBy = pulumi.output(pinned).apply((record) => record?.promotedBy);
    this.promotedAt = pulumi.output(pinned).apply((record) => record?.promotedAt);
    const { digest, hash, promotedBy, promotedAt } = this;
    this.registerOutputs({ image: this.image, digest, settings: this.settings, hash, promotedBy, promotedAt });
  }

  /**
   * Returns the release that this stack runs, for its output `release`.
   * @param machines the Machines that run the image of the release, or the fleets whose Machines do; or one of them
   * @returns the record that the next stack adopts; it fails if the Machines do not all run one image, unless canaries wait for their promotion
   */
  runBy(machines: Runner | readonly Runner[]): pulumi.Output<ReleaseRecord> {
    const runners = [machines].flat() as readonly Runner[];
    requireRunners(this.#refuse, runners);
    const running = pulumi.all(runners.map(runningOf)).apply((lists) => lists.flat());
    const stack = `${pulumi.getProject()}/${pulumi.getStack()}`;
    return pulumi
      .all([this.image, this.digest, this.settings, this.hash, this.promotedBy, this.promotedAt, running])
      .apply(([image, digest, settings, hash, promotedBy, promotedAt, running]) =>
        recordOf(this.#refuse, { image, digest, settings, hash }, { promotedBy, promotedAt }, running, stack),
      );
  }

  /**
   * The adopted release. A pinned release without a pending promotion is used alone; neither the value nor the secrecy
   * of `from` matters then.
   */
  #taken(
    from: pulumi.Input<ReleaseRecord>,
    { pinned, source }: ReleaseArgs,
    read: MachineReader,
  ): pulumi.Output<Contents> {
    const kept = pulumi.output(pinned).apply((record) => pinnedRecord(this.#refuse, record));
    return kept.apply((kept) =>
      isKept(kept)
        ? pulumi.output(kept)
        : pulumi
            .all([from, this.#reachable(source)])
            .apply(([from]): Promise<Contents> => adopted(this.#refuse, from, kept, read)),
    );
  }

  /** Whether `source` can be asked: unknown while its token is, so that nothing is asked with another one. */
  #reachable(source: ReleaseSource | undefined): pulumi.Output<boolean> {
    if (source === undefined) return pulumi.output(true);
    const reached = pulumi.all([source.endpoint, source.token]);
    void (reached as typeof reached & { readonly isKnown: Promise<boolean> }).isKnown.then((isKnown) =>
      isKnown ? undefined : pulumi.log.warn(sourceUnknown, this),
    );
    // The release is no secret, though the token that finds out about it is.
    return pulumi.unsecret(reached).apply(([, token]) => {
      requireToken(this.#refuse, token);
      return true;
    });
  }

  readonly #refuse = (message: string): pulumi.ResourceError => {
    const error = new pulumi.ResourceError(message, this, true);
    // Pulumi would put the name of every input that uses the release before it.
    return Object.defineProperty(error, "message", { get: () => message, set: () => {} });
  };
}

/** A Machine, or a fleet of them. */
export type Runner = Pick<Machine, "id" | "imageRef"> | Pick<Fleet, "machines" | "rollout" | "awaited">;

/** The Machines of a runner, with the digests of their images. */
const runningOf = (runner: Runner): pulumi.Output<readonly Running[]> =>
  "machines" in runner
    ? pulumi
        .all([runner.machines, runner.rollout, runner.awaited])
        .apply(([machines, rollout, awaited]) => ofFleet(machines, rollout, awaited))
    : pulumi.all([runner.id, runner.imageRef]).apply(([id, ref]) => ofMachine(id, ref));
