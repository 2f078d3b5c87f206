// *** Copied by `npm run generate` from sdk/nodejs/release.ts: do not edit. ***
// What a stack runs, told to the next one: promotion from stack to stack.
import { createHash } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import type { GetMachineResult } from "./getMachine";
import type { Machine } from "./machine";
import { machineReader, type MachineReader } from "./releaseSource";

/** What a stack runs: an output of the stack, for the next one to take over. Plain values, which travel by `StackReference`. */
export interface ReleaseRecord {
  /** Image with its digest, `registry.example.com/shop:1.2.0@sha256:…`. */
  readonly image: string;
  /** The digest, `sha256:` and 64 hexadecimal digits, as the service told it. */
  readonly digest: string;
  /** Configuration that travels with the image. */
  readonly settings: { readonly [name: string]: string };
  /** SHA-256 of `settings`, in hexadecimal digits: the same wherever they are the same, in whatever order they are written. */
  readonly hash: string;
  /** Stack that runs it, `project/stack`. */
  readonly stack: string;
  /** Ids of the Machines that run it there. */
  readonly machines: readonly string[];
  /** Who promoted it to the stack; absent where it began. */
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

/** What a program declares of a Release: either `image`, where a release begins, or `from`, where it is taken over. */
export interface ReleaseArgs {
  /** Image of a release that begins in this stack. Its digest is the one the service told of the Machines that run it. */
  image?: pulumi.Input<string> | undefined;
  /** Configuration of a release that begins in this stack, and that is to be the same in the next ones, for example variables of the environment: texts by name. */
  settings?: pulumi.Input<{ [name: string]: pulumi.Input<string> }> | undefined;
  /**
   * Release of the stack before: `new pulumi.StackReference(stack).requireOutput("release")`, which is what that stack runs
   * now. A release whose Machines are not all started there, with their checks passing, on its digest, is refused: in the
   * preview already, with the reason.
   */
  from?: pulumi.Input<ReleaseRecord> | undefined;
  /**
   * Release this stack keeps to, whatever the stack before runs meanwhile: with it, `from` is not looked at. While its
   * promotion is `pending` it has to be what `from` is, and to run healthy there.
   */
  pinned?: pulumi.Input<ReleaseRecord> | undefined;
  /** How the Machines of `from` are looked at; where this stack's own are, with its token, when left out. */
  source?: ReleaseSource | undefined;
}

/**
 * What a stack runs: an image by its digest, with the configuration that travels. It begins in one stack and is taken over by
 * the next ones, so that what runs in production is exactly what ran before it.
 */
export class Release extends pulumi.ComponentResource {
  /** Image for the Machines: where the release begins as the program has it, in every stack after that with its digest. */
  readonly image: pulumi.Output<string>;
  /** Digest of the image; empty in the stack where the release begins, whose Machines tell it. */
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
      throw this.#refuse("takes either image, where a release begins, or from, where it is taken over");
    if (from !== undefined && settings !== undefined)
      throw this.#refuse("settings are those of the release that is taken over; set them where it begins");

    const found =
      from === undefined ? begun(image, settings) : this.#taken(from, args, machineReader(name, this, source));
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
   * What this stack runs, for its output `release`.
   * @param machines the Machines that run the image of the release
   * @returns the record the next stack takes over; it fails where the Machines do not all run one image
   */
  runBy(machines: readonly Pick<Machine, "id" | "imageRef">[]): pulumi.Output<ReleaseRecord> {
    if (machines.length === 0) throw this.#refuse("runBy needs the Machines that run the release");
    const running = pulumi.all(machines.map(({ id, imageRef }) => pulumi.all([id, imageRef])));
    return pulumi
      .all([this.image, this.digest, this.settings, this.hash, this.#promotion, running])
      .apply(([image, promised, settings, hash, promotion, running]) => {
        const told = running.map(([id, ref]) => ({ id, digest: ref?.digest ?? "" }));
        const digest = promised === "" ? (told[0]?.digest ?? "") : promised;
        const others = told.filter((machine) => machine.digest !== digest || digest === "");
        if (others.length > 0)
          throw this.#refuse(
            `its Machines do not run one image: ${told.map(({ id, digest }) => `${id} runs ${digest || "one without a digest"}`).join(", ")}${promised === "" ? "" : `; wanted is ${promised}`}`,
          );
        return {
          image: `${image.replace(/@sha256:[0-9a-f]+$/, "")}@${digest}`,
          digest,
          settings,
          hash,
          stack: `${pulumi.getProject()}/${pulumi.getStack()}`,
          machines: told.map(({ id }) => id),
          ...promotion,
        };
      });
  }

  /** What is taken over. What is pinned and not under way is all there is: what `from` is, or whether it is secret, does not matter then. */
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
        ? "is not there yet: the stack before has no release among its outputs, run `pulumi up` there first"
        : typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest)
          ? "has no digest: it must be what runBy() of a Release answered"
          : typeof image !== "string" || !image.endsWith(`@${digest}`)
            ? "has an image that is not of its digest"
            : !Array.isArray(machines) || machines.length === 0
              ? "names no Machines that run it"
              : hashOf(settings ?? {}) !== hash
                ? "has settings that are not those it was made with"
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
    return new pulumi.ResourceError(`the release cannot be used: ${message}`, this, true);
  }
}

type Begun = Pick<ReleaseRecord, "image" | "digest" | "settings">;

/** What begins here; its digest is told by the Machines that run it. Settings without a value are none. */
const begun = (image: ReleaseArgs["image"], settings: ReleaseArgs["settings"]): pulumi.Output<Begun> =>
  pulumi.all([image, settings]).apply(([image = "", settings = {}]) => ({
    image,
    digest: "",
    settings: Object.fromEntries(Object.entries(settings).filter(([, value]) => typeof value === "string")),
  }));

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
