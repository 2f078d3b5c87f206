// Hostnames of Apps through a real ingress controller, Traefik: it reads the cluster, and connects to Pods that really run.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { startController } from "../../tools/setup/ingressController.mjs";
import type { KubernetesOptions } from "../../service/runtime/kubernetes/kubernetesDriver.ts";
import { image, nextImage } from "../runtime/image.ts";
import { fetchFrom, load } from "../runtime/requests.ts";
import { currentCertificate } from "../support/certificates.ts";
import { clientsOf, onCluster } from "./clusters.ts";
import { realRegion } from "./nodes.ts";

const program = inject("ingressController");

const ingressClass = "public";

/** A service for the web with these checks. */
const web = (...checks: object[]) => ({
  protocol: "tcp",
  internal_port: 8080,
  ports: [
    { port: 80, handlers: ["http"] },
    { port: 443, handlers: ["tls", "http"] },
  ],
  checks,
});

/** What Machines answer. */
const of = (...machines: string[]) => machines.map((id) => `${id} of web`).sort();

describe.runIf(program !== undefined)("an ingress controller", () => {
  let controller: Awaited<ReturnType<typeof startController>>;
  beforeAll(async () => {
    const { networking } = clientsOf(inject("kubeconfig"));
    const spec = { controller: "traefik.io/ingress-controller" };
    await networking.createIngressClass({ body: { metadata: { name: ingressClass }, spec } });
    controller = await startController(program ?? "", inject("kubeconfig"));
  });
  afterAll(() => controller.remove());

  /** A service with an App `web` that has a hostname. Each test has its own: what an earlier one has left may still be served. */
  async function withHostname(host: string, runtime: KubernetesOptions = {}) {
    const app = await onCluster({ nearest: realRegion, runtime });
    /** Gives the App a new certificate of a hostname, which is its own authority. */
    const upload = async (hostname = host): Promise<string> => {
      const certificate = currentCertificate({ hosts: [hostname], commonName: "Test Authority" });
      const { status } = await app.call("POST", "/apps/web/certificates/custom", { hostname, ...certificate });
      expect(status).toBe(201);
      return certificate.fullchain;
    };
    /** The answer to a request by HTTPS, or why there is none. */
    const ask = async (ca: string, hostname = host): Promise<string> => {
      try {
        const { status, text } = await fetchFrom(controller.port, "/", { host: hostname, ca });
        return status === 200 ? text.trim() : String(status);
      } catch (error) {
        return String(error);
      }
    };
    const ca = await upload();
    return {
      ...app,
      ca,
      upload,
      ask,
      create: (config: object = {}) => app.create({ image, services: [web()], ...config }),
      /** The different answers to some requests, one after the other. */
      answers: async () => {
        const seen = new Set<string>();
        for (let i = 0; i < 10; i++) seen.add(await ask(ca));
        return [...seen].sort();
      },
    };
  }

  test("requests by HTTPS reach the Machines that are started, not cordoned, and whose checks pass", async () => {
    const app = await withHostname("shop.example.com");
    const [one, two] = [await app.create(), await app.create()];
    await expect.poll(app.answers).toEqual(of(one, two));
    await app.post(one, "cordon");
    await expect.poll(app.answers).toEqual(of(two));
    const failing = await app.create({ services: [web({ type: "http", path: "/file/tmp/ready", interval: "1s" })] });
    await expect.poll(async () => (await app.get(failing)).checks[0].status).toBe("critical");
    await app.post(one, "uncordon");
    // A controller that has seen this has also seen the other Machine, which came before.
    await expect.poll(app.answers).toEqual(of(one, two));
    await app.post(failing, "exec", { command: ["write", "/tmp/ready", "644"], stdin: "yes" });
    await expect.poll(app.answers).toEqual(of(failing, one, two));
    await app.post(two, "stop");
    await expect.poll(app.answers).toEqual(of(failing, one));
  });

  test("a Pod that others delete gets no request while it ends, and starts again", async () => {
    const app = await withHostname("ending.example.com");
    const ending = await app.create({ env: { MACHINES_SIMULATE: "deaf" }, stop_config: { timeout: "10m" } });
    const other = await app.create();
    await expect.poll(app.answers).toEqual(of(ending, other));
    await app.core.deleteNamespacedPod({ name: ending, namespace: app.namespace });
    await expect.poll(app.answers).toEqual(of(other));
    expect((await app.pods(ending))[0]?.status?.phase).toBe("Running");
    await app.post(ending, "signal", { signal: "SIGKILL" });
    await expect.poll(app.answers).toEqual(of(ending, other));
  });

  test("a renewed certificate is served at once, and a removed hostname no longer", async () => {
    const app = await withHostname("renewed.example.com", { ingressClass });
    const id = await app.create();
    const other = "removed.example.com";
    const ofOther = await app.upload(other);
    const answer = `${id} of web`;
    await expect.poll(() => app.ask(app.ca)).toBe(answer);
    await expect.poll(() => app.ask(ofOther, other)).toBe(answer);
    const renewed = await app.upload();
    await expect.poll(() => app.ask(renewed)).toBe(answer);
    expect(await app.ask(app.ca)).toContain("certificate");
    await app.call("DELETE", `/apps/web/certificates/${other}`);
    await expect.poll(() => app.ask(ofOther, other)).toContain("certificate");
    expect(await app.ask(renewed)).toBe(answer);
  });

  test("a rolling update loses no request", async () => {
    // Much longer than a controller needs: this computer may be busy.
    const host = "rolling.example.com";
    const app = await withHostname(host, { drainMs: 10_000 });
    const services = [web({ type: "http", path: "/", interval: "1s" })];
    const ids = [await app.create({ services }), await app.create({ services })];
    await expect.poll(app.answers).toEqual(of(...ids));
    const requests = load(controller.port, "/", { host, ca: app.ca }, 2);
    for (const id of ids) {
      await app.call("POST", `${app.machines}/${id}`, { config: { image: nextImage, services } });
      await app.reaches(id, "started");
      await expect.poll(app.answers).toEqual(of(...ids));
    }
    expect((await requests.stop()).lost).toEqual([]);
  });
});
