// A program whose resources get other names, parents, components, stacks and projects, and what that does to each.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onService } from "./optionMatrix.ts";
import type { Ran, Stack } from "./stack.ts";
import { isWrite, type TestService } from "./startService.ts";

/** The resources that the page has columns for, by their names in the program. */
export const columns = {
  ...{ app: "App", volume: "Volume", machine: "Machine", fleet: "Fleet", cluster: "PostgresCluster" },
  ...{ secret: "Secret", secrets: "AppSecrets" },
} as const;
/** The names in the program of all resources. */
export const names = [...Object.keys(columns), "database", "attachment", "metadata"];

/** How the program names its resources, and where they are. */
export interface Layout {
  /** Begins each name. */
  readonly prefix: string;
  /** Name of the component that has all of them. */
  readonly tier?: string | undefined;
  /** Names and components that they had. */
  readonly aliases?: readonly { readonly prefix?: string; readonly tier?: string | null }[];
  /** Names that the component had. */
  readonly tierAliases?: readonly string[];
  /** The resources that the program declares; all when left out. */
  readonly only?: readonly string[];
  /** How many Machines the fleet has. */
  readonly count?: number;
  /** Other inputs of these. */
  readonly more?: Readonly<Record<string, object>>;
}

/** The program, in both bindings. */
export const program = `
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const { prefix, tier, aliases = [], tierAliases = [], only, count = 2, more = {} } = JSON.parse(readFileSync("layout.json", "utf8"));
const type = "shop:index:Tier";
const component = tier === undefined ? undefined
  : new pulumi.ComponentResource(type, tier, {}, { aliases: tierAliases.map((name: string) => ({ name })) });
const made: Record<string, any> = {};
const image = "registry.example.com/shop:1";
function declare(kind: string, name: string, inputs: object) {
  if (only !== undefined && !only.includes(name)) return;
  const before = aliases.map((alias: any) => ({
    ...(alias.prefix === undefined ? {} : { name: alias.prefix + name }),
    ...(alias.tier === undefined ? {} : { parent: alias.tier === null ? pulumi.rootStackResource : pulumi.createUrn(alias.tier, type) }),
  }));
  made[name] = new (machines as any)[kind](prefix + name, { ...inputs, ...more[name] }, { parent: component, aliases: before });
}
const idOf = (name: string, otherwise: string) => made[name]?.id ?? otherwise;
declare("App", "app", { name: "shop" });
const app = idOf("app", "shop");
declare("Volume", "volume", { app, region: "ams", sizeGb: 1 });
if (made["volume"]) declare("Machine", "machine", { app, region: "ams", config: { image, mounts: [{ volume: made["volume"].id, path: "/data" }] } });
declare("Fleet", "fleet", { app, regions: { ams: count }, config: { image }, volume: { path: "/data", sizeGb: 1 } });
declare("PostgresCluster", "cluster", { region: "fra", plan: "basic" });
if (made["cluster"]) declare("PostgresDatabase", "database", { cluster: made["cluster"].id, name: "orders" });
if (made["cluster"]) declare("PostgresAttachment", "attachment", { cluster: made["cluster"].id, app, secretName: "DATABASE_URL" });
declare("Secret", "secret", { app, name: "KEY", value: pulumi.secret("hidden-value") });
declare("AppSecrets", "secrets", { app, values: { A: "1", B: pulumi.secret("hidden-other") } });
if (made["machine"]) declare("MachineMetadata", "metadata", { app, machine: made["machine"].id, values: { team: "shop", stage: "prod" }, adopt: true });
`;

interface Entry {
  readonly urn: string;
  readonly id?: string;
  readonly viewOf?: string;
}

/** How the page writes what a step did to a resource. */
export const kept = "kept";
/** The same, where the command was needed. */
export const keptAfter = "kept, after `forget-views`";

/** The stacks of one story, which share a folder and a backend. */
export class Story {
  readonly stack: Stack;
  readonly service: TestService;
  /** Name of the project and of its stack. */
  project = "one";
  at = "dev";
  layout: Layout = { prefix: "" };
  #before: Readonly<Record<string, string>> = {};

  constructor(stack: Stack, service: TestService) {
    this.stack = stack;
    this.service = service;
    stack.program(program);
  }

  /** The stack with its project, for commands that work from other projects. */
  get ref(): string {
    return `organization/${this.project}/${this.at}`;
  }

  /** Changes the program. */
  write(layout: Layout): void {
    this.layout = layout;
    writeFileSync(join(this.stack.dir, "layout.json"), JSON.stringify(layout));
  }

  /** Gives the project another name, in its file. */
  nameProject(name: string): void {
    this.project = name;
    const file = join(this.stack.dir, "Pulumi.yaml");
    writeFileSync(file, readFileSync(file, "utf8").replace(/^name: .*$/m, `name: ${name}`));
  }

