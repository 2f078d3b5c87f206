// Services, EndpointSlices and Ingresses of Apps.
import { expect, inject, test } from "vitest";
import { currentCertificate } from "../support/certificates.ts";
import { apiProxy, targetOf } from "./apiProxy.ts";
import { onCluster } from "./clusters.ts";

const web = (port = 80) => ({
  protocol: "tcp",
  internal_port: 8080,
  ports: [{ port, handlers: port === 443 ? ["tls", "http"] : ["http"] }],
});

async function offers(app: Awaited<ReturnType<typeof onCluster>>) {
  const { items } = await app.discovery.listEndpointSliceForAllNamespaces(app.selector);
  return items.map(({ metadata, endpoints, ports }) => ({
    machine: metadata?.name,
    service: metadata?.labels?.["kubernetes.io/service-name"],
    ready: endpoints?.[0]?.conditions?.ready,
    serving: endpoints?.[0]?.conditions?.serving,
    ports: ports?.map(({ name, port }) => `${name} ${port}`),
  }));
}

test("a Service leads to the Machines that are started and not cordoned", async () => {
  const app = await onCluster();
  const config = { services: [web()] };
  const [one, two] = [await app.create(config), await app.create(config)];
  for (const id of [one, two]) await app.reaches(id, "started");
  const offer = (machine: string, ready = true) => ({
    ...{ machine, service: "web", ports: ["tcp-80 8080"] },
    // Some who send requests look at the one, some at the other.
    ...{ ready, serving: ready },
  });
  const sorted = [one, two].sort();
  await expect.poll(() => offers(app)).toEqual(sorted.map((id) => offer(id)));
  const services = async () =>
    (await app.core.listServiceForAllNamespaces(app.selector)).items.map(({ metadata, spec }) => [
      metadata?.name,
      spec?.ports?.map(({ port }) => port),
    ]);
  await expect.poll(services).toEqual([["web", [80]]]);
  await app.post(one, "cordon");
  await expect.poll(() => offers(app)).toEqual(sorted.map((id) => offer(id, id !== one)));
  await app.post(one, "uncordon");
  await expect.poll(() => offers(app)).toEqual(sorted.map((id) => offer(id)));
  await app.post(two, "stop");
  await expect.poll(() => offers(app)).toEqual([offer(one)]);
  await app.call("DELETE", "/apps/web?force=true");
  await expect.poll(app.left).toEqual([]);
});

test("a Machine runs on while others take over its requests, and is stopped at once if there are no others", async () => {
  const app = await onCluster({ runtime: { drainMs: 3600_000 } });
  const services = [web()];
  const [one, two] = [await app.create({ services }), await app.create({ services })];
  const ready = async () => (await offers(app)).flatMap(({ machine, ready: isReady }) => (isReady ? machine : []));
  await expect.poll(ready).toHaveLength(2);
  await app.post(one, "stop");
  await expect.poll(ready).toEqual([two]);
  // A Machine that gets no requests is stopped at once, so the other one would have been, too.
  const worker = await app.create();
  await app.reaches(worker, "started");
  await app.post(worker, "stop");
  await app.reaches(worker, "stopped");
  expect(await app.state(one)).toBe("stopping");
  expect((await app.pods(one)).map(({ metadata }) => metadata?.deletionTimestamp)).toEqual([undefined]);
  await app.post(two, "stop");
  await app.reaches(two, "stopped");
  await app.call("DELETE", "/apps/web?force=true");
  await expect.poll(app.left).toEqual([]);
});

test("a Machine whose checks do not pass is not ready", async () => {
  const app = await onCluster();
  const failing = await app.create({ services: [{ ...web(), checks: [{ type: "tcp" }] }] });
  await app.reaches(failing, "started");
  await expect.poll(() => offers(app)).toMatchObject([{ machine: failing, ready: false }]);
});

