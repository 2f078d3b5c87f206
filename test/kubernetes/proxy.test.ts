// Proxies of their own in front of Machines in a cluster: they are Pods of the manifest's Deployment, which really run.
import { readdirSync, readFileSync } from "node:fs";
import { Agent, request as sendHttp } from "node:http";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import {
  AppsV1Api,
  KubeConfig,
  KubernetesObjectApi,
  type KubernetesObject,
  type V1Deployment,
} from "@kubernetes/client-node";
import { beforeEach, describe, expect, inject, test } from "vitest";
import { regionLabel } from "../../service/runtime/kubernetes/names.ts";
import { delayProfiles } from "../../service/time/delays.ts";
import { image, nextImage } from "../runtime/image.ts";
import { command } from "../service/command.ts";
import { proxyToken, wayTo } from "../service/ownProxies.ts";
import { currentCertificate } from "../support/certificates.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { hang } from "../support/patience.mts";
import { evict, onCluster } from "./clusters.ts";
import { realRegion } from "./nodes.ts";
import { serviceImage } from "./serviceImage.ts";

const namespace = "machines-proxies";
const name = "machines-service-proxy";
const poll = { timeout: hang, interval: 100 };

/** A service for the web. */
const web = (more: object = {}) => ({
  ...{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] },
  checks: [{ type: "http", path: "/", interval: "1s" }],
  ...more,
});

/** An address of this computer that Pods reach. */
function ownAddress(): string {
  const found = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === "IPv4" && !one.internal);
  if (!found) throw new Error("this computer has no address that Pods reach");
  return found.address;
}

/** The objects of the proxies in the manifest, which follow the service at a URL, on the node that runs Pods. */
async function manifest(url: string): Promise<KubernetesObject[]> {
  const { out } = await command([
    ...["kubernetes", "manifest", "--image", serviceImage, "--namespace", namespace, "--proxy"],
  ]);
  const objects = out
    .split("---\n")
    .slice(1)
    .map((text) => JSON.parse(text) as KubernetesObject & V1Deployment);
  for (const { kind, spec } of objects) {
    const pod = spec?.template?.spec;
    const [container] = pod?.containers ?? [];
    if (kind !== "Deployment" || !pod || !container) continue;
    // The cluster of the tests has no names for Services.
    container.args = container.args?.map((one) => (one.startsWith("http://") ? url : one)) ?? [];
    pod.nodeSelector = { [regionLabel]: realRegion };
  }
  return objects.filter(({ kind, metadata }) => kind === "Namespace" || metadata?.name === name);
}

type App = Awaited<ReturnType<typeof onCluster>>;

/** The proxies of a service, as Pods. */
async function withProxies(app: App) {
  const way = await wayTo(app.url, ownAddress());
  const config = new KubeConfig();
  config.loadFromFile(inject("kubeconfig"));
  const api = KubernetesObjectApi.makeApiClient(config);
  const apps = config.makeApiClient(AppsV1Api);
  for (const object of await manifest(way.url))
    await api.patch(object, undefined, undefined, "kubectl", true, "application/apply-patch+yaml");
  afterThisTest(async () => void (await apps.deleteNamespacedDeployment({ name, namespace })));
  const token = Buffer.from(await proxyToken(app)).toString("base64");
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, data: { token } };
  await api.patch(secret, undefined, undefined, "kubectl", true, "application/apply-patch+yaml");
  const pods = async () => {
    const { items } = await app.core.listNamespacedPod({
      ...{ namespace, labelSelector: `app.kubernetes.io/name=${name}` },
    });
    return items;
  };
  /** Addresses of those that a Service would send requests to. */
  const ready = async (): Promise<string[]> =>
    (await pods()).flatMap(({ metadata, status }) => {
      const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
      return isReady && metadata?.deletionTimestamp === undefined ? (status?.podIP ?? []) : [];
    });
  const settled = async (): Promise<void> => {
    await expect.poll(async () => (await ready()).length, poll).toBe(2);
    await expect.poll(async () => (await pods()).length, poll).toBe(2);
  };
  await settled();
  return { pods, ready, settled, apps };
}

