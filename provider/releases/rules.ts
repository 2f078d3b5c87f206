// The rules of a Release: which release a stack adopts, when it is refused, and the record for the next stack. They know
// plain values only, because the classes for TypeScript and the plugin share them. The plugin's package for TypeScript
// has a copy of this file, so it imports nothing of ours.
import { createHash } from "node:crypto";

/** The release of a stack: an output for the next stack to adopt. Plain values, which travel by `StackReference`. */
export interface ReleaseRecord {
  /** Image with its digest, `registry.example.com/shop:1.2.0@sha256:…`. */
  readonly image: string;
  /** The digest, `sha256:` and 64 hexadecimal digits, as the service reported it. */
  readonly digest: string;
  /** Configuration that is promoted with the image. */
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

/** What a release consists of. */
export type Contents = Pick<ReleaseRecord, "image" | "digest" | "settings">;

/** Who promoted a release, and when. */
export type Promotion = Pick<ReleaseRecord, "promotedBy" | "promotedAt">;

/** Makes the error of a refusal: each binding has its own. */
export type Refuse = (message: string) => Error;

/** A Machine as the service has it now. */
interface LiveMachine {
  readonly state: string;
  readonly checks?: readonly { readonly name?: string | undefined; readonly status?: string | undefined }[] | undefined;
  readonly imageRef?: { readonly digest?: string | undefined } | undefined;
}

/** Reads a Machine by its id. */
export type ReadMachine = (id: string) => Promise<LiveMachine>;

/** A Machine that runs a release. */
export interface Running {
  readonly id: string;
  readonly digest: string;
  /** The newest image of a fleet whose rollout waits for its promotion. */
  readonly awaited?: string | undefined;
}

/** Warning of a preview that cannot ask the previous stack yet. */
export const sourceUnknown =
  "source is not known yet: the update checks whether the release is healthy in the previous stack";

const refusal = (refuse: Refuse, message: string): Error => refuse(`the release cannot be used: ${message}`);

/** Refuses arguments that give a release no origin, or two. */
export function requireOrigin(
  refuse: Refuse,
  { image, settings, from }: { readonly image?: unknown; readonly settings?: unknown; readonly from?: unknown },
): void {
  if ((image === undefined) === (from === undefined))
    throw refusal(refuse, "takes either image, in the first stack, or from, in a stack that adopts it");
  if (from !== undefined && settings !== undefined)
    throw refusal(refuse, "settings come from the adopted release; set them in the first stack");
}

/**
 * A release that begins in this stack; the Machines that run it report its digest. Settings without a value are left
 * out.
 */
export const begun = (image: string, settings: Readonly<Record<string, unknown>> = {}): Contents => ({
  image,
  digest: "",
  settings: Object.fromEntries(
    Object.entries(settings).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  ),
});

/** The pinned release, if there is one. @throws the refusal of an invalid record */
export const pinnedRecord = (refuse: Refuse, pinned: unknown): ReleaseRecord | undefined =>
  pinned === undefined || pinned === null ? undefined : recordIn(refuse, "pinned", pinned);

/** Whether a pinned release is used whatever the previous stack runs: its promotion is complete. */
export const isKept = (pinned: ReleaseRecord | undefined): pinned is ReleaseRecord =>
  pinned !== undefined && pinned.pending !== true;

/** Refuses a source without a token. */
export function requireToken(refuse: Refuse, token: string | undefined): void {
  if (!token) throw refusal(refuse, "source has no token: this stack's own token is not sent to another service");
}

/**
 * The release that the previous stack offers, once its Machines run it healthy.
 * @param pinned the pinned release, whose promotion is pending
 */
export async function adopted(
  refuse: Refuse,
  from: unknown,
  pinned: ReleaseRecord | undefined,
  read: ReadMachine,
): Promise<Contents> {
  const offered = recordIn(refuse, "from", from);
  if (pinned && (pinned.stack !== offered.stack || pinned.digest !== offered.digest || pinned.hash !== offered.hash))
    throw refusal(
      refuse,
      `pinned differs from the release that ${offered.stack} runs: ${pinned.image} of ${pinned.stack}; promote from ${offered.stack} again`,
    );
  await requireHealth(refuse, offered, read);
  return pinned ?? offered;
}

/** A record that came from another stack, or from the configuration. */
function recordIn(refuse: Refuse, input: string, value: unknown): ReleaseRecord {
  const record = (value ?? {}) as Partial<ReleaseRecord>;
  const { image, digest, settings, hash, machines } = record;
  const problem =
    value === undefined || value === null
      ? "does not exist yet: the previous stack has no release among its outputs, run `pulumi up` there first"
      : typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest)
        ? "has no digest: it must be the result of runBy() of a Release"
        : typeof image !== "string" || !image.endsWith(`@${digest}`)
          ? "has an image with another digest"
          : !Array.isArray(machines) || machines.length === 0
            ? "names no Machines that run it"
            : hashOf(settings ?? {}) !== hash
              ? "has settings that differ from its original ones"
              : undefined;
  if (problem !== undefined) throw refusal(refuse, `${input} ${problem}`);
  return record as ReleaseRecord;
}

