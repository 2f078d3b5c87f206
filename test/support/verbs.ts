// The calls of an engine for one resource type.
import type { Values } from "../../provider/core/resource.ts";
import type { Properties } from "./properties.ts";

/** The engine's calls for one resource type. */
export interface Verbs {
  check(olds: Values, news: Values): Promise<{ inputs: Values; failures: string[] }>;
  /** `same`, `update`, `replace`, or `delete-replace` if the old one is deleted first. */
  diff(id: string, state: Values, inputs: Values): Promise<"same" | "update" | "replace" | "delete-replace">;
  /** Names of the changed inputs, and of those that require deletion first if the program makes them replace; if reported. */
  changed?(
    id: string,
    state: Values,
    inputs: Values,
  ): Promise<{ readonly names: readonly string[]; readonly deleteBeforeReplace: boolean }>;
  create(inputs: Values): Promise<{ id: string; state: Values }>;
  /** Without inputs, the engine keeps those of the last successful update. */
  read(id: string, state: Values): Promise<{ state: Values; inputs?: Values } | undefined>;
  update(id: string, state: Values, inputs: Values): Promise<Values>;
  delete(id: string, state: Values): Promise<void>;
  /**
   * The preview of create and update, with `Unknown` for values that only the update determines; only the plugin has
   * previews.
   */
  readonly preview?: {
    create(inputs: Values): Promise<{ id: string; state: Properties }>;
    update(id: string, state: Values, inputs: Values): Promise<Properties>;
  };
}
