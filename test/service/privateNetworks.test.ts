// The networks of Apps, as networks of a container engine and as namespaces of a Kubernetes cluster: each has its own.
import { expect, test } from "vitest";
import { bridgePrefix, formerNetworkName, networkName, networkOptions } from "../../service/runtime/docker/bridges.ts";
import { labels } from "../../service/runtime/docker/container.ts";
import type { Engine } from "../../service/runtime/docker/engine.ts";
import type { Firewall } from "../../service/runtime/docker/firewall.ts";
import { Networks } from "../../service/runtime/docker/networks.ts";
import { Cluster } from "../../service/runtime/kubernetes/cluster.ts";
import * as kubernetes from "../../service/runtime/kubernetes/names.ts";
import { Namespaces } from "../../service/runtime/kubernetes/namespaces.ts";
import type { RuntimeHost } from "../../service/runtime/runtime.ts";
import { fakeCluster } from "../support/fakeCluster.ts";
import { afterThisTest } from "../support/leftovers.ts";

const dataId = "0123456789abcdef";
/** Networks of two organizations whose names begin with the same 32 bits as a hash. A search for such a pair takes a second. */
const [blue, red] = ["blue/net-278843", "red/net-25818"] as const;
const log = { info: () => {}, warn: () => {}, error: () => {} };

interface Network {
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Options: Readonly<Record<string, string>>;
}

/** A container engine that has only these networks. */
function engineWith(...before: readonly Pick<Network, "Name" | "Labels">[]) {
  const found = new Map<string, Network>(before.map((one) => [one.Name, { Options: {}, ...one }]));
  const failed = (statusCode: number) => Promise.reject(Object.assign(new Error("refused"), { statusCode }));
  const docker = {
    getNetwork: (name: string) => ({ inspect: () => Promise.resolve(found.get(name) ?? failed(404)) }),
    createNetwork: (network: Network) =>
      found.has(network.Name) ? failed(409) : Promise.resolve(void found.set(network.Name, network)),
  };
  const firewall = { hold: () => Promise.resolve() };
  return {
    found,
    networks: new Networks({ docker } as unknown as Engine, { dataId } as RuntimeHost, firewall as unknown as Firewall),
  };
}

const labelled = (network: string) => ({ [labels.data]: dataId, [labels.network]: network });

test("the names of two organizations' networks share no part that can be searched for", () => {
  expect(formerNetworkName(dataId, blue)).toBe(formerNetworkName(dataId, red));
  expect(networkName(dataId, blue)).not.toBe(networkName(dataId, red));
  expect(kubernetes.formerNamespaceOf(dataId, blue)).toBe(kubernetes.formerNamespaceOf(dataId, red));
  expect(kubernetes.namespaceOf(dataId, blue)).not.toBe(kubernetes.namespaceOf(dataId, red));
  // A name of a namespace has at most 63 characters.
  expect(kubernetes.namespaceOf(dataId, blue)).toMatch(/^[0-9a-z-]{40,63}$/);
});

test("two organizations' networks are two networks of the engine, with a bridge each", async () => {
  const { found, networks } = engineWith();
  const names = [await networks.ensure(blue), await networks.ensure(red), await networks.ensure(blue)];
  expect(names).toEqual([networkName(dataId, blue), networkName(dataId, red), networkName(dataId, blue)]);
  const bridges = [...found.values()].map(({ Options }) => Options[networkOptions.bridge] ?? "");
  expect(new Set(bridges).size).toBe(2);
  for (const bridge of bridges) {
    expect(bridge).toHaveLength(15);
    expect(bridge.startsWith(bridgePrefix(dataId))).toBe(true);
  }
});

test("the engine's network of an earlier version is used further, by the network of its label alone", async () => {
  const former = formerNetworkName(dataId, blue);
  const { networks } = engineWith({ Name: former, Labels: labelled(blue) });
  expect(await networks.ensure(red)).toBe(networkName(dataId, red));
  expect(await networks.ensure(blue)).toBe(former);
});

test("no Machine joins an engine's network of another label", async () => {
  const name = networkName(dataId, blue);
  for (const Labels of [labelled(red), { ...labelled(blue), [labels.data]: "other" }, {}]) {
    const { networks } = engineWith({ Name: name, Labels });
    await expect(networks.ensure(blue)).rejects.toThrow(`${name}, which is not that of its App`);
  }
});

/** The namespaces of a service on a fake cluster, which has these before: the networks of their annotations by name. */
async function namespacesWith(before: Readonly<Record<string, string>>) {
  const cluster = await fakeCluster("ams");
  for (const [name, network] of Object.entries(before))
    cluster.put(`/api/v1/namespaces/${name}`, {
      metadata: {
        name,
        labels: { [kubernetes.labels.data]: dataId },
        annotations: { [kubernetes.annotations.network]: network },
      },
    });
  const { signal: closed } = new AbortController();
  const host = { dataId, log, closed } as unknown as RuntimeHost;
  const namespaces = new Namespaces(Cluster.of(), host, () => true);
  afterThisTest(() => namespaces.close());
  await namespaces.begin();
  const networkOf = (name: string) =>
    cluster.all("Namespace").find(({ metadata }) => metadata.name === name)?.metadata.annotations?.[
      kubernetes.annotations.network
    ];
  return { namespaces, networkOf };
}

test("a namespace of an earlier version is used further, by the network of its annotation alone", async () => {
  const former = kubernetes.formerNamespaceOf(dataId, blue);
  const { namespaces, networkOf } = await namespacesWith({ [former]: blue });
  expect(await namespaces.ensure(red)).toBe(kubernetes.namespaceOf(dataId, red));
  expect(namespaces.nameOf(blue)).toBe(former);
  expect(await namespaces.ensure(blue)).toBe(former);
  expect([networkOf(former), networkOf(kubernetes.namespaceOf(dataId, red))]).toEqual([blue, red]);
});

test("no Machine joins a namespace of another annotation", async () => {
  const name = kubernetes.namespaceOf(dataId, blue);
  const { namespaces, networkOf } = await namespacesWith({ [name]: red });
  await expect(namespaces.ensure(blue)).rejects.toThrow(`${name}, which is not that of its App`);
  expect(networkOf(name)).toBe(red);
});
