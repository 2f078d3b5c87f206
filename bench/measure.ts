// Rounds of operations on two stacks of equal size: one with the real provider, one with the floor.
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Binding } from "./bindings.ts";
import { Stop, type Operation, type Options } from "./options.ts";
import type { Usage } from "./processes.ts";
import { Project, type Kept } from "./project.ts";
import { CountingService, type Requests } from "./countingService.ts";
import { root, type Workbench } from "./workbench.ts";

/** Which of the two stacks. */
export type SideName = "floor" | "real";

/** One operation on one stack. */
export interface Sample {
  readonly operation: Operation;
  readonly side: SideName;
  readonly round: number;
  readonly seconds: number;
  readonly requests: Requests;
  /** CPU seconds of this process, in which only the service works. */
  readonly serviceCpu: number;
  readonly processes: readonly Usage[];
}

/** All figures of one binding with one number of Machines. */
export interface Series {
  readonly binding: Binding["name"];
  readonly size: number;
  readonly samples: readonly Sample[];
  /** Bytes of the state, divided by the number of Machines. */
  readonly stateBytes: Record<SideName, number>;
  /** The share of the CPUs that other processes used between the rounds; above 0.1 the figures are unreliable. */
  readonly othersUse: number;
}

/** The additional delay of the service in `far`, in milliseconds. */
const farther = 50;

const sides: readonly SideName[] = ["floor", "real"];
const fast = { PULUMI_EXPERIMENTAL: "true", PULUMI_SKIP_CHECKPOINTS: "true" };

const verbs = { create: "up", unchanged: "up", refresh: "refresh", far: "refresh", destroy: "destroy" } as const;

/** The Stack and the App are included. */
const expected = (operation: Operation, size: number) =>
  operation === "create"
    ? { created: size + 2 }
    : operation === "destroy"
      ? { deleted: size + 2 }
      : { unchanged: size + 2 };

/** The two stacks of a binding and the service behind one of them. */
export class Pair {
  readonly binding: Binding;
  readonly #projects: Record<SideName, Project>;
  readonly #stateFile: string;
  #service: CountingService;

  private constructor(
    binding: Binding,
    projects: Record<SideName, Project>,
    stateFile: string,
    service: CountingService,
  ) {
    this.binding = binding;
    this.#projects = projects;
    this.#stateFile = stateFile;
    this.#service = service;
  }

  /** Creates both stacks, and one real Machine, whose state the floor returns. */
  static async prepare(bench: Workbench, binding: Binding, profile: string | undefined): Promise<Pair> {
    const service = await CountingService.start();
    try {
      const stateFile = join(bench.dir, `${binding.name}-state.json`);
      const make = (side: SideName, env: NodeJS.ProcessEnv) => {
        const { module } = binding[side];
        const providerFolder = binding[side].providerFolder(bench);
        return new Project(bench, { name: `${binding.name}-${side}`, module, providerFolder, env });
      };
      const real = make("real", profile === undefined ? {} : profiling(profile));
      const floor = make("floor", { BENCH_STATE: stateFile });
      for (const project of [real, floor])
        await project.init({ "machines:endpoint": service.url, "machines:token": service.token });
      real.reset(1);
      await real.operate("up", expected("create", 1));
      writeFileSync(stateFile, JSON.stringify(await real.kept()));
      return new Pair(binding, { floor, real }, stateFile, service);
    } catch (error) {
      await service.close();
      throw error;
    }
  }

  /** Where the provider of a side runs. */
  surroundings(side: SideName): { cwd: string; env: NodeJS.ProcessEnv } {
    return this.#projects[side].surroundings;
  }

  /** The floor's answers: one created resource of each type. */
  kept(): Record<string, Kept> {
    return JSON.parse(readFileSync(this.#stateFile, "utf8")) as Record<string, Kept>;
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  /** Makes the real side run an example, and returns the equivalent number of the floor's Machines. */
  runs(example: string): number {
    return this.#projects.real.runs(example) - 1;
  }

  /** Measures the requested operations, round by round, alternating between the sides. */
  async measure(size: number, options: Options, progress: (sample: Sample) => void): Promise<Series> {
    const samples: Sample[] = [];
    const stateBytes = { floor: 0, real: 0 };
    const idle: number[] = [];
    const changing = options.only.includes("create") || options.only.includes("destroy");
    for (let round = 1; round <= options.rounds; round++) {
      // The sides take turns at going first, because the first one influences the second.
      const order = round % 2 === 1 ? sides : sides.toReversed();
      idle.push(await usedByOthers());
      if (changing || round === 1) await this.#begin(size, order, options.only.includes("create"));
      for (const operation of options.only) {
        for (const side of order) {
          if (operation === "far" && side === "floor") continue;
          const sample = { ...(await this.#operate(operation, side, size, options)), round };
          if (operation !== "destroy") stateBytes[side] = Math.round(this.#projects[side].stateBytes() / size);
          samples.push(sample);
          progress(sample);
        }
      }
    }
    return { binding: this.binding.name, size, samples, stateBytes, othersUse: median(idle) };
  }

  /** Empty stacks and an empty service; filled, unmeasured, if the first operation needs that. */
  async #begin(size: number, order: readonly SideName[], empty: boolean): Promise<void> {
    this.#service = await this.#service.restart();
    for (const side of order) this.#projects[side].reset(size);
    if (empty) return;
    for (const side of order) await this.#projects[side].operate("up", expected("create", size), fast);
  }

  async #operate(operation: Operation, side: SideName, size: number, options: Options): Promise<Omit<Sample, "round">> {
    const service = this.#service;
    service.taken();
    service.delay = operation === "far" ? farther : 0;
    const before = process.cpuUsage();
    const env = options.skipCheckpoints ? fast : {};
    const done = await this.#projects[side].operate(verbs[operation], expected(operation, size), env);
    const { user, system } = process.cpuUsage(before);
    service.delay = 0;
    return {
      operation,
      side,
      seconds: done.seconds,
      requests: service.taken(),
      serviceCpu: (user + system) / 1e6,
      processes: done.processes,
    };
  }
}

/** Node.js writes a profile when a process exits by itself, but the CLI ends providers with a signal. */
const profiling = (dir: string): NodeJS.ProcessEnv => ({
  NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${JSON.stringify(dir)} --require ${JSON.stringify(join(root, "bench/endOnSignal.cjs"))}`,
});

/** The share of the CPUs in use while this process is idle. */
async function usedByOthers(): Promise<number> {
  const times = () => {
    const all = cpus().map(({ times }) => times);
    const idle = all.reduce((sum, { idle }) => sum + idle, 0);
    return { idle, total: all.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, idle) };
  };
  const before = times();
  await sleep(500);
  const after = times();
  return 1 - (after.idle - before.idle) / Math.max(1, after.total - before.total);
}

/** The median. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]];
  if (low === undefined || high === undefined) throw new Stop("There is nothing to take a median of.");
  return (low + high) / 2;
}
