// The ids of a state. Stacks in two backends or two organizations may have the same names, so the first new resource of a
// state gets a random id, and later resources repeat it.
import { randomBytes } from "node:crypto";
import { backendId, backendIn, stateIdIn } from "../backend.ts";

/**
 * The ids of the state that a run works on. They are random, and Pulumi compares inputs with a saved plan, so inputs never
 * contain them. A state has several ids if a run created a resource before it had read an existing id. It also keeps those of
 * a state that it was copied from in another backend, where that state may live on: it then gets an id of its own.
 */
export class StateIds {
  /** Those that were found in resources. */
  readonly #seen = new Set<string>();
  /** Generated for a state without an id, or whose ids come from another backend. */
  #generated: string | undefined;
  /** The backend of the state, once it is needed. */
  #backend: { readonly id: string | undefined } | undefined;

  /** Notes the id that a resource of the state has. */
  note(id: string | undefined): void {
    if (id !== undefined) this.#seen.add(id);
  }

  /** The id of new resources. */
  get own(): string {
    return this.#known() ?? (this.#generated ??= stateIdIn(randomBytes(6).toString("hex"), this.#backendId()));
  }

  /** Whether this run has seen an id of the state in this backend. If not, `own` is a new one. */
  get isKnown(): boolean {
    return this.#known() !== undefined;
  }

  /** Whether an id identifies this state, as far as this run knows. An id from another backend may be that of a living state. */
  has(id: string): boolean {
    if (id === this.#generated) return true;
    const from = backendIn(id);
    return this.#seen.has(id) && (from === undefined || from === this.#backendId());
  }

  /** The ids that identify this state, as far as this run knows. The first is `own`. */
  get all(): readonly string[] {
    return [...new Set([this.own, ...this.#seen])].filter((id) => this.has(id));
  }

  #known(): string | undefined {
    return [...this.#seen].find((id) => backendIn(id) === this.#backendId());
  }

  #backendId(): string | undefined {
    return (this.#backend ??= { id: backendId() }).id;
  }
}
