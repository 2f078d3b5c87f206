// The process of kubernetesServices.mjs: it follows the Services and EndpointSlices of a cluster, listens at the address of each
// Service, and answers questions for their names.
import { CoreV1Api, DiscoveryV1Api, KubeConfig, makeInformer } from "@kubernetes/client-node";
import dgram from "node:dgram";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const [, , kubeconfig, range] = process.argv;
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const server = new URL(config.getCurrentCluster().server);

/** The objects of a kind; `changed` is called when there are others. */
function follow(resource, list, changed) {
  const informer = makeInformer(config, resource, list);
  for (const event of ["add", "update", "delete"]) informer.on(event, changed);
  const start = () => void informer.start().catch(again);
  const again = () => void sleep(200).then(start);
  informer.on("error", again);
  start();
  return informer;
}

const core = config.makeApiClient(CoreV1Api);
const discovery = config.makeApiClient(DiscoveryV1Api);
const keyOf = (namespace, name) => `${name}.${namespace}`;

/** Listening servers by their address and port. */
const listening = new Map();

const services = follow(
  "/api/v1/services",
  () => core.listServiceForAllNamespaces(),
  () => listen(),
);
const slices = follow(
  "/apis/discovery.k8s.io/v1/endpointslices",
  () => discovery.listEndpointSliceForAllNamespaces(),
  () => {},
);

/** The addresses that are ready behind a Service. */
function endpointsOf({ metadata }, port) {
  // The API server has no address that Pods reach.
  if (metadata.namespace === "default" && metadata.name === "kubernetes")
    return [{ host: server.hostname, port: Number(server.port) }];
  return slices
    .list()
    .filter(
      (slice) =>
        slice.metadata.namespace === metadata.namespace &&
        slice.metadata.labels?.["kubernetes.io/service-name"] === metadata.name,
    )
    .flatMap(({ endpoints, ports }) => {
      const found = port && (ports ?? []).find(({ name }) => (name ?? "") === (port.name ?? ""));
      if (port && !found) return [];
      return (endpoints ?? [])
        .filter(({ conditions }) => conditions?.ready !== false)
        .flatMap(({ addresses }) => addresses.map((host) => ({ host, port: found?.port })));
    });
}

const isHeadless = ({ spec }) => !spec?.clusterIP || spec.clusterIP === "None";

/** Listens at the Services that there are now, and at no others. */
function listen() {
  const wanted = new Map();
  for (const service of services.list()) {
    if (isHeadless(service)) continue;
    for (const port of service.spec.ports ?? [])
      if ((port.protocol ?? "TCP") === "TCP") wanted.set(`${service.spec.clusterIP} ${port.port}`, { service, port });
  }
  for (const [at, one] of listening)
    if (!wanted.has(at)) {
      one.close();
      listening.delete(at);
    }
  for (const at of wanted.keys()) {
    if (listening.has(at)) continue;
    const [host, port] = at.split(" ");
    const one = net.createServer({ allowHalfOpen: true }, (client) => pass(client, host, Number(port)));
    one.on("error", () => listening.delete(at));
    one.listen(Number(port), host);
    listening.set(at, one);
  }
}

/** Passes a connection on to an endpoint of a Service; without one it is refused, as kube-proxy does. */
function pass(client, host, at) {
  const service = services.list().find(({ spec }) => spec?.clusterIP === host);
  const port = service?.spec.ports?.find((one) => one.port === at);
  const endpoints = service && port ? endpointsOf(service, port) : [];
  const chosen = endpoints[Math.floor(Math.random() * endpoints.length)];
  client.on("error", () => {});
  if (!chosen) return client.resetAndDestroy();
  const upstream = net.connect({ ...chosen, allowHalfOpen: true });
  client.on("close", () => upstream.destroy());
  upstream.on("error", () => client.resetAndDestroy());
  upstream.on("close", () => client.destroy());
  client.pipe(upstream);
  upstream.pipe(client);
}

/** The addresses of a name; undefined if it does not exist. */
function addressesOf(name) {
  const found = /^(?:([^.]+)\.)?([^.]+)\.([^.]+)\.svc\.cluster\.local$/.exec(name.toLowerCase());
  if (!found) return undefined;
  const [, pod, service, namespace] = found;
  const one = services
    .list()
    .find(({ metadata }) => keyOf(metadata.namespace, metadata.name) === keyOf(namespace, service));
  if (!one || pod !== undefined) return undefined;
  return isHeadless(one) ? endpointsOf(one).map(({ host }) => host) : [one.spec.clusterIP];
}

/** The answer to a question in the format of RFC 1035. */
function answer(question) {
  let at = 12;
  const labels = [];
  for (let length = question[at]; length; length = question[at]) {
    labels.push(question.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  const asked = question.subarray(12, at + 5);
  const type = question.readUInt16BE(at + 1);
  const addresses = addressesOf(labels.join("."));
  const given = type === 1 ? (addresses ?? []) : [];
  const head = Buffer.alloc(12);
  question.copy(head, 0, 0, 2);
  // An answer with authority, to a question that may ask for recursion; 3: there is no such name.
  head.writeUInt16BE(0x8580 | (addresses ? 0 : 3), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(given.length, 6);
  const records = given.map((address) => {
    // A pointer to the question, an address of the internet, which is never kept, of four bytes.
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    address.split(".").forEach((part, i) => (record[12 + i] = Number(part)));
    return record;
  });
  return Buffer.concat([head, asked, ...records]);
}

const dns = dgram.createSocket("udp4");
dns.on("message", (question, { address, port }) => {
  if (question.length > 16) dns.send(answer(question), port, address);
});
dns.bind(53, `${range}.0.10`);
