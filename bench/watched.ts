// What it costs to watch that Machines keep running: an `up` with the time that they have to keep running, and one without.
import type { Binding } from "./bindings.ts";
import { CountingService } from "./countingService.ts";
import { median } from "./measure.ts";
import { Project } from "./project.ts";
import type { Workbench } from "./workbench.ts";

/** Seconds of an `up` that creates Machines, as a median. */
interface Row {
  readonly size: number;
  readonly unwatched: number;
  readonly watched: number;
}

/** The figures of a binding. */
interface WatchedFigures {
  readonly binding: Binding["name"];
  readonly rows: readonly Row[];
}

/** Creates one Machine and many equal ones, without checks, by the real CLI. */
export async function measureWatched(
  bench: Workbench,
  binding: Binding,
  { size: most, rounds }: { readonly size: number; readonly rounds: number },
  say: (line: string) => void,
): Promise<WatchedFigures> {
  const service = await CountingService.start();
  try {
    const { module } = binding.real;
    const providerFolder = binding.real.providerFolder(bench);
    const project = new Project(bench, { name: `${binding.name}-watched`, module, providerFolder });
    await project.init({ "machines:endpoint": service.url, "machines:token": service.token });
    const secondsOf = async (size: number, healthy: string): Promise<number> => {
      project.reset(size);
      const { seconds } = await project.operate("up", { created: size + 2 }, { MACHINES_MIN_HEALTHY_SECONDS: healthy });
      await project.operate("destroy", { deleted: size + 2 });
      return seconds;
    };
    const rows: Row[] = [];
    for (const size of [1, most]) {
      say(`  ${binding.name}: ${size} Machines, unwatched and watched in turn`);
      const seconds = { "0": [] as number[], "3": [] as number[] };
      for (let round = 0; round < rounds; round++)
        for (const healthy of ["0", "3"] as const) seconds[healthy].push(await secondsOf(size, healthy));
      rows.push({ size, unwatched: median(seconds["0"]), watched: median(seconds["3"]) });
    }
    return { binding: binding.name, rows };
  } finally {
    await service.close();
  }
}

/** The figures as lines. */
export const describeWatched = ({ binding, rows }: WatchedFigures): string =>
  rows
    .map(
      ({ size, unwatched, watched }) =>
        `${binding}: ${size} Machines in ${unwatched.toFixed(1)} s, ${watched.toFixed(1)} s when they have to keep running for 3 s: ${(watched - unwatched).toFixed(1)} s more`,
    )
    .join("\n");
