// The dynamic binding as the engine's host drives it, without the engine: what goes in and comes out is JSON.
import { provider } from "../../provider/dynamic/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import type { TestService } from "./startService.ts";

/** One resource type of one configured provider. */
export interface Bound {
  check(olds: Values, news: Values): Promise<{ inputs: Values; failures: string[] }>;
  /** `same`, `update`, `replace`, or `delete-replace` when the old one goes first. */
  diff(id: string, state: Values, inputs: Values): Promise<"same" | "update" | "replace" | "delete-replace">;
  create(inputs: Values): Promise<{ id: string; state: Values }>;
  read(id: string, state: Values): Promise<{ state: Values; inputs: Values } | undefined>;
  update(id: string, state: Values, inputs: Values): Promise<Values>;
  delete(id: string, state: Values): Promise<void>;
}

/** Like the engine's transport: refuses `undefined`, keeps nothing but JSON. */
function json<T>(value: T): T {
  const holes = (at: unknown): boolean =>
    at === undefined || (typeof at === "object" && at !== null && Object.values(at).some(holes));
  if (holes(value)) throw new Error(`undefined in ${JSON.stringify(value)}`);
  return JSON.parse(JSON.stringify(value)) as T;
}

/** Configures the dynamic provider of a type for a service. `settings` are further keys of `machines:`. */
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
  return {
    async check(olds, news) {
      const { inputs, failures } = (await check?.(json(olds), json(news))) ?? missing();
      return { inputs: json(inputs as Values), failures: (failures ?? []).map(({ reason }) => reason) };
    },
    async diff(id, state, inputs) {
      const found = (await diff?.(id, json(state), json(inputs))) ?? missing();
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
        : { state: json(found.props as Values), inputs: json(found.inputs as Values) };
    },
    async update(id, state, inputs) {
      return json((((await update?.(id, json(state), json(inputs))) ?? missing()).outs ?? {}) as Values);
    },
    delete: async (id, state) => remove?.(id, json(state)),
  };
}
