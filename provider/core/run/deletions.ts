// Counts the deletions that are running in an App or a cluster: its own waits for them.
import type { Config } from "../../client/config.ts";

type Place = { readonly config: Pick<Config, "endpoint"> };

/** The deletions of a run. */
export class Deletions {
  readonly #running = new Map<string, number>();

  /** Counts a deletion in an App or a cluster as running. @returns a function that ends the count */
  begin(api: Place, parent: string): () => void {
    const add = (change: number): void => void this.#running.set(keyOf(api, parent), this.in(api, parent) + change);
    add(1);
    return () => add(-1);
  }

  /** How many deletions are running in an App or a cluster, including its own. */
  in(api: Place, parent: string): number {
    return this.#running.get(keyOf(api, parent)) ?? 0;
  }
}

const keyOf = ({ config: { endpoint } }: Place, parent: string): string => `${endpoint} ${parent}`;
