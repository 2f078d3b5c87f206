// Repeats the checks of one started Machine, and reports their results.
import { checksOf, type NamedCheck } from "./checks.ts";
import type { CheckResult, RuntimeEvents, Subject } from "./runtime.ts";
import { millisecondsOf, probe, type Listens } from "./probe.ts";

// ASSUMED: a check that says nothing else is repeated every ten seconds.
const usualInterval = 10_000;
// ASSUMED: until a check passes for the first time, it is repeated at least every half second: an update waits for it.
const firstInterval = 500;

/** Pause before results are reported again that the service could not store. */
const lostPause = 1000;

const notYet: CheckResult = { status: "warning", output: "the check has not run yet" };
const worst = ["critical", "warning", "passing"] as const;

/** The longest time that a timer of Node.js can have. */
const longestTimer = 2 ** 31 - 1;

/** The ports of a Machine. */
export interface Ports {
  /** Where one is reached. */
  readonly endpoint: (port: number) => string | undefined;
  /** Whether a program listens at one that accepts connections. */
  readonly listens: (port: number) => ReturnType<Listens>;
}

/** The result of a check; `critical` also if its request cannot be written, for example with a space in the path. */
async function probed(named: NamedCheck, { endpoint, listens }: Ports): Promise<CheckResult> {
  const { port } = named;
  const at = port === undefined ? undefined : endpoint(port);
  if (port === undefined || at === undefined) return { status: "critical", output: "the check has no port" };
  try {
    return await probe(named, at, () => listens(port));
  } catch (error) {
    return { status: "critical", output: error instanceof Error ? error.message : "unknown error" };
  }
}

/** The checks of a Machine while it runs. */
export class Checker {
  readonly version: string;
  readonly #machine: Subject;
  readonly #events: RuntimeEvents;
  readonly #results: Record<string, CheckResult>;
  readonly #timers = new Set<NodeJS.Timeout>();
  #ended = false;
  /** Whether results will be reported again because the service could not store them. */
  #isLost = false;
  #pauses = 0;
  #isPaused = false;

  /** Begins at once. */
  constructor(machine: Subject, events: RuntimeEvents, ports: Ports) {
    this.#machine = machine;
    this.version = machine.version;
    this.#events = events;
    const checks = checksOf(machine.config);
    this.#results = Object.fromEntries(checks.map(({ name }) => [name, notYet]));
    for (const check of checks)
      this.#after(millisecondsOf(check.check.grace_period, 0), () => void this.#run(check, ports, false));
  }

  /** Whether all checks of services pass. */
  get isServing(): boolean {
    return checksOf(this.#machine.config).every(
      ({ name, service }) => service === undefined || this.#results[name]?.status === "passing",
    );
  }

  end(): void {
    this.#ended = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** Ignores the results of checks that were made while the Machine was paused. */
  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    this.#pauses++;
  }

  async #run(named: NamedCheck, ports: Ports, hasPassed: boolean): Promise<void> {
    const pauses = this.#pauses;
    const result = await probed(named, ports);
    if (this.#ended) return;
    const isValid = pauses === this.#pauses && !this.#isPaused;
    if (isValid) this.#report(named.name, result);
    const passed = hasPassed || (isValid && result.status === "passing");
    const interval = millisecondsOf(named.check.interval, usualInterval);
    const next = passed && isValid ? interval : Math.min(interval, firstInterval);
    this.#after(next, () => void this.#run(named, ports, passed));
  }

  #report(name: string, result: CheckResult): void {
    const before = this.#results[name];
    if (before?.status === result.status && before.output === result.output) return;
    this.#results[name] = result;
    this.#send();
  }

  /** Reports all results, until the service has them: they may stay the same for ever. */
  #send(): void {
    const statuses = Object.values(this.#results).map(({ status }) => status);
    const status = worst.find((one) => statuses.includes(one)) ?? "passing";
    this.#events.checked(this.#machine, status, this.#results, () => {
      if (this.#ended || this.#isLost) return;
      this.#isLost = true;
      this.#after(lostPause, () => {
        this.#isLost = false;
        this.#send();
      });
    });
  }

  #after(ms: number, then: () => void): void {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        then();
      },
      Math.min(ms, longestTimer),
    );
    this.#timers.add(timer);
  }
}
