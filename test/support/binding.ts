// Both bindings behind one interface, called as an engine does, with JSON.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { provider } from "../../provider/dynamic/index.ts";
import { CONTEXT, contextOf, type Values } from "../../provider/core/resource.ts";
import { parseDuration } from "../../api/schema.ts";
import { runs } from "../../provider/dynamic/run.ts";
import { drive, urnOf } from "./driver.ts";
import { withMutant } from "./mutants.ts";
import { startPlugin, unfinishedIn } from "./plugin.ts";
import { revealed, toStruct, type Properties } from "./properties.ts";
import type { TestService } from "./startService.ts";
import type { Verbs } from "./verbs.ts";

/** One resource type of one configured provider. */
export interface Bound extends Verbs {
  /** Begins another run of the engine, which forgets the previous one. */
  nextRun(): Promise<void>;
}

/** Where a binding runs, and its connection to the service. */
export interface Binding {
  readonly name: "dynamic" | "plugin";
  start(
    type: string,
    service: Pick<TestService, "url" | "token">,
    settings?: Readonly<Record<string, string>>,
  ): Promise<{ readonly bound: Bound; readonly close: () => Promise<void> }>;
}

/** Like the engine's transport: refuses `undefined`, keeps only JSON. */
function json<T>(value: T): T {
  const hasUndefined = (at: unknown): boolean =>
    at === undefined || (typeof at === "object" && at !== null && Object.values(at).some(hasUndefined));
  if (hasUndefined(value)) throw new Error(`undefined in ${JSON.stringify(value)}`);
  return JSON.parse(JSON.stringify(value)) as T;
}

/** Configures the dynamic provider of a type for a service. `settings` are additional keys of `machines:`. */
export function bind(
  type: string,
  service: Pick<TestService, "url" | "token">,
  settings: Readonly<Record<string, string>> = {},
): Bound {
  const { check, configure, create, delete: remove, diff, read, update } = provider(type);
  const config: Record<string, string> = { endpoint: service.url, token: service.token, ...settings };
  const get = (key: string) => config[key.replace("machines:", "")];
  void configure?.({ config: { get, require: (key: string) => get(key) ?? "" } });
  const missing = (): never => {
    throw new Error("the binding lacks a method");
  };
  return withMutant(type, {
    async check(olds, news) {
      const { inputs, failures } = (await check?.(json(olds), json(news))) ?? missing();
      return { inputs: json(inputs as Values), failures: (failures ?? []).map(({ reason }) => reason) };
    },
    async diff(id, state, inputs) {
      // The host adds the reference to the provider to every state.
      const found = (await diff?.(id, { __provider: type, ...json(state) }, json(inputs))) ?? missing();
      if (found.changes === false) return "same";
      return (found.replaces ?? []).length === 0 ? "update" : found.deleteBeforeReplace ? "delete-replace" : "replace";
    },
    async create(inputs) {
      const { id, outs } = await create(json(inputs));
      return { id, state: json(outs as Values) };
    },
    async read(id, state) {
      const found = (await read?.(id, json(state))) ?? missing();
      return found.id === undefined
        ? undefined
        : {
            state: json(found.props as Values),
            ...(found.inputs === undefined ? {} : { inputs: json(found.inputs as Values) }),
          };
    },
    async update(id, state, inputs) {
      return json((((await update?.(id, json(state), json(inputs))) ?? missing()).outs ?? {}) as Values);
    },
    delete: async (id, state) => remove?.(id, json(state)),
    nextRun() {
      runs.begin();
      return Promise.resolve();
    },
  });
}

/** The key under which this driver of the plugin keeps the engine's data about a resource beside its values. */
const ENGINE = "__engine";

interface Known {
  readonly urn: string;
  readonly timeouts: Readonly<Partial<Record<"create" | "update" | "delete", string>>>;
}

