// A Machine: compare-and-set of its version.
import type { Answer, Call } from "../client.ts";
import { unexpected, type Client, type Target } from "./client.ts";
import type { Output } from "./history.ts";

/** Creates a Machine for the clients of a history. */
export async function machineTarget(call: Call, app: string, key: string): Promise<Target> {
  const machine = new TargetMachine(app, key);
  await machine.create(call);
  return machine;
}

class TargetMachine implements Target {
  readonly object = "machine";
  readonly key: string;
  readonly #machines: string;
  #path = "";
  /** The marks of the versions. */
  readonly #marks = new Map<string, string>();
  /** The version that each client saw last. */
  readonly #seen = new Map<number, string>();

  constructor(app: string, key: string) {
    this.key = key;
    this.#machines = `/apps/${app}/machines`;
  }

  async create(call: Call): Promise<void> {
    const made = await call("POST", this.#machines, { name: this.key, skip_launch: true, config: configOf("first") });
    if (made.status !== 200) throw unexpected(made);
    this.#path = `${this.#machines}/${made.body.id}`;
    this.#marks.set(made.body.version, "first");
  }

  act(client: Client): Promise<void> {
    return client.dice.chance(40) ? this.#read(client) : this.#update(client);
  }

  async #update(client: Client): Promise<void> {
    const mark = client.mark();
    const version = client.dice.chance(80) ? this.#seen.get(client.number) : undefined;
    const expected = version === undefined ? {} : { expected: this.#marks.get(version) ?? version };
    const body = { config: configOf(mark), current_version: version, skip_launch: true };
    await client.ask({ do: "update", mark, ...expected }, ["POST", this.#path, body], (answer) => {
      if (answer.status === 200) return this.#shown(client, answer, { result: "ok" });
      if (answer.status === 409 && answer.text.includes("version mismatch")) return { result: "mismatch" };
      throw unexpected(answer);
    });
  }

  async #read(client: Client): Promise<void> {
    await client.ask({ do: "read" }, ["GET", this.#path], (answer) => {
      if (answer.status !== 200) throw unexpected(answer);
      const { env, metadata } = answer.body.config;
      return this.#shown(client, answer, { result: "ok", mark: env.MARK, values: metadata ?? {} });
    });
  }

  /** Remembers the version of an answer. A version with two marks is a contradiction that no order explains. */
  #shown(client: Client, { body }: Answer, output: Output): Output {
    const mark = this.#marks.get(body.version) ?? body.config.env.MARK;
    this.#marks.set(body.version, mark);
    this.#seen.set(client.number, body.version);
    return mark === body.config.env.MARK ? output : { ...output, mark: `${mark} and ${body.config.env.MARK}` };
  }
}

const configOf = (mark: string) => ({ image: "nginx", env: { MARK: mark } });
