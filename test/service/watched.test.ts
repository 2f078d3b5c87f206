// Watches of a Kubernetes cluster that are closed (service/runtime/kubernetes/watched.ts). test/kubernetes/ has those of a real one.
import { setImmediate as turn } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { expect, test, vi } from "vitest";
import type { Cluster } from "../../service/runtime/kubernetes/cluster.ts";
import { kinds } from "../../service/runtime/kubernetes/names.ts";
import { Watched } from "../../service/runtime/kubernetes/watched.ts";
import { gate } from "../support/gate.ts";

const log = { info: () => {}, warn: () => {}, error: () => {} };

test("a watch that is closed during its list reports no object to the closed service, and is not opened any more", async () => {
  const [asked, answered] = [gate(), gate()];
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "one", server: "http://127.0.0.1:1", skipTLSVerify: true }, { name: "one" });
  const opens = vi.spyOn(config, "getCurrentCluster");
  const list = async () => {
    asked.open();
    await answered.opened;
    return { metadata: { resourceVersion: "1" }, items: [{ metadata: { name: "pod", namespace: "default" } }] };
  };
  const seen: unknown[] = [];
  const cluster = { config, list } as unknown as Cluster;
  const watched = new Watched(cluster, kinds.pod, undefined, log, (object) => seen.push(object));
  const begun = watched.begin();
  await asked.opened;
  await watched.close();
  answered.open();
  await begun;
  // The library has used the list in this turn.
  await turn();
  expect([watched.all().length, seen, opens.mock.calls]).toEqual([1, [], []]);
});
