// Certificates from an ACME authority, Pebble, for hostnames of a cluster: it asks the ingress controller, Traefik, which asks the service.
import { connect, createServer, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { acmeIssuer } from "../../service/runtime/acme/index.ts";
import { labels } from "../../service/runtime/kubernetes/names.ts";
import { startController } from "../../tools/setup/ingressController.mjs";
import { freePort } from "../../tools/setup/kubernetes.mjs";
import { caller, requestsOfWeb } from "../service/client.ts";
import { folder, foreground, released } from "../service/command.ts";
import { image } from "../runtime/image.ts";
import { fetchFrom } from "../runtime/requests.ts";
import { hang } from "../support/patience.mts";
import { afterThisTest } from "../support/leftovers.ts";
import { findPebble, startAuthority, startDns } from "../support/pebble.ts";
import { kill } from "../support/processes.ts";
import { trust } from "../support/trust.ts";
import { faultyApi, targetOf } from "./apiProxy.ts";
import { clientsOf, onCluster, ownCluster } from "./clusters.ts";
import { realRegion } from "./nodes.ts";

const program = inject("ingressController");

const day = 24 * 3600_000;

const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }];

/** An address of this computer that others reach. A cluster accepts no loopback address as an endpoint. */
const address = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;

/** Leads connections to a service, which listens at this computer alone. */
function frontOf({ service }: Awaited<ReturnType<typeof onCluster>>, target: { host: string; port: number }): void {
  const front = createServer((socket) => {
    const to = connect((service.app.server.address() as AddressInfo).port, "127.0.0.1");
    socket.on("error", () => to.destroy()).pipe(to);
    to.on("error", () => socket.destroy()).pipe(socket);
  });
  front.listen(target);
  afterThisTest(() => void front.close());
}

