// The engine's networks: one for each network of Apps. Machines in different networks cannot reach each other.
import { createHash } from "node:crypto";
import type { RuntimeHost } from "../runtime.ts";
import { labels } from "./container.ts";
import { allowing, type Engine } from "./engine.ts";

/** The networks of a service. */
export class Networks {
  readonly #engine: Engine;
  readonly #host: RuntimeHost;
  readonly #pending = new Map<string, Promise<string>>();

  constructor(engine: Engine, host: RuntimeHost) {
    this.#engine = engine;
    this.#host = host;
  }

  /** The engine's name of a network; it is created if needed. */
  ensure(network: string): Promise<string> {
    const pending = this.#pending.get(network);
    if (pending) return pending;
    const creating = this.#ensure(network).finally(() => this.#pending.delete(network));
    this.#pending.set(network, creating);
    return creating;
  }

  async #ensure(network: string): Promise<string> {
    const { docker } = this.#engine;
    const { dataId } = this.#host;
    const name = `machines-${dataId.slice(0, 8)}-${createHash("sha256").update(network).digest("hex").slice(0, 8)}`;
    if (await allowing([404], docker.getNetwork(name).inspect())) return name;
    // 409: another request has created it meanwhile.
    await allowing(
      [409],
      docker.createNetwork({
        Name: name,
        CheckDuplicate: true,
        Labels: { [labels.data]: dataId, [labels.network]: network },
      }),
    );
    return name;
  }

  /** Removes the networks that no Machine needs. */
  async removeUnused(): Promise<void> {
    const { docker } = this.#engine;
    const filters = { label: [`${labels.data}=${this.#host.dataId}`], dangling: ["true"] };
    const unused = await docker.listNetworks({ filters });
    if (unused.length === 0) return;
    // A container that was not started yet is not in its network.
    const needed = new Set(this.#host.ids().map((id) => this.#host.subject(id)?.network));
    for (const { Id, Labels } of unused)
      if (!needed.has(Labels?.[labels.network])) await allowing([403, 404, 409], docker.getNetwork(Id).remove());
  }
}
