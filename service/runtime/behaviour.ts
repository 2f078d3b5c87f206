// Reads the behaviour of a simulated process from the configuration, so that any client can cause any outcome.
// `config.env.MACHINES_SIMULATE` lists behaviours, separated by commas. Alternatively the tag of the image is `simulate-` and a
// behaviour with `-` instead of `:` (`app:simulate-exit-3`).
import { type MachineConfig } from "../../api/machineConfig.ts";
import { parseDuration } from "../../api/schema.ts";

interface End {
  readonly code: number;
  readonly signal: number;
  readonly oom: boolean;
  /** What the process writes before. */
  readonly lines: readonly string[];
}

/** The behaviour of a Machine; without any member it runs normally. */
export interface Behaviour {
  /** No host has capacity for it. */
  readonly noCapacity?: true;
  /** Milliseconds until it has started. */
  readonly startMs?: number;
  /** It never becomes ready and never exits. */
  readonly hang?: true;
  /** Its process exits before it is ready. */
  readonly crash?: End;
  /** Its process exits soon after the start. */
  readonly exit?: End;
  /** Its checks never pass. */
  readonly checksFail?: true;
  /** It exits only when it is killed. */
  readonly deaf?: true;
}

interface Sentinel {
  readonly pattern: RegExp;
  readonly spelling: string;
  readonly read: (argument: string) => Behaviour;
}

// A process that takes longer can be simulated with `hang`.
const slowest = 24 * 60 * 60 * 1000;

const endOf = (asked: string, code: number): End => ({
  ...{ code, signal: 0, oom: false },
  lines: ["the simulated program has started", `it ends with code ${code}, as MACHINES_SIMULATE=${asked} asks`],
});

const sentinels: readonly Sentinel[] = [
  { pattern: /^crash$/, spelling: "crash", read: () => ({ crash: endOf("crash", 1) }) },
  {
    pattern: /^exit:(\d{1,3})$/,
    spelling: "exit:<code>",
    read: (code) => ({ exit: endOf(`exit:${code}`, Number(code)) }),
  },
  { pattern: /^oom$/, spelling: "oom", read: () => ({ exit: { ...endOf("oom", 137), signal: 9, oom: true } }) },
  { pattern: /^hang$/, spelling: "hang", read: () => ({ hang: true }) },
  { pattern: /^deaf$/, spelling: "deaf", read: () => ({ deaf: true }) },
  { pattern: /^checks:critical$/, spelling: "checks:critical", read: () => ({ checksFail: true }) },
  {
    pattern: /^slow:(\d+(?:ms|s|m))$/,
    spelling: "slow:<duration>",
    read: (text) => ({ startMs: Math.min((parseDuration(text) ?? 0) / 1e6, slowest) }),
  },
  { pattern: /^capacity$/, spelling: "capacity", read: () => ({ noCapacity: true }) },
];

// ASSUMED: `MACHINES_SIMULATE` has at most 1,000 characters, because it is parsed on every change of the Machine.
const longest = 1000;

/** The behaviour that a configuration requests, or the error in it as a sentence. */
export function behaviourOf(config: MachineConfig): Behaviour | string {
  const length = config.env?.["MACHINES_SIMULATE"]?.length ?? 0;
  if (length > longest) return `got ${length} characters, must not be longer than ${longest}`;
  const tag = /:simulate-([\w.-]+)$/.exec(config.image)?.[1];
  const asked = [...(config.env?.["MACHINES_SIMULATE"]?.split(",") ?? []), ...(tag ? [tag.replace("-", ":")] : [])];
  let behaviour: Behaviour = {};
  for (const text of asked.map((part) => part.trim()).filter((part) => part !== "")) {
    const sentinel = sentinels.find(({ pattern }) => pattern.test(text));
    if (!sentinel)
      return `got ${JSON.stringify(text.slice(0, 80))}, allowed are ${sentinels.map(({ spelling }) => spelling).join(", ")}`;
    behaviour = { ...behaviour, ...sentinel.read(sentinel.pattern.exec(text)?.[1] ?? "") };
  }
  return behaviour;
}