/** Starts the built plugin and configures it for a service. The URN replaces the dynamic binding's context. */
export async function bindPlugin(
  type: string,
  service: Pick<TestService, "url" | "token">,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly bound: Bound; readonly close: () => Promise<void> }> {
  const plugin = await startPlugin();
  const args = toStruct({ endpoint: service.url, token: service.token, ...settings });
  let hasCreated = false;
  const nextRun = async (): Promise<void> => {
    hasCreated = false;
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
  };
  await nextRun();
  let count = 0;
  const knownOf = (values: Values): Known =>
    (values[ENGINE] as Known | undefined) ?? { urn: urnOf(type, "got"), timeouts: {} };
  const bare = ({ [ENGINE]: _, ...values }: Values): Properties => json(values);
  const kept = (values: Properties, known: Known): Values => json({ ...(revealed(values) as Values), [ENGINE]: known });
  const driven = (values: Values) => {
    const known = knownOf(values);
    const seconds = (verb: keyof Known["timeouts"]) => (parseDuration(known.timeouts[verb] ?? "0s") ?? 0) / 1e9;
    return { known, seconds, resource: drive(plugin.client, known.urn) };
  };
  const bound: Bound = {
    async check(olds, { [CONTEXT]: _, ...news }) {
      // The dynamic binding's context: the name in the program, and the timeouts.
      const { name, timeouts = {} } = contextOf({ [CONTEXT]: _ });
      const before = (news[ENGINE] ?? olds[ENGINE]) as Known | undefined;
      const known = { urn: before?.urn ?? urnOf(type, name ?? `made-${++count}`), timeouts };
      const { inputs, failures } = await drive(plugin.client, known.urn).check(bare(news), { olds: bare(olds) });
      return { inputs: kept(inputs, known), failures: failures.map(({ reason }) => reason) };
    },
    async diff(id, state, inputs) {
      const { resource } = driven(inputs);
      const found = await resource.diff({ id, state: bare(state), inputs: bare(inputs) });
      if (!found.changes) return "same";
      return found.replaces.length === 0 ? "update" : found.deleteBeforeReplace ? "delete-replace" : "replace";
    },
    async create(inputs) {
      hasCreated = true;
      const { known, resource, seconds } = driven(inputs);
      const { id, state } = await withState(known, resource.create(bare(inputs), { timeout: seconds("create") }));
      return { id, state: kept(state, known) };
    },
    async read(id, state) {
      const { known, resource } = driven(state);
      const before = bare(state);
      const found = await resource.read(id, Object.keys(before).length > 0 ? { state: before, inputs: before } : {});
      return found && { state: kept(found.state, known), inputs: kept(found.inputs ?? {}, known) };
    },
    async update(id, state, inputs) {
      const { known, resource, seconds } = driven(inputs);
      const change = { id, state: bare(state), inputs: bare(inputs), timeout: seconds("update") };
      return kept(await withState(known, resource.update(change)), known);
    },
    async delete(id, state) {
      const { resource, seconds } = driven(state);
      // The engine never deletes an object that it has created in the same run.
      if (hasCreated) await nextRun();
      await resource.delete({ id, state: bare(state), timeout: seconds("delete") });
    },
    nextRun,
    preview: {
      create: (inputs) => driven(inputs).resource.previewCreate(bare(inputs)),
      update: (id, state, inputs) =>
        driven(inputs).resource.previewUpdate({ id, state: bare(state), inputs: bare(inputs) }),
    },
  };
  return { bound, close: () => plugin.close() };

  /** An object that exists in a wrong form is reported like in the dynamic binding. */
  async function withState<T>(known: Known, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      const found = unfinishedIn(error);
      throw found
        ? Object.assign(new Error(found.reasons.join("\n")), { ...found, properties: kept(found.state, known) })
        : error;
    }
  }
}

/** Both bindings, for suites that test each of them. */
export const bindings: readonly Binding[] = [
  {
    name: "dynamic",
    start: (type, service, settings) =>
      Promise.resolve({ bound: bind(type, service, settings), close: () => Promise.resolve() }),
  },
  { name: "plugin", start: bindPlugin },
];
