// The bindings between programs and the provider, each with its floor: the same program with a provider that answers at
// once.
import { globSync } from "node:fs";
import { join } from "node:path";
import { Stop, type BindingName } from "./options.ts";
import { packageFolder, type Workbench } from "./workbench.ts";

/** The package that a program imports, and how its provider is started. */
export interface Side {
  readonly module: string;
  /** Folder of the provider's executable; undefined if the CLI provides it. */
  providerFolder(bench: Workbench): string | undefined;
}

/** A binding of programs to the provider. */
export interface Binding {
  readonly name: BindingName;
  /** Executable of the provider. */
  readonly executable: string;
  readonly real: Side;
  readonly floor: Side;
}

const dynamic: Binding = {
  name: "dynamic",
  executable: "pulumi-resource-pulumi-nodejs",
  real: { module: "pulumi-machines", providerFolder: () => undefined },
  floor: { module: "machines-floor", providerFolder: () => undefined },
};

const plugin: Binding = {
  name: "plugin",
  executable: "pulumi-resource-machines",
  real: { module: "pulumi-machines-plugin", providerFolder: (bench) => folderWithExecutable(bench) },
  floor: {
    module: "machines-floor-plugin",
    providerFolder: ({ dir }) => join(dir, "node_modules/machines-floor-plugin"),
  },
};

function folderWithExecutable({ dir }: Workbench): string {
  const { module } = plugin.real;
  const installed = join(dir, "node_modules", module);
  const [found] = globSync(`**/${plugin.executable}`, { cwd: installed, exclude: ["node_modules/**"] });
  if (found === undefined) throw new Stop(`The package ${module} holds no ${plugin.executable}.`);
  return join(installed, found, "..");
}

const all = [dynamic, plugin];

/** All bindings of this repository, or the requested ones. @throws Stop when one of these is missing. */
export function bindings(wanted: readonly BindingName[] | undefined): Binding[] {
  const here = all.filter(({ real }) => packageFolder(real.module) !== undefined);
  const missing = wanted?.find((name) => !here.some((binding) => binding.name === name));
  if (missing !== undefined) throw new Stop(`The ${missing} binding is not in this repository yet.`);
  return wanted === undefined ? here : here.filter(({ name }) => wanted.includes(name));
}