/** Kills the program of a Pod, which is a process of this computer. */
function killProgram(pod: string): void {
  for (const pid of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    try {
      const [environment, words] = ["environ", "cmdline"].map((file) => readFileSync(`/proc/${pid}/${file}`, "utf8"));
      const isIts = environment?.split("\0").includes(`HOSTNAME=${pod}`) && words?.includes("machines-service");
      if (isIts) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

const hostname = "shop.example.com";

/** The answer of the App `web` by a proxy. */
const ask = (host: string, agent: Agent | false = false, path = "/"): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = { host: hostname };
    const sent = sendHttp({ host, port: 8080, path, agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.once("error", reject).once("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.once("error", reject).end();
  });

/** What a load has met. */
interface Load {
  answered: number;
  /** What was not an answer with status 200, after the address of its proxy. */
  readonly lost: string[];
}

/** Sends requests from several clients to the proxies that are ready, as a load balancer does, until it is stopped. */
function load({ ready }: Awaited<ReturnType<typeof withProxies>>, clients = 8) {
  const seen: Load = { answered: 0, lost: [] };
  const over = new AbortController();
  // A proxy closes a connection that was idle for five seconds, and a request may be on its way then. So none is idle for that long.
  const agent = new Agent({ keepAlive: true, scheduling: "fifo", timeout: 1000 });
  let hosts: readonly string[] = [];
  const look = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const now = await ready().catch(() => hosts);
      hosts = now.length > 0 ? now : hosts;
      await sleep(50);
    }
  };
  const client = async (): Promise<void> => {
    for (let n = 0; !over.signal.aborted; n++) {
      const host = hosts[n % hosts.length];
      if (host === undefined) {
        await sleep(10);
        continue;
      }
      try {
        const { status, text } = await ask(host, agent);
        if (status === 200) seen.answered++;
        else seen.lost.push(`${host} ${status} ${text}`);
      } catch (error) {
        seen.lost.push(`${host} ${String(error)}`);
      }
    }
  };
  const all = Promise.all([look(), ...Array.from({ length: clients }, client)]);
  return {
    seen,
    async stop(): Promise<Load> {
      over.abort();
      await all;
      agent.destroy();
      return seen;
    },
  };
}

describe.runIf(inject("hasRealNode"))("proxies as Pods", () => {
  let app: App;
  beforeEach(async () => {
    app = await onCluster({
      ...{ nearest: realRegion, allowHosts: "any", runtime: { ingressClass: "none" } },
      delays: { ...delayProfiles.none, idle: 3000 },
    });
    const { status } = await app.call("POST", "/apps/web/certificates/custom", {
      ...{ hostname, ...currentCertificate({ hosts: [hostname] }) },
    });
    expect(status).toBe(201);
  });

  test("a request starts a Machine, and it is stopped when no proxy has one for it", async () => {
    const id = await app.create({ image, services: [web({ autostart: true, autostop: "stop" })] });
    await app.reaches(id, "started");
    const { ready } = await withProxies(app);
    await app.reaches(id, "stopped");
    for (const host of await ready()) {
      expect(await ask(host)).toEqual({ status: 200, text: `${id} of web\n` });
      expect(await app.state(id)).toBe("started");
    }
    await app.reaches(id, "stopped");
    // The Ingress is that of those who want no proxies.
    expect((await app.left()).filter((one) => one.startsWith("Ingress"))).toEqual([]);
  });

  test("no request is lost in rolling updates of Machines, of proxies, and in evictions; a killed one breaks its own", async () => {
    const services = [web()];
    const restart = { policy: "always" };
    const ids = [await app.create({ image, services, restart }), await app.create({ image, services, restart })];
    for (const id of ids) await app.reaches(id, "started");
    const proxies = await withProxies(app);
    const requests = load(proxies);
    for (let times = 0; times < 2 || requests.seen.answered < 25_000; times++)
      for (const id of ids) {
        await app.call("POST", `${app.machines}/${id}`, {
          config: { image: times % 2 === 0 ? nextImage : image, services, restart },
        });
        await app.reaches(id, "started");
        await expect.poll(async () => (await app.get(id)).checks[0]?.status, poll).toBe("passing");
      }
    expect(requests.seen.lost).toEqual([]);
    const untilEvicted = (pod: string, from: string): Promise<void> =>
      expect.poll(() => evict(app, pod, from), poll).toBe(true);
    for (const id of ids) {
      const [before] = await app.pods(id);
      await untilEvicted(id, app.namespace);
      await expect.poll(async () => (await app.pods(id))[0]?.metadata?.uid, poll).not.toBe(before?.metadata?.uid);
      await app.reaches(id, "started");
      await expect.poll(async () => (await app.get(id)).checks[0]?.status, poll).toBe("passing");
    }
    expect(requests.seen.lost).toEqual([]);
    const uids = async () => (await proxies.pods()).map(({ metadata }) => metadata?.uid);
    const before = await uids();
    const deployment = await proxies.apps.readNamespacedDeployment({ name, namespace });
    const { template } = deployment.spec ?? {};
    if (template) template.metadata = { ...template.metadata, annotations: { restarted: "yes" } };
    await proxies.apps.replaceNamespacedDeployment({ name, namespace, body: deployment });
    await expect.poll(async () => (await uids()).filter((one) => before.includes(one)), poll).toEqual([]);
    await proxies.settled();
    expect(requests.seen.lost).toEqual([]);
    const [evicted] = await proxies.pods();
    const { name: pod = "" } = evicted?.metadata ?? {};
    await untilEvicted(pod, namespace);
    await expect
      .poll(async () => (await proxies.pods()).map(({ metadata }) => metadata?.name), poll)
      .not.toContain(pod);
    await proxies.settled();
    for (const from = requests.seen.answered; requests.seen.answered < Math.max(from + 1000, 50_000);) await sleep(100);
    expect(requests.seen.lost).toEqual([]);
    const [killed] = await proxies.pods();
    const at = killed?.status?.podIP ?? "";
    killProgram(killed?.metadata?.name ?? "");
    const restarts = async () => {
      const pod = (await proxies.pods()).find(({ metadata }) => metadata?.uid === killed?.metadata?.uid);
      return pod?.status?.containerStatuses?.[0]?.restartCount;
    };
    await expect.poll(restarts, poll).toBe(1);
    await proxies.settled();
    const { lost, answered } = await requests.stop();
    // Only its own connections broke, and those that came before the cluster had noticed it.
    expect(lost.filter((one) => !one.startsWith(`${at} `))).toEqual([]);
    expect(lost.length).toBeGreaterThan(0);
    process.stdout.write(`${answered} requests, ${lost.length} of a killed proxy\n`);
  });
});