/** Refuses a release that the stack before does not run healthy now. */
async function requireHealth(refuse: Refuse, release: ReleaseRecord, read: ReadMachine): Promise<void> {
  const looked = await Promise.all(
    release.machines.map(async (id) => {
      try {
        return problemsOf(await read(id), release.digest).map((problem) => `${id} ${problem}`);
      } catch (error) {
        return [`${id} cannot be read: ${error instanceof Error ? error.message : String(error)}`];
      }
    }),
  );
  const problems = looked.flat();
  if (problems.length > 0)
    throw refusal(refuse, `${release.stack} does not run its release in a healthy state now: ${problems.join("; ")}`);
}

/** Why a Machine does not run a digest healthy. */
function problemsOf({ state, checks = [], imageRef }: LiveMachine, digest: string): string[] {
  const failing = checks.filter(({ status }) => status !== "passing");
  return [
    ...(state === "started" ? [] : [`is ${state}, not started`]),
    ...(imageRef?.digest === digest ? [] : [`runs ${imageRef?.digest ?? "an image without a digest"}, not ${digest}`]),
    ...failing.map(({ name, status }) => `has the check ${name ?? "without a name"}, which is ${status ?? "unknown"}`),
  ];
}

/** A Machine that runs a release. */
export const ofMachine = (id: string, imageRef: { readonly digest?: string | undefined } | undefined): Running[] => [
  { id, digest: imageRef?.digest ?? "" },
];

/** The Machines of a fleet that runs a release. `withoutTraffic`: the digest that new Machines without traffic run. */
export function ofFleet(
  machines: readonly {
    readonly id: string;
    readonly digest?: string | undefined;
    readonly version?: string | undefined;
  }[],
  rollout: string | undefined,
  withoutTraffic: string | undefined,
): Running[] {
  // Identifiers of versions are in the order of time.
  const [newest] = [...machines].sort((a, b) => ((a.version ?? "") < (b.version ?? "") ? 1 : -1));
  const awaited = rollout === "canary" ? newest?.digest : rollout === "green" ? withoutTraffic : undefined;
  return machines.map(({ id, digest = "" }) => ({ id, digest, awaited }));
}

/** Refuses a call of `runBy` without Machines and fleets. */
export function requireRunners(refuse: Refuse, runners: readonly unknown[]): void {
  if (runners.length === 0) throw refusal(refuse, "runBy needs the Machines that run the release");
}

/**
 * The record for the next stack.
 * @param release the release, whose digest is empty in the stack where it begins
 * @param stack the stack that runs it, `project/stack`
 * @throws the refusal of Machines that do not all run one image, unless a rollout waits for its promotion
 */
export function recordOf(
  refuse: Refuse,
  { image, digest: promised, settings, hash }: Contents & Pick<ReleaseRecord, "hash">,
  { promotedBy, promotedAt }: Promotion,
  running: readonly Running[],
  stack: string,
): ReleaseRecord {
  if (running.length === 0) throw refusal(refuse, "its fleets have no Machines");
  const awaited = running.find((machine) => machine.awaited !== undefined)?.awaited;
  const digest = promised === "" ? (awaited ?? running[0]?.digest ?? "") : promised;
  // The others get it when the rollout is promoted. Until then the release is not healthy, and is not promoted.
  const others = running.filter(
    (machine) => machine.awaited !== digest && (machine.digest !== digest || digest === ""),
  );
  if (others.length > 0)
    throw refusal(
      refuse,
      `its Machines do not run one image: ${running.map(({ id, digest }) => `${id} runs ${digest || "one without a digest"}`).join(", ")}${promised === "" ? "" : `; wanted is ${promised}`}`,
    );
  const machines = running.map(({ id }) => id);
  const bare = image.replace(/@sha256:[0-9a-f]+$/, "");
  return { image: `${bare}@${digest}`, digest, settings, hash, stack, machines, promotedBy, promotedAt };
}

/** SHA-256 of settings, the same in whatever order they are written. */
export const hashOf = (settings: { readonly [name: string]: string }): string => {
  const sorted = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex");
};
