// Many Machines in one App of a service with the documented rate limits: the time of `up`, compared with the minimum under
// the limit.
import type { Binding } from "./bindings.ts";
import { CountingService } from "./countingService.ts";
import { Project } from "./project.ts";
import type { Workbench } from "./workbench.ts";

/** The figures of a binding. */
interface Limited {
  readonly binding: Binding["name"];
  readonly size: number;
  readonly seconds: number;
  /** Create requests, including refused ones. */
  readonly creates: number;
}

/** An App accepts three creates at once and one per second after that (docs/interface.md#rate-limits). */
const floorOf = (size: number): number => Math.max(1, size - 3);

/** Creates the Machines with the real CLI. */
export async function measureLimited(
  bench: Workbench,
  binding: Binding,
  size: number,
  say: (line: string) => void,
): Promise<Limited> {
  const service = await CountingService.start({ rateLimits: "documented" });
  try {
    const { module } = binding.real;
    const providerFolder = binding.real.providerFolder(bench);
    const project = new Project(bench, { name: `${binding.name}-limited`, module, providerFolder });
    await project.init({ "machines:endpoint": service.url, "machines:token": service.token });
    project.reset(size);
    service.taken();
    say(`  ${binding.name}: ${size} Machines in one App, which the limit alone makes ${floorOf(size)} s`);
    const { seconds } = await project.operate("up", { created: size + 2 });
    return { binding: binding.name, size, seconds, creates: service.taken()["machines.create"] ?? 0 };
  } finally {
    await service.close();
  }
}

/** The figures as a line. */
export const describeLimited = ({ binding, size, seconds, creates }: Limited): string =>
  `${binding}: ${size} Machines in ${seconds.toFixed(1)} s, ${(seconds / floorOf(size)).toFixed(2)} of what the limit takes; ${creates} create requests`;
