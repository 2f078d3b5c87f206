// The time that the policy pack adds to a preview, compared with a pack of as many policies that check nothing.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Binding } from "./bindings.ts";
import { CountingService } from "./countingService.ts";
import { median } from "./measure.ts";
import { Project } from "./project.ts";
import type { Workbench } from "./workbench.ts";

/** The package with the pack. */
export const policyPackage = "pulumi-machines-policy";

/** Seconds of a preview, by the packs it runs with. */
interface PolicyCost {
  readonly binding: Binding["name"];
  readonly size: number;
  readonly none: number;
  readonly floor: number;
  readonly ours: number;
}

/** Previews Machines before their creation, alternating between no pack, the floor's and ours. */
export async function measurePolicy(
  bench: Workbench,
  binding: Binding,
  { size, rounds }: { readonly size: number; readonly rounds: number },
  say: (line: string) => void,
): Promise<PolicyCost> {
  const service = await CountingService.start();
  try {
    const { module } = binding.real;
    const providerFolder = binding.real.providerFolder(bench);
    const project = new Project(bench, { name: `${binding.name}-policy`, module, providerFolder });
    await project.init({ "machines:endpoint": service.url, "machines:token": service.token });
    project.reset(size);
    // Every policy checks, and none ends the preview.
    const config = join(bench.dir, "policy.json");
    writeFileSync(config, JSON.stringify({ all: "advisory" }));
    const packs = {
      none: [],
      floor: ["--policy-pack", join(bench.dir, "node_modules/policy-floor/pulumi-analyzer-floor")],
      ours: [
        ...["--policy-pack", join(bench.dir, "node_modules", policyPackage, "pulumi-analyzer-machines")],
        ...["--policy-pack-config", config],
      ],
    };
    const seconds: Record<keyof typeof packs, number[]> = { none: [], floor: [], ours: [] };
    for (let round = 1; round <= rounds; round++)
      for (const name of ["none", "floor", "ours"] as const) {
        const done = await project.run(["preview", ...packs[name]]);
        seconds[name].push(done.seconds);
        say(`  ${binding.name} ${size}, round ${round}: preview with ${name} ${done.seconds.toFixed(2)} s`);
      }
    const { none, floor, ours } = seconds;
    return { binding: binding.name, size, none: median(none), floor: median(floor), ours: median(ours) };
  } finally {
    await service.close();
  }
}

/** The figures as a line. */
export const describePolicy = ({ binding, size, none, floor, ours }: PolicyCost): string =>
  `${binding}: a preview of ${size} Machines takes ${none.toFixed(1)} s, with a pack that looks at nothing ${floor.toFixed(1)} s, with ours ${ours.toFixed(1)} s: ${(ours / floor).toFixed(2)} of the floor, ${(ours - none).toFixed(1)} s more than without`;
