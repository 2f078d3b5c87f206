// The cluster fails, or the service does; Machines converge, nothing is there twice, and nothing is left over.
import { readFileSync } from "node:fs";
import { expect, inject, test } from "vitest";
import { labels, selectorOf } from "../../service/runtime/kubernetes/names.ts";
import { caller, requestsOfWeb } from "../service/client.ts";
import { folder, foreground } from "../service/command.ts";
import { kill } from "../support/processes.ts";
import { apiProxy, faultyApi, targetOf, type Fault } from "./apiProxy.ts";
import { clientsOf, onCluster, ownCluster } from "./clusters.ts";

const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }];

type App = Awaited<ReturnType<typeof onCluster>>;

/** Whether each Machine has one running Pod. */
async function eachHasOne(app: App, ids: readonly string[]): Promise<void> {
  for (const id of ids) await app.reaches(id, "started");
  const pods = await app.pods();
  expect(pods.map(({ metadata }) => metadata?.labels?.[labels.machine]).sort()).toEqual([...ids].sort());
}

async function removeAll(app: App): Promise<void> {
  await app.call("DELETE", "/apps/web?force=true");
  await expect.poll(app.left).toEqual([]);
}

test.each<{ readonly name: string; readonly treat: Fault }>([
  { name: "every watch ends after one event", treat: ({ isWatch }) => (isWatch ? "cutWatch" : "pass") },
  {
    name: "a third of the requests gets 429",
    treat: ({ isWatch }, random) => (!isWatch && random < 0.33 ? "throttle" : "pass"),
  },
  {
    name: "a third of the answers is lost",
    treat: ({ isWatch }, random) => (!isWatch && random < 0.33 ? "cutAnswer" : "pass"),
  },
  {
    name: "a third of the requests is lost",
    treat: ({ isWatch }, random) => (!isWatch && random < 0.33 ? "cutRequest" : "pass"),
  },
  { name: "every request is slow", treat: ({ isWatch }) => (isWatch ? "pass" : "delay") },
])("Machines converge while $name", async ({ treat }) => {
  const cluster = await ownCluster();
  const { kubeconfig, faults } = await faultyApi(cluster, treat);
  const app = await onCluster({ kubeconfig });
  faults.isOn = true;
  const ids = await Promise.all(Array.from({ length: 3 }, () => app.create({ services })));
  for (const id of ids) await app.reaches(id, "started");
  await app.post(ids[0] ?? "", "stop");
  await app.reaches(ids[0] ?? "", "stopped");
  await app.post(ids[0] ?? "", "start");
  for (const id of ids) await app.reaches(id, "started");
  faults.isOn = false;
  await eachHasOne(app, ids);
  await removeAll(app);
});

test.each(["kube-apiserver", "etcd"])(
  "Machines converge when %s is killed, stands still, and starts again",
  async (name) => {
    const cluster = await ownCluster();
    const app = await onCluster({ kubeconfig: cluster.kubeconfig });
    const ids = [await app.create({ services })];
    await app.reaches(ids[0] ?? "", "started");
    cluster.ask(name, "kill");
    ids.push(await app.create({ services }));
    cluster.ask(name, "start");
    await cluster.untilReady();
    await eachHasOne(app, ids);
    cluster.ask(name, "pause");
    ids.push(await app.create({ services }));
    await app.post(ids[0] ?? "", "restart");
    cluster.ask(name, "continue");
    await cluster.untilReady();
    await eachHasOne(app, ids);
    cluster.ask(name, "stop");
    cluster.ask(name, "start");
    await cluster.untilReady();
    await eachHasOne(app, ids);
    await removeAll(app);
  },
);

test("Machines converge when the cluster is restored from a backup from before they were created", async () => {
  const cluster = await ownCluster();
  const app = await onCluster({ kubeconfig: cluster.kubeconfig });
  const ids = [await app.create({ services })];
  await app.reaches(ids[0] ?? "", "started");
  await cluster.backUp();
  for (let i = 0; i < 3; i++) ids.push(await app.create({ services }));
  await eachHasOne(app, ids);
  // The service need not be restarted.
  await cluster.restore();
  await expect.poll(async () => (await app.pods()).length).toBe(4);
  await eachHasOne(app, ids);
  await removeAll(app);
});

test("a service that is killed at each of its requests continues, with one Pod for each Machine", async () => {
  const kubeconfig = inject("kubeconfig");
  const { core } = clientsOf(kubeconfig);
  const target = targetOf(kubeconfig);
  for (const when of ["cutRequest", "cutAnswer"] as const) {
    // Until a run needs fewer requests than the one at which it is to be killed.
    for (let nth = 1, isDone = false; !isDone; nth++) {
      const data = folder();
      let pid = 0;
      let writes = 0;
      let isKilled = false;
      const proxied = await apiProxy(target, ({ method, path }) => {
        if (method === "GET" || path.includes("/leases") || isKilled || ++writes !== nth) return "pass";
        isKilled = true;
        kill([pid]);
        return when;
      });
      const begin = async () => {
        const service = await foreground(data, ["--runtime", "kubernetes", "--delays", "none"], {
          KUBECONFIG: proxied,
        });
        ({ pid } = service);
        return { service, app: requestsOfWeb(caller(service.url, service.token)) };
      };
      let { service, app } = await begin();
      await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
      const id: string = (await app.machine({ services })).id;
      /** Starts the service again if it was killed. */
      const revive = async (ask?: () => Promise<unknown>): Promise<void> => {
        if (!isKilled || pid !== service.pid || !(await isGone(service))) return;
        ({ service, app } = await begin());
        await ask?.();
      };
      /** Asks for a state, again after the service was killed and started, until it is reached. */
      const until = async (state: string, ask?: () => Promise<unknown>): Promise<void> => {
        await ask?.().catch(() => undefined);
        await expect
          .poll(
            async () => {
              await revive(ask);
              return app.state(id).catch(() => undefined);
            },
            { interval: 50 },
          )
          .toBe(state);
      };
      await until("started");
      const selector = { labelSelector: `${labels.machine}=${id}` };
      expect((await core.listPodForAllNamespaces(selector)).items).toHaveLength(1);
      await until("stopped", () => app.call("POST", `${app.machines}/${id}/stop`));
      expect((await core.listPodForAllNamespaces(selector)).items).toHaveLength(0);
      await until("destroyed", () => app.call("DELETE", `${app.machines}/${id}?force=true`));
      const dataId = readFileSync(`${data}/data-id`, "utf8").trim();
      await expect
        .poll(async () => {
          await revive();
          return (await core.listNamespace({ labelSelector: selectorOf(dataId) })).items;
        })
        .toEqual([]);
      isDone = !isKilled;
      kill([service.pid]);
    }
  }
});

const isGone = (service: Awaited<ReturnType<typeof foreground>>): Promise<boolean> =>
  Promise.race([service.end.then(() => true), new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 20))]);
