// A thousand Machines in five regions.
import { expect, test } from "vitest";
import { labels, regionLabel } from "../../service/runtime/kubernetes/names.ts";
import { hang } from "../support/patience.mts";
import { onCluster } from "./clusters.ts";
import { regions } from "./nodes.ts";

const count = 1000;

test("a thousand Machines in five regions start, each with one Pod, spread over nodes, and nothing is left of them", async () => {
  const app = await onCluster();
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80 }] }];
  // What one client sends at a time.
  const width = 16;
  for (let begin = 0; begin < count; begin += width)
    await Promise.all(
      Array.from({ length: Math.min(width, count - begin) }, (_, i) =>
        app.create({ services }, { region: regions[(begin + i) % regions.length] }),
      ),
    );
  const states = async () => {
    const { body } = await app.call("GET", `${app.machines}?summary=true`);
    return body.filter(({ state }: { state: string }) => state === "started").length;
  };
  await expect.poll(states, { interval: 500, timeout: 4 * hang }).toBe(count);
  const pods = await app.pods();
  expect(new Set(pods.map(({ metadata }) => metadata?.labels?.[labels.machine])).size).toBe(count);
  expect(pods).toHaveLength(count);
  const { items: nodes } = await app.core.listNode({ labelSelector: "type=kwok" });
  for (const region of regions) {
    const names = nodes.filter(({ metadata }) => metadata?.labels?.[regionLabel] === region);
    const perNode = names.map(({ metadata }) => pods.filter(({ spec }) => spec?.nodeName === metadata?.name).length);
    expect(perNode.reduce((sum, one) => sum + one, 0)).toBe(count / regions.length);
    expect(Math.max(...perNode) - Math.min(...perNode)).toBeLessThanOrEqual(10);
  }
  await expect
    .poll(async () => {
      const { items } = await app.discovery.listEndpointSliceForAllNamespaces(app.selector);
      return items.filter(({ endpoints }) => endpoints?.[0]?.conditions?.ready).length;
    })
    .toBe(count);
  await app.call("DELETE", "/apps/web?force=true");
  // Each Machine takes several requests to remove.
  await expect.poll(app.left, { interval: 1000, timeout: 4 * hang }).toEqual([]);
});
