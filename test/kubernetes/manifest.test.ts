// The service as its own manifest runs it: with no more rights than it needs, and one at a time.
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CoordinationV1Api, KubeConfig, type KubernetesObject, type V1StatefulSet } from "@kubernetes/client-node";
import { expect, inject, test } from "vitest";
import { folder, foreground, released, start } from "../service/command.ts";
import { caller, requestsOfWeb } from "../service/client.ts";
import { currentCertificate } from "../support/certificates.ts";
import { kill } from "../support/processes.ts";
import { startPostgres } from "../service/replication/postgres.ts";
import { callOf, leaderOf, serviceOn } from "../service/replication/processes.ts";
import { clientsOf } from "./clusters.ts";
import { asManifest, manifest } from "./rights.ts";

test("the rights of the manifest are enough, and a second service waits for the lease", async () => {
  const KUBECONFIG = await asManifest();
  const options = ["--runtime", "kubernetes"];
  const data = folder();
  const first = await foreground(data, options, { KUBECONFIG });
  const app = requestsOfWeb(caller(first.url, first.token));
  await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80 }] }];
  const { id } = await app.machine({ services });
  await expect.poll(() => app.state(id)).toBe("started");
  // A copy of the data in another folder is the same service for the cluster.
  const copy = folder();
  mkdirSync(copy);
  copyFileSync(join(data, "data-id"), join(copy, "data-id"));
  const second = foreground(copy, options, { KUBECONFIG });
  const { core } = clientsOf(inject("kubeconfig"));
  const pods = async () =>
    (await core.listPodForAllNamespaces({ labelSelector: `machines-service/machine=${id}` })).items;
  expect(await pods()).toHaveLength(1);
  kill([first.pid]);
  await released(data);
  // The lease was not renewed for fifteen seconds.
  const taken = await second;
  // It does not know the Machine, so it removes the Pod.
  await expect.poll(pods).toEqual([]);
  kill([taken.pid]);
});

test("of several members only the leader acts on the cluster, without a lease", async () => {
  process.env["KUBECONFIG"] = await asManifest("--store-secret", "store");
  const server = await startPostgres();
  try {
    const service = serviceOn(server.url, "--runtime", "kubernetes");
    const members = [await service.start(), await service.start()];
    const leader = await leaderOf(members);
    const standby = members.find((one) => one !== leader) as typeof leader;
    const app = requestsOfWeb(callOf(standby));
    await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
    const { id } = await app.machine();
    await expect.poll(() => app.state(id)).toBe("started");
    const { core } = clientsOf(inject("kubeconfig"));
    const pods = async () =>
      (await core.listPodForAllNamespaces({ labelSelector: `machines-service/machine=${id}` })).items;
    const uid = async () => (await pods())[0]?.metadata?.uid;
    const before = await uid();
    kill([leader.pid]);
    expect(await leaderOf([standby])).toBe(standby);
    await expect.poll(() => app.state(id)).toBe("started");
    expect(await uid()).toBe(before);
    const { id: later } = await app.machine();
    await expect.poll(() => app.state(later)).toBe("started");
    await app.call("DELETE", "/apps/web?force=true");
    await expect.poll(pods).toEqual([]);
    const dataId = readFileSync(join(standby.data, "data-id"), "utf8").trim();
    const config = new KubeConfig();
    config.loadFromFile(inject("kubeconfig"));
    const { items } = await config.makeApiClient(CoordinationV1Api).listLeaseForAllNamespaces();
    expect(items.filter(({ metadata }) => metadata?.name?.includes(dataId))).toEqual([]);
    kill([standby.pid]);
  } finally {
    await server.remove();
  }
});

test("a service of the manifest names the class of its Ingresses", async () => {
  const KUBECONFIG = await asManifest();
  const objects = (await manifest("--ingress-class", "public")) as (KubernetesObject & V1StatefulSet)[];
  const [container] = objects.flatMap(({ spec }) => spec?.template?.spec?.containers ?? []);
  const named = container?.args?.slice(-2) ?? [];
  expect(named).toEqual(["--ingress-class", "public"]);
  const { url, token, pid } = await foreground(folder(), ["--runtime", "kubernetes", ...named], { KUBECONFIG });
  const app = requestsOfWeb(caller(url, token));
  await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
  await app.machine({
    services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }],
  });
  const hostname = "class.example.com";
  await app.call("POST", "/apps/web/certificates/custom", { hostname, ...currentCertificate({ hosts: [hostname] }) });
  const { networking } = clientsOf(inject("kubeconfig"));
  const classes = async () => {
    const { items } = await networking.listIngressForAllNamespaces();
    const mine = items.filter(({ spec }) => spec?.rules?.some(({ host }) => host === hostname));
    return mine.map(({ spec }) => spec?.ingressClassName);
  };
  await expect.poll(classes).toEqual(["public"]);
  await app.call("DELETE", "/apps/web?force=true");
  await expect.poll(classes).toEqual([]);
  kill([pid]);
});

test("a service in the background finds the cluster of KUBECONFIG", async () => {
  process.env["KUBECONFIG"] = inject("kubeconfig");
  const { code, err } = await start(folder(), "--runtime", "kubernetes");
  expect({ code, err }).toMatchObject({ code: 0 });
});

test("a restart in the same place takes the lease at once, and Machines do not notice", async () => {
  const KUBECONFIG = await asManifest();
  const data = folder();
  const first = await foreground(data, ["--runtime", "kubernetes"], { KUBECONFIG });
  const app = requestsOfWeb(caller(first.url, first.token));
  await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { id } = await app.machine();
  await expect.poll(() => app.state(id)).toBe("started");
  const { core } = clientsOf(inject("kubeconfig"));
  const uid = async () =>
    (await core.listPodForAllNamespaces({ labelSelector: `machines-service/machine=${id}` })).items[0]?.metadata?.uid;
  const before = await uid();
  kill([first.pid]);
  await released(data);
  const again = await foreground(data, ["--runtime", "kubernetes"], { KUBECONFIG });
  const others = requestsOfWeb(caller(again.url, again.token));
  expect(await others.state(id)).toBe("started");
  expect(await uid()).toBe(before);
  expect(again.said()).not.toContain("waits for");
  await others.call("DELETE", "/apps/web?force=true");
  await expect.poll(uid).toBeUndefined();
  kill([again.pid]);
});