  /** The state, as the backend has it. */
  entries(): readonly Entry[] {
    const file = join(this.stack.dir, ".state/.pulumi/stacks", this.project, `${this.at}.json`);
    const { checkpoint } = JSON.parse(readFileSync(file, "utf8")) as {
      checkpoint: { latest?: { resources?: readonly Entry[] } };
    };
    return checkpoint.latest?.resources ?? [];
  }

  /** The names below fleets in the state. */
  views(): readonly string[] {
    return this.entries().flatMap(({ urn, viewOf }) => (viewOf === undefined ? [] : [urn]));
  }

  /** URN and id of each of our resources in the state, by the name in the program. */
  own(): Readonly<Record<string, { readonly urn: string; readonly id: string }>> {
    const { prefix } = this.layout;
    const found = this.entries().flatMap(({ urn, id = "", viewOf }) => {
      const name = urn.slice(urn.lastIndexOf("::") + 2 + prefix.length);
      return names.includes(name) && viewOf === undefined ? [[name, { urn, id }] as const] : [];
    });
    return Object.fromEntries(found);
  }

  /** The URN of a component. */
  urnOf(tier: string): string {
    return this.entries().find(({ urn }) => urn.endsWith(`::${tier}`))?.urn ?? "";
  }

  #ids(): Record<string, string> {
    return Object.fromEntries(Object.entries(this.own()).map(([name, { id }]) => [name, id]));
  }

  /** Runs the program, and returns the requests to change something that the service got. */
  async up(): Promise<Ran & { readonly writes: readonly string[] }> {
    const from = this.service.requests.length;
    const ran = await this.stack.run(["up", "--yes", "--skip-preview", "--stack", this.at]);
    const writes = this.service.requests.slice(from).filter(isWrite);
    return { ...ran, writes: writes.map(({ operation = "" }) => operation) };
  }

  /** Takes the views out of the state, which asks the service nothing. */
  async forgetViews(installed: string): Promise<void> {
    const from = this.service.requests.length;
    const command = join(installed, "node_modules/.bin/pulumi-machines");
    const { code, output } = await this.stack.run(["forget-views", "--yes", "--stack", this.at], {
      command,
      plain: true,
    });
    if (code !== 0 || this.service.requests.length > from) throw new Error(output);
  }

  /** Notes what there is before a step. */
  begin(): void {
    this.#before = this.#ids();
  }

  /**
   * Runs the program as it is now, and says what became of each resource. Nothing may be changed on the service, except for the tags of
   * a fleet's Machines.
   */
  async step(layout: Partial<Layout>, installed: string): Promise<Readonly<Record<string, string>>> {
    const before = await onService(this.service);
    this.write({ ...this.layout, aliases: [], tierAliases: [], ...layout });
    let ran = await this.up();
    const isRefused = ran.code !== 0 && ran.output.includes("`npx pulumi-machines forget-views`");
    if (isRefused) {
      if (ran.writes.length > 0) throw new Error(`${ran.writes.join()}\n${ran.output}`);
      await this.forgetViews(installed);
      ran = await this.up();
    }
    const writes = ran.writes.filter(
      (operation) => !(isRefused && /^machines\.(?:acquireLease|releaseLease|patchMetadata)$/.test(operation)),
    );
    if (ran.code !== 0 || writes.length > 0) throw new Error(`${writes.join()}\n${ran.output}`);
    const [after, planned, there] = [this.#ids(), await this.#planned(), await onService(this.service)];
    const gone = [...before].filter((id) => !there.has(id));
    if (gone.length > 0) throw new Error(`gone: ${gone.join()}`);
    const declared = this.layout.only ?? names;
    const words = declared.map((name) => {
      const isSame = after[name] !== undefined && after[name] === this.#before[name];
      const next = planned[this.layout.prefix + name];
      if (isSame && next === undefined) return [name, isRefused && name === "fleet" ? keptAfter : kept] as const;
      return [name, isSame ? `next preview: ${next}` : `${this.#before[name]} became ${after[name]}`] as const;
    });
    return Object.fromEntries(words);
  }

  /** What a preview would do, by the name in the state. */
  async #planned(): Promise<Readonly<Record<string, string>>> {
    const { code, stdout, output } = await this.stack.run(["preview", "--json", "--stack", this.at]);
    if (code !== 0) throw new Error(output);
    const { steps } = JSON.parse(stdout) as { steps: { op: string; urn: string }[] };
    const changes = steps.filter(
      ({ op, urn }) => !["same", "refresh"].includes(op) && !/pulumi:(pulumi:Stack|providers:)/.test(urn),
    );
    return Object.fromEntries(changes.map(({ op, urn }) => [urn.slice(urn.lastIndexOf("::") + 2), op]));
  }
}