test("what others change of a route is repaired", async () => {
  const app = await onCluster();
  const id = await app.create({ services: [web()] });
  await app.reaches(id, "started");
  await expect.poll(() => offers(app)).toMatchObject([{ ready: true }]);
  const [{ metadata } = {}] = await app.pods(id);
  const namespace = metadata?.namespace ?? "";
  await app.discovery.deleteNamespacedEndpointSlice({ name: id, namespace });
  await app.core.deleteNamespacedService({ name: "web", namespace });
  await expect.poll(() => offers(app)).toMatchObject([{ ready: true }]);
  await expect.poll(async () => (await app.core.listServiceForAllNamespaces(app.selector)).items).toHaveLength(1);
});

test("hostnames with certificates lead to the Service by an Ingress", async () => {
  const app = await onCluster({ runtime: { ingressClass: "public" } });
  const id = await app.create({ services: [web(443)] });
  await app.reaches(id, "started");
  const certificate = currentCertificate({ hosts: ["shop.example.com"] });
  const imported = await app.call("POST", "/apps/web/certificates/custom", {
    hostname: "shop.example.com",
    ...certificate,
  });
  expect(imported.status).toBe(201);
  const ingresses = async () => (await app.networking.listIngressForAllNamespaces(app.selector)).items;
  await expect.poll(ingresses).toHaveLength(1);
  const [ingress] = await ingresses();
  expect(ingress?.spec?.ingressClassName).toBe("public");
  expect(ingress?.spec?.rules).toMatchObject([
    { host: "shop.example.com", http: { paths: [{ backend: { service: { name: "web", port: { number: 443 } } } }] } },
  ]);
  const [{ secretName = "" } = {}] = ingress?.spec?.tls ?? [];
  const namespace = ingress?.metadata?.namespace ?? "";
  const { data } = await app.core.readNamespacedSecret({ name: secretName, namespace });
  expect(
    Buffer.from(data?.["tls.crt"] ?? "", "base64")
      .toString()
      .trim(),
  ).toBe(certificate.fullchain.trim());
  await app.call("DELETE", "/apps/web/certificates/shop.example.com");
  await expect.poll(ingresses).toEqual([]);
  await expect
    .poll(async () =>
      (await app.core.listNamespacedSecret({ namespace, ...app.selector })).items.map(({ type }) => type),
    )
    .toEqual(["Opaque"]);
});

test("the Secret of a removed hostname does not remain if its deletion fails once", async () => {
  let failures = 0;
  const writes: string[] = [];
  const kubeconfig = await apiProxy(targetOf(inject("kubeconfig")), ({ method, path }) => {
    const isDeletion = method === "DELETE" && path.includes("/secrets/tls-");
    if (isDeletion) writes.push("delete the Secret");
    if (method === "PATCH" && path.includes("/ingresses/")) writes.push("change the Ingress");
    return isDeletion && failures++ === 0 ? "cutRequest" : "pass";
  });
  const app = await onCluster({ kubeconfig });
  await app.reaches(await app.create({ services: [web(443)] }), "started");
  const hostnames = ["shop.example.com", "www.example.com"];
  for (const hostname of hostnames)
    await app.call("POST", "/apps/web/certificates/custom", { hostname, ...currentCertificate({ hosts: [hostname] }) });
  const secrets = async () => {
    const { items } = await app.core.listSecretForAllNamespaces(app.selector);
    return items.filter(({ type }) => type === "kubernetes.io/tls");
  };
  await expect.poll(secrets).toHaveLength(2);
  const ingresses = async () => (await app.networking.listIngressForAllNamespaces(app.selector)).items;
  await expect.poll(async () => (await ingresses())[0]?.spec?.tls).toHaveLength(2);
  writes.length = 0;
  await app.call("DELETE", `/apps/web/certificates/${hostnames[0]}`);
  await expect.poll(secrets).toHaveLength(1);
  expect(failures).toBeGreaterThan(1);
  // Otherwise a controller would miss the Secret of an Ingress for a moment, and serve none of its hostnames.
  expect(writes[0]).toBe("change the Ingress");
  const leaving = async () => (await ingresses())[0]?.metadata?.annotations?.["machines-service/leaving"];
  await expect.poll(leaving).toBeUndefined();
});
