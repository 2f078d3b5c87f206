// A Machine: compare-and-set of its version, its metadata, and its lease, which guards updates.
import type { Answer, Call } from "../client.ts";
import { configOf, resultIn, unexpected, type Client, type Target } from "./client.ts";
import type { Output } from "./history.ts";

const nonceHeader = "svc-machine-lease-nonce";

/** Creates a Machine for the clients of a history. */
export async function machineTarget(call: Call, app: string, key: string): Promise<Target> {
  const body = { name: key, skip_launch: true, config: configOf("first") };
  const made = await call("POST", `/apps/${app}/machines`, body);
  if (made.status !== 200) throw unexpected(made);
  return new TargetMachine(`/apps/${app}/machines/${made.body.id}`, key, made.body.version);
}

interface Lease {
  readonly mark: string;
  readonly nonce: string;
}

class TargetMachine implements Target {
  readonly object = "machine";
  readonly key: string;
  readonly #path: string;
  /** The marks of the versions. */
  readonly #marks: Map<string, string>;
  /** The version that each client saw last. */
  readonly #seen = new Map<number, string>();
  /** The granted leases, oldest first, and the one that each client took last. */
  readonly #leases: Lease[] = [];
  readonly #own = new Map<number, Lease>();

  constructor(path: string, key: string, version: string) {
    this.key = key;
    this.#path = path;
    this.#marks = new Map([[version, "first"]]);
  }

  async act(client: Client): Promise<void> {
    const { dice } = client;
    const kind = dice.below(100);
    if (kind < 25) await this.#update(client);
    else if (kind < 45) await this.#patch(client);
    else if (kind < 65) await this.read(client);
    else if (kind < 78) await this.#acquire(client);
    else if (kind < 92) await this.#holding(client, dice.chance(40) ? "refresh" : "release");
    else await this.#readLease(client);
  }

  /** The version that a client requires, if it does. */
  #expected({ number, dice }: Client): { version?: string; expected?: string } {
    const version = dice.chance(60) ? this.#seen.get(number) : undefined;
    return version === undefined ? {} : { version, expected: this.#marks.get(version) ?? version };
  }

  /** The lease whose nonce a client sends: its own, or rarely an older one, also of another client. */
  #leaseOf({ number, dice }: Client) {
    return dice.chance(80) ? this.#own.get(number) : this.#leases[dice.below(Math.max(1, this.#leases.length))];
  }

  async #update(client: Client): Promise<void> {
    const mark = client.mark();
    const { version, expected } = this.#expected(client);
    const lease = this.#leaseOf(client);
    const values = client.dice.chance(50) ? { [key(client)]: mark } : {};
    const body = { config: { ...configOf(mark), metadata: values }, current_version: version, skip_launch: true };
    const input = { do: "update", mark, values, expected, nonce: lease?.mark };
    await client.ask(input, ["POST", this.#path, body, headerOf(lease)], (answer) => {
      if (answer.status === 200) return this.#shown(client, answer, { result: "ok" });
      if (answer.status !== 409) throw unexpected(answer);
      if (answer.text.includes("version mismatch")) return { result: "mismatch" };
      return { result: answer.text.includes("lease is not held with this nonce") ? "outdated" : "held" };
    });
  }

  async #patch(client: Client): Promise<void> {
    const { version, expected } = this.#expected(client);
    const values = { [key(client)]: client.dice.chance(30) ? null : client.mark() };
    const body = { metadata: values, machine_version: version };
    await client.ask({ do: "patch", values, expected }, ["PATCH", `${this.#path}/metadata`, body], (answer) =>
      resultIn(answer, { 204: "ok", 412: "mismatch" }),
    );
  }

  async read(client: Client): Promise<void> {
    await client.ask({ do: "read" }, ["GET", this.#path], (answer) => {
      const { result } = resultIn(answer, { 200: "ok" });
      const { env, metadata } = answer.body.config;
      return this.#shown(client, answer, { result, mark: env.MARK, values: metadata ?? {} });
    });
  }

  async #acquire(client: Client): Promise<void> {
    const mark = client.mark();
    const ttl = ttlOf(client);
    const body = { ttl, description: mark };
    await client.ask({ do: "acquire", mark, ttl }, ["POST", `${this.#path}/lease`, body], (answer) => {
      if (answer.status === 201) {
        const lease = { mark, nonce: answer.body.data.nonce };
        this.#leases.push(lease);
        this.#own.set(client.number, lease);
      }
      return resultIn(answer, { 201: "ok", 409: "held" });
    });
  }

  async #holding(client: Client, what: "refresh" | "release"): Promise<void> {
    const lease = this.#leaseOf(client);
    if (!lease) return this.#acquire(client);
    const ttl = what === "refresh" ? ttlOf(client) : undefined;
    const method = what === "refresh" ? "POST" : "DELETE";
    const request: Parameters<Call> = [method, `${this.#path}/lease`, ttl && { ttl }, headerOf(lease)];
    await client.ask({ do: what, nonce: lease.mark, ttl }, request, (answer) =>
      resultIn(answer, { [what === "refresh" ? 201 : 200]: "ok", 404: "missing", 409: "held" }),
    );
  }

  async #readLease(client: Client): Promise<void> {
    await client.ask({ do: "readLease" }, ["GET", `${this.#path}/lease`], (answer) => ({
      ...resultIn(answer, { 200: "ok", 404: "missing" }),
      mark: answer.body.data?.description,
    }));
  }

  /** Remembers the version of an answer. A version with two marks is a contradiction that no order explains. */
  #shown(client: Client, { body }: Answer, output: Output): Output {
    const mark = this.#marks.get(body.version) ?? body.config.env.MARK;
    this.#marks.set(body.version, mark);
    this.#seen.set(client.number, body.version);
    return mark === body.config.env.MARK ? output : { ...output, mark: `${mark} and ${body.config.env.MARK}` };
  }
}

/** A key of the metadata. */
const key = ({ dice }: Client): string => dice.one(["a", "b", "c"]);

// Short leases expire during a restart.
const ttlOf = ({ dice }: Client): number => (dice.chance(70) ? 1 : 3600);

const headerOf = (lease: Lease | undefined) => (lease ? { [nonceHeader]: lease.nonce } : undefined);
