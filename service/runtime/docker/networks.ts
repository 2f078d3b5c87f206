// The engine's networks: one for each network of Apps. Machines in different networks cannot reach each other.
import { KeyedQueue } from "../../../api/keyedQueue.ts";
import { Impossible } from "../reconciler/driver.ts";
import type { RuntimeHost } from "../runtime.ts";
import { formerNetworkName, networkName, networkOptions, newBridgeName } from "./bridges.ts";
import { labels } from "./container.ts";
import { allowing, type Engine } from "./engine.ts";
import type { Firewall } from "./firewall.ts";

/** The networks of a service. */
export class Networks {
  readonly #engine: Engine;
  readonly #host: RuntimeHost;
  readonly #firewall: Firewall;
  /** The requests about each network. A network is not removed while it is given to a Machine. */
  readonly #requests = new KeyedQueue();

  constructor(engine: Engine, host: RuntimeHost, firewall: Firewall) {
    this.#engine = engine;
    this.#host = host;
    this.#firewall = firewall;
  }

  /** The engine's name of a network; it is created if needed. */
  ensure(network: string): Promise<string> {
    return this.#requests.run(network, () => this.#ensure(network));
  }

  async #ensure(network: string): Promise<string> {
    const { docker } = this.#engine;
    const { dataId } = this.#host;
    const name = networkName(dataId, network);
    const former = formerNetworkName(dataId, network);
    if (await this.#has(name, network)) return name;
    // Earlier versions have created it. Its Machines go on there, unless it is the network of others.
    if (await this.#belongs(former, network)) return former;
    // 409: another request has created it meanwhile.
    await allowing(
      [409],
      docker.createNetwork({
        Name: name,
        CheckDuplicate: true,
        // The firewall has rules for IPv4 alone.
        EnableIPv6: false,
        Options: { [networkOptions.bridge]: newBridgeName(dataId), [networkOptions.isolate]: "true" },
        Labels: { [labels.data]: dataId, [labels.network]: network },
      }),
    );
    // What another request has created is not used unseen.
    await this.#has(name, network);
    await this.#firewall.hold();
    return name;
  }

  /**
   * Whether the engine has the network with this name.
   * @throws Impossible if that is another network.
   */
  async #has(name: string, network: string): Promise<boolean> {
    const belongs = await this.#belongs(name, network);
    if (belongs === false) throw new Impossible(`the engine has a network ${name}, which is not that of its App`);
    return belongs === true;
  }

  /** Whether the engine's network with this name is this one; undefined if there is none. */
  async #belongs(name: string, network: string): Promise<boolean | undefined> {
    const found = await allowing([404], this.#engine.docker.getNetwork(name).inspect());
    if (!found) return undefined;
    return found.Labels?.[labels.data] === this.#host.dataId && found.Labels[labels.network] === network;
  }

  /** Removes the networks that no Machine needs. */
  async removeUnused(): Promise<void> {
    const { docker } = this.#engine;
    const filters = { label: [`${labels.data}=${this.#host.dataId}`], dangling: ["true"] };
    const unused = await docker.listNetworks({ filters });
    if (unused.length === 0) return;
    for (const { Id, Labels } of unused) {
      const network = Labels?.[labels.network] ?? "";
      await this.#requests.run(network, async () => {
        // A container that was not started yet is not in its network.
        const isNeeded = this.#host.ids().some((id) => this.#host.subject(id)?.network === network);
        if (!isNeeded) await allowing([403, 404, 409], docker.getNetwork(Id).remove());
      });
    }
    this.#firewall.refresh();
  }
}
