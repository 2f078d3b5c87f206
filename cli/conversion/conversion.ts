// A deployment file as a program: an App, and a fleet for each process group.
import { didYouMean } from "../../api/didYouMean.ts";
import { isObject } from "../../api/schema.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { literal, type Declaration, type Program, type Setting } from "../organization/program.ts";
import { Deployment, type Remark } from "./deployment.ts";
import { configOf, groupsOf, rolloutOf, volumeOf, type Group } from "./fleets.ts";
import { entriesOf, Placed } from "./placed.ts";
import type { ReadFile } from "./localFiles.ts";
import type { Inputs } from "./services.ts";

/** What to convert. */
export interface Source {
  /** What messages call the file. */
  readonly name: string;
  readonly text: string;
  /** Regions with their counts, in the place of the file's own: `ams:2,fra`. */
  readonly regions: string | undefined;
  /** Contents of the files that it names. */
  readonly read: ReadFile;
}

/** The program, and what is not in it. */
export interface Conversion {
  readonly program: Program;
  readonly remarks: readonly Remark[];
  /** Places in the file of values that the program reads from the configuration, by the keys. */
  readonly secrets: ReadonlyMap<string, string>;
  /** Whether the image has to be set. */
  readonly needsImage: boolean;
}

/** @throws MachinesError `invalid-input` if the file cannot be read, or has values that cannot be used */
export function convert({ name, text, regions, read }: Source): Conversion {
  const deployment = new Deployment(name, text);
  const { root } = deployment;
  const groups = groupsOf(root.values);
  explain(deployment);
  findStrayGroups(deployment, groups);
  const image = root.table("build")?.take("image");
  const secrets = new Map<string, string>();
  const shared = { image: new Placed({ is: "setting", key: "image" }), secrets, read };
  const app = root.take("app");
  const title = app ?? "app";
  const fleets = groups.map((group): Declaration => {
    const config = configOf(deployment, group, shared);
    const volume = volumeOf(deployment, group);
    const rollout = rolloutOf(deployment, group, volume !== undefined);
    const own = fleetName(deployment, group, groups);
    const inputs = {
      app: new Placed({ is: "id", of: "App" }),
      name: own,
      regions: countsOf(deployment, config, regions),
      config,
      volume,
      ...rollout,
    };
    return {
      ...{ key: `Fleet ${group.name}`, type: "Fleet", id: group.name, name: literal(own), ignoreChanges: [] },
      inputs: entriesOf("Fleet", inputs),
      // The release command must have succeeded before any of them is changed.
      dependsOn:
        group.isDefault || root.values.deploy?.release_command === undefined ? [] : [`Fleet ${groups[0]?.name ?? ""}`],
    };
  });
  const declared: Declaration = {
    ...{ key: "App", type: "App", id: title, name: literal(title), ignoreChanges: [] },
    inputs: entriesOf("App", { name: app }),
  };
  const remarks = deployment.remarks();
  const settings: Setting[] = [
    image === undefined ? { key: "image", isSecret: false } : { key: "image", isSecret: false, default: image },
    ...[...secrets.keys()].map((key): Setting => ({ key, isSecret: true })),
  ];
  const blocks = [declared, ...fleets].map((resource) => ({ is: "resource", resource }) as const);
  return {
    program: { settings, sections: [{ title: `App ${title}`, blocks }], remarks: remarks.map(sentenceOf) },
    ...{ remarks, secrets, needsImage: image === undefined },
  };
}

/** A remark as a sentence. */
export const sentenceOf = ({ line, key, text }: Remark): string => `line ${line}, ${key}: ${text}`;

/** Says why whole parts of the file are not carried over. */
function explain({ root }: Deployment): void {
  const build = root.table("build");
  for (const name of ["dockerfile", "ignorefile", "builder", "buildpacks", "builtin", "settings", "args"] as const)
    build?.remark(name, "a Pulumi program does not build images; push one, and set it as `image`");
  build?.remark("build-target", "a Pulumi program does not build images; push one, and set it as `image`");
  root.remark("console_command", "there is no console command");
  root.remark("machine_checks", "checks in a Machine of their own are not supported; use a MachineCommand");
  for (const name of ["machine_config", "container"] as const)
    root.remark(name, "containers are not read from another file; write them into `config.containers`");
  const deploy = root.table("deploy");
  deploy?.remark("seed_command", "a command that runs once is a MachineCommand");
  deploy?.remark("release_command_timeout", "the release command has the time of `progressDeadline`");
  deploy?.remark("release_command_vm", "the release command runs in a Machine of the fleet's size");
}

/** Finds parts of the file that name a process group which does not exist. */
function findStrayGroups(deployment: Deployment, groups: readonly Group[]): void {
  const known = groups.map(({ name }) => name);
  const visit = (value: unknown, path: readonly (string | number)[]): void => {
    if (Array.isArray(value)) for (const [i, item] of value.entries()) visit(item, [...path, i]);
    if (!isObject(value)) return;
    const named = Array.isArray(value["processes"]) ? value["processes"].map(String) : [];
    const stray = named.find((one) => !known.includes(one));
    if (stray !== undefined) {
      const meant = didYouMean(stray, known);
      const text = `there is no process group ${stray}${meant === undefined ? "" : `; did you mean ${meant}?`}`;
      deployment.remark(named.some((one) => known.includes(one)) ? [...path, "processes"] : path, text);
    }
    for (const [name, inner] of Object.entries(value)) visit(inner, [...path, name]);
  };
  visit(deployment.root.values, []);
}

function fleetName(deployment: Deployment, { name }: Group, groups: readonly Group[]): string {
  const fitted = (text: string): string =>
    text
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .slice(0, 40)
      .replaceAll(/^-+|-+$/g, "") || "fleet";
  const own = fitted(name);
  if (groups.filter((other) => fitted(other.name) === own).length > 1)
    throw deployment.refused(["processes", name], `two process groups would be the fleet ${own}; rename one of them`);
  if (own !== name) deployment.remark(["processes", name], `the fleet of this group is called ${own}`);
  return own;
}

/** How many Machines run in each region: as many as the proxy keeps running, or one. */
function countsOf(deployment: Deployment, config: Inputs, given: string | undefined): Readonly<Record<string, number>> {
  const primary = deployment.root.take("primary_region");
  const services = (config["services"] ?? []) as readonly { readonly minMachinesRunning?: number }[];
  const count = Math.max(1, ...services.map(({ minMachinesRunning = 0 }) => minMachinesRunning));
  const wanted = given ?? primary;
  if (wanted === undefined)
    throw new MachinesError(
      "invalid-input",
      "the file has no primary_region: name the regions, for example with `--regions ams:2,fra`",
    );
  return Object.fromEntries(
    wanted.split(",").map((one) => {
      const [, region, own] = /^\s*([a-z]{3})(?::(\d+))?\s*$/.exec(one) ?? [];
      if (region === undefined)
        throw new MachinesError("invalid-input", `${JSON.stringify(one)} is not a region: write for example ams:2,fra`);
      return [region, own === undefined ? count : Number(own)];
    }),
  );
}
