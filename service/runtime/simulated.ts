// Where Machines "run": nowhere. How their process behaves is read off the configuration, so that every client can
// bring about every outcome without a back door: `config.env.MACHINES_SIMULATE` holds one or several of these, separated
// by commas, or the tag of the image is `simulate-` and one of them with `-` for `:` (`app:simulate-exit-3`).
import { type MachineConfig } from "../../api/machineConfig.ts";
import { parseDuration } from "../../api/schema.ts";

/** How the main process ended. */
export interface Exit {
  readonly code: number;
  readonly oom: boolean;
}

/** How a Machine behaves; what is left out behaves well. */
export interface Behaviour {
  /** No host has room for it. */
  readonly noCapacity?: true;
  /** It takes this long to start. */
  readonly startMs?: number;
  /** Its process ends before it is started. */
  readonly crash?: Exit;
  /** Its process ends a moment after it was started. */
  readonly exit?: Exit;
  /** Its checks never pass. */
  readonly checksFail?: true;
}

/** Decides how Machines behave. */
export interface Runtime {
  /** The behaviour a configuration asks for, or a sentence that says what is wrong with what it asks. */
  behaviour(config: MachineConfig): Behaviour | string;
}

interface Sentinel {
  readonly pattern: RegExp;
  readonly spelling: string;
  readonly read: (argument: string) => Behaviour;
}

const sentinels: readonly Sentinel[] = [
  { pattern: /^crash$/, spelling: "crash", read: () => ({ crash: { code: 1, oom: false } }) },
  {
    pattern: /^exit:(\d{1,3})$/,
    spelling: "exit:<code>",
    read: (code) => ({ exit: { code: Number(code), oom: false } }),
  },
  { pattern: /^oom$/, spelling: "oom", read: () => ({ exit: { code: 137, oom: true } }) },
  { pattern: /^checks:critical$/, spelling: "checks:critical", read: () => ({ checksFail: true }) },
  {
    pattern: /^slow:(\d+(?:ms|s|m))$/,
    spelling: "slow:<duration>",
    read: (text) => ({ startMs: (parseDuration(text) ?? 0) / 1e6 }),
  },
  { pattern: /^capacity$/, spelling: "capacity", read: () => ({ noCapacity: true }) },
];

/** The runtime of a service that runs nothing. */
export const simulated: Runtime = {
  behaviour(config) {
    const tag = /:simulate-([\w.-]+)$/.exec(config.image)?.[1];
    const asked = [...(config.env?.["MACHINES_SIMULATE"]?.split(",") ?? []), ...(tag ? [tag.replace("-", ":")] : [])];
    let behaviour: Behaviour = {};
    for (const text of asked.map((part) => part.trim()).filter((part) => part !== "")) {
      const sentinel = sentinels.find(({ pattern }) => pattern.test(text));
      if (!sentinel)
        return `got ${JSON.stringify(text)}, allowed are ${sentinels.map(({ spelling }) => spelling).join(", ")}`;
      behaviour = { ...behaviour, ...sentinel.read(sentinel.pattern.exec(text)?.[1] ?? "") };
    }
    return behaviour;
  },
};
