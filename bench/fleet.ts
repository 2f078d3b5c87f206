// Many Machines as one fleet: the time to create them, compared with as many Machine resources, and the time of a rolling
// update, compared with the time of its waves.
import type { Binding } from "./bindings.ts";
import { CountingService } from "./countingService.ts";
import { machine, Project } from "./project.ts";
import type { Workbench } from "./workbench.ts";

/** The figures of a binding. */
interface FleetFigures {
  readonly binding: Binding["name"];
  readonly size: number;
  /** Seconds of an `up` that creates the Machines, as a fleet and as resources. */
  readonly created: { readonly fleet: number; readonly machines: number };
  /** Seconds of a rolling update of a tenth at a time. */
  readonly rolled: number;
  /** Seconds that ten updates of a tenth take, one after the other. */
  readonly waves: number;
}

const waves = 10;

const program =
  (module: string, tag: string, strategy: object) =>
  (size: number): string =>
    `
const machines = require("${module}");
const app = new machines.App("shop");
new machines.Fleet("web", {
  app: app.id,
  regions: { ams: ${size} },
  config: ${JSON.stringify({ ...machine.config, image: `registry.example.com/shop:${tag}` })},
  strategy: ${JSON.stringify(strategy)},
});
`;

/** Creates and updates the fleet with the real CLI. */
export async function measureFleet(
  bench: Workbench,
  binding: Binding,
  size: number,
  say: (line: string) => void,
): Promise<FleetFigures> {
  const { module } = binding.real;
  const providerFolder = binding.real.providerFolder(bench);
  const project = new Project(bench, { name: `${binding.name}-fleet`, module, providerFolder });
  const declare = (tag: string, strategy: object = {}): void => project.declares(program(module, tag, strategy));
  const rolling = { type: "rolling", maxUnavailable: `${100 / waves}%` };
  const service = await CountingService.start();
  const created = { fleet: 0, machines: 0 };
  try {
    await project.init({ "machines:endpoint": service.url, "machines:token": service.token });
    project.reset(size);
    say(`  ${binding.name}: ${size} Machine resources, and a fleet of as many`);
    created.machines = (await project.operate("up", { created: size + 2 })).seconds;
    await project.operate("destroy", { deleted: size + 2 });
    declare("1");
    project.reset(size);
    created.fleet = (await project.operate("up", { created: 3 })).seconds;
  } finally {
    await service.close();
  }
  // With the delays of a service for people; the waves are those of a fleet of a tenth, updated at once.
  const slow = await CountingService.start({ delays: "believable", port: Number(new URL(service.url).port) });
  try {
    say(`  ${binding.name}: a rolling update of the fleet, a tenth at a time`);
    declare("1", rolling);
    project.reset(size);
    await project.operate("up", { created: 3 });
    declare("2", rolling);
    project.resize(size);
    const rolled = (await project.operate("up", { updated: 1, unchanged: 2 })).seconds;
    await project.operate("destroy", { deleted: 3 });
    const tenth = Math.floor(size / waves);
    declare("1", { type: "immediate" });
    project.reset(tenth);
    await project.operate("up", { created: 3 });
    const idle = (await project.operate("up", { unchanged: 3 })).seconds;
    declare("2", { type: "immediate" });
    project.resize(tenth);
    const one = (await project.operate("up", { updated: 1, unchanged: 2 })).seconds;
    return { binding: binding.name, size, created, rolled, waves: idle + waves * (one - idle) };
  } finally {
    await slow.close();
  }
}

/** The figures as lines. */
export const describeFleet = ({ binding, size, created, rolled, waves: floor }: FleetFigures): string =>
  [
    `${binding}: create of ${size} Machines in ${created.fleet.toFixed(1)} s as a fleet and ${created.machines.toFixed(1)} s as resources (${(created.fleet / created.machines).toFixed(2)})`,
    `${binding}: rolling update of ${size} Machines in ${rolled.toFixed(1)} s, ${(rolled / floor).toFixed(2)} of its ${waves} waves`,
  ].join("\n");
