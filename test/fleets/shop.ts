// A fleet in a simulated service, for tests of what happens to it over several runs.
import { expect } from "vitest";
import { MachinesError } from "../../provider/client/errors.ts";
import { failures, up, type Asked } from "../support/modelEngine.ts";
import { emptyStack, type Declared, type Stack } from "../support/modelStack.ts";
import type { Death, ProviderProcess, Simulation } from "../support/simulation.ts";

/** A Machine as the service has it. */
interface Row {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly tag: string;
  readonly instance: string;
}

/** A volume as the service has it. */
export interface VolumeRow {
  readonly id: string;
  readonly name: string;
  readonly attached: string | null;
}

/** The result of an `up`. */
interface Ran {
  /** The errors, as the user sees them. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** What the run said while it worked. */
  readonly progress: readonly string[];
  readonly process: ProviderProcess;
}

/** The App of the fleets. */
export const app: Declared = { type: "App", name: "shop", inputs: { name: "shop" } };
const image = (tag: string): string => `registry.example.com/shop:${tag}`;

/** The App `shop`, and its fleet `web` of three Machines in one stack. */
export class Shop {
  stack: Stack = emptyStack();
  readonly #simulation: Simulation;
  readonly #usual: object;

  constructor(simulation: Simulation, usual: object = {}) {
    this.#simulation = simulation;
    this.#usual = usual;
  }

  /** The fleet as the program declares it. */
  fleet(tag: string, { config = {}, ...more }: { config?: object; [input: string]: unknown } = {}): Declared {
    const inputs = {
      ...{ app: { $of: "shop", get: "id" }, name: "web", regions: { ams: 3 }, progressDeadline: "30s" },
      ...this.#usual,
      ...more,
      config: { image: image(tag), ...config },
    };
    return { type: "Fleet", name: "web", inputs };
  }

  /** Runs `up` with a fleet, or without it, in a new process. */
  async up(
    fleet: Declared | undefined,
    { settings = {}, ...asked }: Asked & { settings?: Record<string, string> } = {},
  ) {
    const process = this.#simulation.start({ settings });
    const report = await process.run(() => up(this.stack, [app, ...(fleet ? [fleet] : [])], process, asked));
    if (report === "died") throw new Error("the process died");
    return this.#ran(process, failures(report));
  }

  /** Runs `up`, which must succeed. */
  async succeed(fleet: Declared | undefined): Promise<Ran> {
    const ran = await this.up(fleet);
    expect(ran.errors).toEqual([]);
    return ran;
  }

  /** Runs `up` in a process that dies at a request. */
  killed(fleet: Declared, death: Death): Promise<unknown> {
    const process = this.#simulation.start({ death });
    return process.run(() => up(this.stack, [app, fleet], process));
  }

  /** Runs `up`, which is cancelled after some time. */
  async cancelled(fleet: Declared, afterMs: number): Promise<Ran> {
    const controller = new AbortController();
    const process = this.#simulation.start({ signal: controller.signal });
    this.#simulation.time.after(afterMs, () =>
      controller.abort(new MachinesError("cancelled", "the operation was cancelled")),
    );
    const report = await process.run(() => up(this.stack, [app, fleet], process));
    if (report === "died") throw new Error("the process died");
    return this.#ran(process, failures(report));
  }

  #ran(process: ProviderProcess, failed: readonly { readonly error?: unknown }[]): Ran {
    const said = (kind: string) => process.said.filter((one) => one.kind === kind).map(({ text }) => text);
    const messages = failed.map(({ error }) => {
      const { reasons, message } = error as { reasons?: readonly string[]; message?: string };
      return reasons?.join("\n") ?? message ?? String(error);
    });
    return { errors: messages, warnings: said("warning"), progress: said("progress"), process };
  }

  /** The fleet's resource in the state. */
  get state(): Record<string, unknown> {
    return this.stack.resources.find(({ type }) => type === "Fleet")?.state ?? {};
  }

  /** All Machines that exist, by name. */
  machines(): readonly Row[] {
    return this.#all<Row>(
      "SELECT id, name, state, image_ref ->> '$.tag' AS tag, version AS instance FROM machines WHERE destroyed_at IS NULL AND state != 'destroying' ORDER BY name",
    );
  }

  /** How many Machines run each image. */
  tags(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { tag } of this.machines()) counts[tag] = (counts[tag] ?? 0) + 1;
    return counts;
  }

  /** All volumes that exist, by name. */
  volumes(): readonly VolumeRow[] {
    return this.#all<VolumeRow>(
      "SELECT id, name, machine AS attached FROM volumes WHERE state IN ('created', 'hydrating', 'creating') ORDER BY name",
    );
  }

  #all<T>(query: string): readonly T[] {
    return this.#simulation.service.service.context.store.all<T>(query);
  }

  /** A request of another client. */
  async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { url, token } = this.#simulation.service;
    const answer = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }
}

/** The Machine of a name. */
export function named(machines: readonly Row[], name: string): Row {
  const found = machines.find((one) => one.name === name);
  if (!found) throw new Error(`no Machine ${name} among ${machines.map((one) => one.name).join(", ")}`);
  return found;
}