describe.runIf(program !== undefined && address !== undefined)("certificates by HTTP-01 on a cluster", () => {
  let controller: Awaited<ReturnType<typeof startController>>;
  let pebble: Awaited<ReturnType<typeof findPebble>>;
  beforeAll(async () => {
    pebble = await findPebble();
    controller = await startController(program ?? "", inject("kubeconfig"));
  });
  afterAll(() => controller.remove());
  beforeEach(({ skip }) => skip(pebble === undefined));

  /** An authority that asks a controller. */
  async function authority({ port: https, httpPort: http }: Pick<typeof controller, "port" | "httpPort"> = controller) {
    const programs = pebble as NonNullable<typeof pebble>;
    const dns = await startDns(programs);
    return { dns, ...(await startAuthority(programs, { dns, http, https })) };
  }

  /** What open challenges have in a cluster, and the services that they lead to. */
  async function challengesIn(kubeconfig: string) {
    const { core, networking, discovery } = clientsOf(kubeconfig);
    const labelSelector = labels.challenge;
    const lists = await Promise.all([
      networking.listIngressForAllNamespaces({ labelSelector }),
      core.listServiceForAllNamespaces({ labelSelector }),
      discovery.listEndpointSliceForAllNamespaces({ labelSelector }),
    ]);
    return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata?.uid ?? ""));
  }
  const challenges = () => challengesIn(inject("kubeconfig"));

  test("a hostname gets one, its Machines serve with it, it is renewed, and nothing is left of the challenges", async () => {
    const host = "issued.example.com";
    const from = await authority();
    trust(from.trusted);
    const target = { host: address ?? "", port: await freePort(address) };
    const app = await onCluster({
      nearest: realRegion,
      issuer: acmeIssuer(from.directory, { port: controller.httpPort, patienceMs: hang }),
      dns: from.dns.address,
      runtime: { challengeTarget: target },
    });
    frontOf(app, target);
    const id = await app.create({ image, services });
    await app.call("POST", "/apps/web/certificates/acme", { hostname: host });
    const shown = async () => (await app.call("GET", `/apps/web/certificates/${host}`)).body;
    await expect.poll(async () => (await shown()).status).toBe("active");
    expect(await shown()).toMatchObject({ validation_errors: [], certificates: [{ source: "fly" }] });
    const ca = await from.root();
    const ask = async () => {
      const { status, text } = await fetchFrom(controller.port, "/", { host, ca });
      return status === 200 ? text.trim() : String(status);
    };
    await expect.poll(() => ask().catch(String)).toBe(`${id} of web`);
    await expect.poll(challenges).toEqual([]);
    // The key is sealed.
    const row = app.service.context.store.get<{ issued_key: Uint8Array }>("SELECT issued_key FROM hostnames");
    expect(Buffer.from(row?.issued_key ?? []).toString("latin1")).not.toContain("PRIVATE KEY");
    const { expires_at: before } = (await shown()).certificates[0];
    const secret = async () => {
      const { items } = await app.core.listSecretForAllNamespaces(app.selector);
      return items.find(({ type }) => type === "kubernetes.io/tls")?.data?.["tls.crt"];
    };
    const old = await secret();
    app.service.context.clock.advance(61 * day);
    await expect.poll(secret).not.toBe(old);
    await expect.poll(challenges).toEqual([]);
    expect(Date.parse((await shown()).certificates[0].expires_at)).toBeGreaterThanOrEqual(Date.parse(before));
    expect((await shown()).status).toBe("active");
    await app.call("DELETE", `/apps/web/certificates/${host}`);
    await expect.poll(secret).toBeUndefined();
  });

  test("a hostname gets one while a third of the answers of the API server is lost, and nothing is left of the challenges", async () => {
    const host = "lost-answers.example.com";
    const from = await authority();
    trust(from.trusted);
    const target = { host: address ?? "", port: await freePort(address) };
    const { kubeconfig, faults } = await faultyApi(targetOf(inject("kubeconfig")), ({ isWatch }, random) =>
      !isWatch && random < 0.33 ? "cutAnswer" : "pass",
    );
    const app = await onCluster({
      kubeconfig,
      issuer: acmeIssuer(from.directory, { port: controller.httpPort, patienceMs: hang }),
      dns: from.dns.address,
      runtime: { challengeTarget: target },
    });
    frontOf(app, target);
    faults.isOn = true;
    await app.call("POST", "/apps/web/certificates/acme", { hostname: host });
    const status = async () => (await app.call("GET", `/apps/web/certificates/${host}`)).body.status;
    await expect.poll(status).toBe("active");
    await expect.poll(challenges).toEqual([]);
    expect(faults.count).toBeGreaterThan(0);
    faults.isOn = false;
    await app.call("DELETE", `/apps/web/certificates/${host}`);
  });

  test("a hostname gets one though the API server is killed during the challenge, and after a restore nothing is left of that", async () => {
    const host = "outage.example.com";
    const cluster = await ownCluster();
    const { kubeconfig } = cluster;
    // Nothing answers at its ports until then, so the challenge stays open.
    const [port, httpPort] = [await freePort(), await freePort()];
    const from = await authority({ port, httpPort });
    trust(from.trusted);
    const target = { host: address ?? "", port: await freePort(address) };
    const app = await onCluster({
      kubeconfig,
      issuer: acmeIssuer(from.directory, { port: httpPort, patienceMs: hang }),
      dns: from.dns.address,
      runtime: { challengeTarget: target },
    });
    frontOf(app, target);
    await app.create({ services });
    await app.call("POST", "/apps/web/certificates/acme", { hostname: host });
    const open = () => challengesIn(kubeconfig);
    await expect.poll(async () => (await open()).length).toBe(3);
    await cluster.backUp();
    const own = await startController(program ?? "", kubeconfig, { port, httpPort });
    afterThisTest(() => own.remove());
    const status = async () => (await app.call("GET", `/apps/web/certificates/${host}`)).body.status;
    await expect.poll(status).toBe("active");
    await expect.poll(open).toEqual([]);
    const served = async () => {
      const { items } = await app.core.listSecretForAllNamespaces(app.selector);
      return items.filter(({ type }) => type === "kubernetes.io/tls").map(({ data }) => data?.["tls.crt"]);
    };
    await expect.poll(async () => (await served()).length).toBe(1);
    const before = await served();
    await cluster.restore();
    await expect.poll(open).toEqual([]);
    await expect.poll(served).toEqual(before);
    await app.call("DELETE", "/apps/web?force=true");
    await expect.poll(app.left).toEqual([]);
  });

  test("the address answers only open challenges, at any host name; all else needs a name of the service", async () => {
    const port = await freePort(address);
    const app = await onCluster({
      issuer: () => ({
        name: "played",
        checksItself: true,
        request: () => {},
        challenges: { answerOf: (token) => (token === "known" ? "known.key" : undefined), proofOf: () => undefined },
      }),
      runtime: { challengeTarget: { host: address ?? "", port } },
    });
    const own = (app.service.app.server.address() as AddressInfo).port;
    const got = async (path: string, host: string) => {
      const { status, text } = await fetchFrom(own, path, { host });
      return [status, status === 200 ? text : ""];
    };
    const at = "/.well-known/acme-challenge/";
    expect(await got(`${at}known`, "shop.example.com")).toEqual([200, "known.key"]);
    expect(await got(`${at}unknown`, "shop.example.com")).toEqual([403, ""]);
    expect(await got(`${at}unknown`, "localhost")).toEqual([404, ""]);
    expect(await got("/v1/apps", "shop.example.com")).toEqual([403, ""]);
  });

  test("after a kill, what the service had open for an authority is removed, and the certificate is requested again", async () => {
    const host = "killed.example.com";
    const from = await authority();
    const data = folder();
    const file = join(data, "..", "pebble.pem");
    writeFileSync(file, from.trusted);
    const env = { KUBECONFIG: inject("kubeconfig"), NODE_EXTRA_CA_CERTS: file };
    const port = await freePort(address);
    const options = [
      ...["--runtime", "kubernetes", "--acme", from.directory, "--acme-address", `${address}:${port}`],
      ...["--dns", from.dns.address, "--listen", `${address}:${port}`, "--allow-remote"],
    ];
    const first = await foreground(data, options, env);
    const call = caller(first.url, first.token);
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    await call("POST", "/apps/web/certificates/acme", { hostname: host });
    // At port 80 nothing answers, so the service looks for a while before it asks the authority: the challenge stays open.
    await expect.poll(async () => (await challenges()).length).toBe(3);
    const left = await challenges();
    kill([first.pid]);
    await released(data);
    const again = await foreground(data, options, env);
    await expect.poll(async () => (await challenges()).filter((uid) => left.includes(uid))).toEqual([]);
    const later = requestsOfWeb(caller(again.url, again.token));
    const status = async () => (await later.call("GET", `/apps/web/certificates/${host}`)).body.status;
    // It asks the authority all the same, which does reach it.
    await expect.poll(status).toBe("active");
    await expect.poll(challenges).toEqual([]);
    kill([again.pid]);
  });
});
