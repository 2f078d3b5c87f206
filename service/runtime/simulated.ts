// The simulated runtime. The configuration gives the behaviour of a process (behaviour.ts), and the delays of the service give
// the durations.
import { sizeOf, type MachineConfig } from "../../api/machineConfig.ts";
import { signalNumbers, type SignalName } from "../../api/signals.ts";
import { behaviourOf, type Behaviour } from "./behaviour.ts";
import { memoryLimit } from "./memory.ts";
import { programEnd, run } from "./simulatedCommands.ts";
import type { Command, Memory, Outcome, Process, Runtime, RuntimeHost, StopRequest, Subject } from "./runtime.ts";

const mib = 2 ** 20;
// ASSUMED: a process uses a quarter of its Machine's memory, for plausible numbers.
const used = 0.25;
/** Signals that a simulated process handles; all others end it. */
const handled: readonly SignalName[] = ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGALRM"];

const wellBehaved = (config: MachineConfig): Behaviour => {
  const behaviour = behaviourOf(config);
  return typeof behaviour === "string" ? {} : behaviour; // create and update refuse invalid ones
};

const memoryOf = (config: MachineConfig): number => sizeOf(config).memoryMb;

/** A runtime that runs nothing. */
export class SimulatedRuntime implements Runtime {
  readonly name: string = "simulated";
  readonly #host: RuntimeHost;

  constructor(host: RuntimeHost) {
    this.#host = host;
  }

  problem(config: MachineConfig): { field: string; message: string } | undefined {
    const behaviour = behaviourOf(config);
    return typeof behaviour === "string" ? { field: "config.env.MACHINES_SIMULATE", message: behaviour } : undefined;
  }

  hasRoom(config: MachineConfig): boolean {
    return wellBehaved(config).noCapacity !== true;
  }

  create({ id, state }: Subject): void {
    this.#step(id, state === "replacing" ? this.#host.delays.replace : this.#host.delays.prepare);
  }

  start({ id, config }: Subject): void {
    const { startMs, hang } = wellBehaved(config);
    if (hang) this.#forget(id);
    else this.#step(id, startMs ?? this.#host.delays.start);
  }

  stop({ id, config }: Subject, { timeoutMs, signal }: StopRequest): void {
    const deaf = wellBehaved(config).deaf === true && signal !== "SIGKILL";
    this.#step(id, deaf ? timeoutMs : this.#host.delays.stop);
  }

  suspend({ id }: Subject): void {
    this.#step(id, this.#host.delays.suspend);
  }

  destroy({ id }: Subject): void {
    this.#step(id, this.#host.delays.destroy);
  }

  signal(machine: Subject, signal: SignalName): void {
    if (handled.includes(signal) || (wellBehaved(machine.config).deaf && signal !== "SIGKILL")) return;
    this.#forget(machine.id);
    const number = signalNumbers[signal];
    this.#host.events.exited(machine, { code: 128 + number, signal: number, oom: false, requested: false });
  }

  exec(machine: Subject, command: Command): Promise<Outcome | undefined> {
    return run(machine, command, this.#host.clock);
  }

  processes({ config }: Subject): Promise<readonly Process[]> {
    const { exec, entrypoint, cmd } = config.init ?? {};
    const words = exec ?? [...(entrypoint ?? []), ...(cmd ?? [])];
    const sockets = (config.services ?? []).map(({ protocol, internal_port }) => ({
      proto: protocol,
      address: `0.0.0.0:${internal_port}`,
    }));
    const rss = Math.round(memoryOf(config) * used) * mib;
    const base = { directory: "/", rtime: 0, stime: 0 };
    return Promise.resolve([
      { ...base, pid: 1, command: "/init", cpu: 0, rss: 2 * mib, listen_sockets: [] },
      {
        ...base,
        pid: 300,
        command: words.length > 0 ? words.join(" ") : config.image,
        cpu: 1,
        rss,
        listen_sockets: sockets,
      },
    ]);
  }

  limitMemory(): void {}

  memory(machine: Subject): Promise<Memory> {
    return Promise.resolve(memoryLimit(machine));
  }

  reclaim({ config, memoryLimitMb }: Subject, amountMb: number): Promise<number> {
    const free = (memoryLimitMb ?? memoryOf(config)) - Math.round(memoryOf(config) * used);
    return Promise.resolve(Math.max(0, Math.min(amountMb, free)));
  }

  due(kind: "runtime.step" | "runtime.exit" | "runtime.checks", id: string): void {
    const machine = this.#host.subject(id);
    if (!machine) return;
    if (kind === "runtime.checks") this.#check(machine);
    else if (kind === "runtime.exit") this.#end(machine);
    else this.#stepped(machine);
  }

  #stepped(machine: Subject): void {
    const { events } = this.#host;
    const { state, config } = machine;
    const { crash, deaf } = wellBehaved(config);
    if (state === "created" || state === "replacing") events.prepared(machine);
    else if (state === "starting" && crash) events.exited(machine, { ...crash, requested: false });
    else if (state === "starting") {
      events.started(machine);
      this.#live(machine);
    } else if (state === "stopping" || state === "restarting") {
      const end = deaf ? { code: 137, signal: 9 } : { code: 0, signal: 0 };
      events.exited(machine, { ...end, oom: false, requested: true });
    } else if (state === "suspending") events.suspended(machine);
    else if (state === "destroying") events.destroyed(machine);
  }

  /** Sets the timers of a started process: the result of its checks, and its exit if it has one. */
  #live(machine: Subject): void {
    const { timers, delays } = this.#host;
    timers.after(delays.checks, "runtime.checks", machine.id);
    if (wellBehaved(machine.config).exit) return timers.after(delays.run, "runtime.exit", machine.id);
    const end = programEnd(machine);
    if (end) timers.after(end.ms || delays.run, "runtime.exit", machine.id);
  }

  #check(machine: Subject): void {
    this.#host.events.checked(machine, wellBehaved(machine.config).checksFail ? "critical" : "passing");
  }

  #end(machine: Subject): void {
    const program = programEnd(machine);
    const { exit } = wellBehaved(machine.config);
    const { code, signal, oom } = exit ?? { code: program?.code, signal: 0, oom: false };
    if (code === undefined) return;
    this.#forget(machine.id);
    const lines = [...(program?.lines ?? []), ...(exit?.lines ?? [])];
    this.#host.events.exited(machine, { code, signal, oom, requested: false, lines });
  }

  #step(id: string, ms: number): void {
    this.#forget(id);
    this.#host.timers.after(ms, "runtime.step", id);
  }

  #forget(id: string): void {
    this.#host.timers.cancel(id, "runtime.step", "runtime.exit", "runtime.checks");
  }
}
