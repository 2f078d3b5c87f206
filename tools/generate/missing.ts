// The parts that a resource type or function still lacks beside its definition, so that none is forgotten.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { components, functions, resources, type ResourceName } from "../../provider/registry.ts";
import type { Example } from "./examples.ts";
import { programPath, typesWithProgram } from "./programs.ts";

/** Types that the recorded program does not use, and why. */
const unrecorded: Readonly<Partial<Record<ResourceName, string>>> = {
  DeployToken: "its token would be in the record",
  Fleet: "the engine reads it before each update, and the record is tried without its objects",
};

/** One sentence for each missing part. `shown` has the types and functions that the examples use. */
export function missingParts(root: string, shown: ReadonlyMap<string, Example>): string[] {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const tests = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts"))
    .map((path) => readFileSync(join(root, "test", path), "utf8"));
  const recorded = readFileSync(join(root, "test/upgrade/program.ts"), "utf8");
  const ofType = Object.keys(resources).flatMap((name) => [
    ...(recorded.includes(`new machines.${name}(`) || name in unrecorded
      ? []
      : [`${name}: test/upgrade/program.ts does not use it, so later versions would not be tried with its state`]),
    ...(tests.some((text) => text.includes(`lifecycle("${name}"`))
      ? []
      : [`${name}: no test runs its lifecycle suite, \`lifecycle("${name}", …)\``]),
    ...(readme.includes(`[\`${name}\`](docs/reference/${name}.md)`)
      ? []
      : [`${name}: the table of resources in README.md has no link to docs/reference/${name}.md`]),
  ]);
  const programs = typesWithProgram(root);
  const types = [...Object.keys(resources), ...Object.keys(components)];
  const unshown = [...Object.keys(resources), ...Object.keys(functions)].filter((name) => !shown.has(name));
  return [
    ...ofType,
    ...types
      .filter((name) => !programs.includes(name))
      .map((name) => `${name}: there is no ${programPath(name)}, its example in every language`),
    ...programs
      .filter(
        (name) =>
          !types.includes(name) ||
          !readFileSync(join(root, programPath(name)), "utf8").includes(`"machines:index:${name}"`),
      )
      .map((name) => `${programPath(name)}: it declares no resource of the type ${name}`),
    ...programs
      .filter((name) => !/^# \S[^.]*\.\n(?!#)/.test(readFileSync(join(root, programPath(name)), "utf8")))
      .map(
        (name) => `${programPath(name)}: it does not begin with a comment of one sentence, the title of the example`,
      ),
    ...unshown.map((name) => `${name}: no program in examples/ uses it; add it to examples/everything`),
  ];
}
