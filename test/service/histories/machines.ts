// Machines that clients create and destroy while they compete for something: a name, a volume, or room in a region.
import type { Answer } from "../client.ts";
import { configOf, type Client } from "./client.ts";
import type { Input, Output } from "./history.ts";

/** Machines of an App that share an object. Answers name them by their ids, which the history knows as marks. */
export class Machines {
  readonly path: string;
  readonly #names: Map<string, string>;
  /** Machines that clients know and have not asked to destroy, by their marks. */
  readonly #known = new Map<string, string>();

  /** `names` are the marks of all Machines by their ids. */
  constructor(app: string, names: Map<string, string>) {
    this.path = `/apps/${app}/machines`;
    this.#names = names;
  }

  /** A client learns of a Machine. */
  know(id: string, mark: string): void {
    this.#names.set(id, mark);
    this.#known.set(mark, id);
  }

  /** Asks for a new Machine. */
  async create(
    client: Client,
    input: (mark: string) => Input,
    more: { readonly config?: object; readonly name?: string; readonly region?: string },
    refusal: (answer: Answer) => Output,
  ): Promise<void> {
    const mark = client.mark();
    const body = { skip_launch: true, ...more, config: { ...configOf(mark), ...more.config } };
    await client.ask(input(mark), ["POST", this.path, body], (answer) => {
      if (answer.status !== 200) return refusal(answer);
      this.know(answer.body.id, mark);
      return { result: "ok" };
    });
  }

  /** Asks for the destruction of a Machine that some client knows; false if there is none. */
  async destroy(
    client: Client,
    input: (mark: string) => Input,
    outputOf: (answer: Answer) => Output,
  ): Promise<boolean> {
    const marks = [...this.#known.keys()];
    const mark = marks[client.dice.below(Math.max(1, marks.length))];
    const id = mark === undefined ? undefined : this.#known.get(mark);
    if (mark === undefined || id === undefined) return false;
    this.#known.delete(mark);
    const answer = await client.ask(input(mark), ["DELETE", `${this.path}/${id}?force=true`], outputOf);
    if (!answer) this.#known.set(mark, id);
    return true;
  }
}
