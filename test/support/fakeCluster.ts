// A Kubernetes API server without a cluster: it keeps objects, reports their changes, and has one node, on which every Pod runs at once.
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { KubernetesObject, V1ObjectMeta } from "@kubernetes/client-node";
import { afterThisTest } from "./leftovers.ts";

/** An object as the server keeps it. */
type Kept = KubernetesObject & {
  readonly metadata: V1ObjectMeta;
  readonly spec?: object;
  readonly status?: object;
};

/** Version and kind of what each path has. */
const kinds: Readonly<Record<string, readonly [string, string]>> = {
  pods: ["v1", "Pod"],
  nodes: ["v1", "Node"],
  secrets: ["v1", "Secret"],
  services: ["v1", "Service"],
  namespaces: ["v1", "Namespace"],
  persistentvolumeclaims: ["v1", "PersistentVolumeClaim"],
  endpointslices: ["discovery.k8s.io/v1", "EndpointSlice"],
  ingresses: ["networking.k8s.io/v1", "Ingress"],
  networkpolicies: ["networking.k8s.io/v1", "NetworkPolicy"],
  poddisruptionbudgets: ["policy/v1", "PodDisruptionBudget"],
};
const ofAll: ReadonlySet<string> = new Set(["nodes", "namespaces"]);
const groups = ["discovery.k8s.io", "networking.k8s.io", "policy"];

/** The plural in the path of an object or of a list. */
const pluralOf = (path: string): string =>
  path
    .split("/")
    .filter((part) => part in kinds && part !== "namespaces")
    .at(-1) ?? "namespaces";

function isSelected({ metadata: { labels = {} } }: Kept, selector: string): boolean {
  return selector
    .split(",")
    .filter((one) => one !== "")
    .every((one) => {
      const [name = "", value] = one.split("=");
      return value === undefined ? name in labels : labels[name] === value;
    });
}

/** What a Pod that runs says. */
const running = (): object => ({
  phase: "Running",
  podIP: "127.0.0.9",
  conditions: [{ type: "Ready", status: "True" }],
  containerStatuses: [{ state: { running: { startedAt: new Date().toISOString() } }, imageID: "" }],
});

/** Starts the server, and has this process use it as its cluster, until the end of the test. */
export async function fakeCluster(region: string) {
  let version = 1;
  const objects = new Map<string, Kept>();
  const watches = new Set<{
    readonly plural: string;
    readonly selector: string;
    readonly response: ServerResponse;
  }>();

  const report = (type: string, path: string, object: Kept): void => {
    for (const { plural, selector, response } of watches)
      if (plural === pluralOf(path) && isSelected(object, selector))
        response.write(`${JSON.stringify({ type, object })}\n`);
  };
  const put = (path: string, object: Kept): Kept => {
    const before = objects.get(path);
    const [apiVersion = "", kind = ""] = kinds[pluralOf(path)] ?? [];
    const metadata = {
      ...before?.metadata,
      ...object.metadata,
      uid: before?.metadata.uid ?? `uid-${version}`,
      resourceVersion: String(++version),
    };
    const kept: Kept = { ...before, ...object, apiVersion, kind, metadata };
    objects.set(path, kept);
    report(before ? "MODIFIED" : "ADDED", path, kept);
    return kept;
  };
  const remove = (path: string, object: Kept): void => {
    objects.delete(path);
    report("DELETED", path, { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } });
    const { uid, name } = object.metadata;
    for (const [other, { metadata }] of objects)
      if (
        metadata.ownerReferences?.some((owner) => owner.uid === uid) ||
        (object.kind === "Namespace" && metadata.namespace === name)
      )
        remove(other, objects.get(other) as Kept);
  };

  const server = createServer((request, response) => {
    const { pathname: path, searchParams } = new URL(request.url ?? "", "http://cluster");
    const plural = pluralOf(path);
    const [apiVersion, kind] = kinds[plural] ?? [];
    const selector = searchParams.get("labelSelector") ?? "";
    const answer = (status: number, value: object): void =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const found = objects.get(path);
    const isList = (path.split("/").at(-1) ?? "") in kinds;
    const act = async (): Promise<void> => {
      const body = await text(request);
      const given = (body === "" ? {} : JSON.parse(body)) as Kept;
      const [, of] = /^\/apis?\/((?:[^/]+\/)?v1)$/.exec(path) ?? [];
      if (path === "/apis") return answer(200, { groups: groups.map((name) => ({ name })) });
      if (of !== undefined) {
        const resources = Object.entries(kinds)
          .filter(([, [one]]) => one === of)
          .map(([name, [, each]]) => ({ name, kind: each, namespaced: !ofAll.has(name), verbs: [] }));
        return answer(200, { resources });
      }
      if (searchParams.get("watch") === "true") {
        const watch = { plural, selector, response };
        watches.add(watch);
        response.once("close", () => watches.delete(watch));
        response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
        return undefined;
      }
      if (request.method === "GET" && isList) {
        const items = [...objects].filter(([at, one]) => pluralOf(at) === plural && isSelected(one, selector));
        const list = { apiVersion, kind: `${kind}List`, metadata: { resourceVersion: String(version) } };
        return answer(200, { ...list, items: items.map(([, one]) => one) });
      }
      if (request.method === "PATCH") return answer(200, put(path, given));
      if (request.method === "POST") {
        const at = `${path}/${given.metadata.name}`;
        if (objects.has(at)) return answer(409, { message: "it exists" });
        const isPod = given.kind === "Pod";
        return answer(
          201,
          put(at, isPod ? { ...given, spec: { ...given.spec, nodeName: "node" }, status: running() } : given),
        );
      }
      if (!found) return answer(404, { message: "there is none" });
      if (request.method === "DELETE") remove(path, found);
      return answer(200, found);
    };
    void act();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  put("/api/v1/nodes/node", {
    metadata: { name: "node", labels: { "topology.kubernetes.io/region": region } },
    status: {
      allocatable: { cpu: "64", memory: "256Gi", pods: "250" },
      conditions: [{ type: "Ready", status: "True" }],
    },
  });

  const folder = mkdtempSync(join(tmpdir(), "machines-cluster-"));
  const before = process.env["KUBECONFIG"];
  afterThisTest(() => {
    if (before === undefined) delete process.env["KUBECONFIG"];
    else process.env["KUBECONFIG"] = before;
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  });
  const name = "one";
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.env["KUBECONFIG"] = join(folder, "config");
  writeFileSync(
    join(folder, "config"),
    JSON.stringify({
      clusters: [{ name, cluster: { server: address, "insecure-skip-tls-verify": true } }],
      users: [{ name, user: {} }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      "current-context": name,
    }),
  );

  return {
    /** Creates or changes an object, as someone else. */
    put,
    /** All objects of a kind. */
    all: (kind: string): readonly Kept[] => [...objects.values()].filter((object) => object.kind === kind),
    /** Changes the annotations of all objects of a kind, as someone else. */
    annotate: (kind: string, annotations: V1ObjectMeta["annotations"] & object) => {
      for (const [path, object] of objects) {
        const { metadata } = object;
        if (object.kind === kind)
          put(path, {
            ...object,
            metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } },
          });
      }
    },
  };
}
