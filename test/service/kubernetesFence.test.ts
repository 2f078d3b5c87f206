// Requests of a leader to a Kubernetes cluster: changes wait until its leadership is certain.
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { untilSure } from "../../service/runtime/fence.ts";
import { Cluster } from "../../service/runtime/kubernetes/cluster.ts";
import { kinds } from "../../service/runtime/kubernetes/names.ts";
import { withResolvers } from "../../service/withResolvers.ts";
import { afterThisTest } from "../support/leftovers.ts";

/** A server that records the methods of its requests, and knows no objects. */
async function recorded() {
  const methods: string[] = [];
  const server = createServer(({ method = "", url }, response) => {
    if (url !== "/apis") methods.push(method);
    const resources = [{ name: "pods", kind: "Pod", namespaced: true, verbs: [] }];
    response.setHeader("content-type", "application/json").end(JSON.stringify({ groups: [], resources, items: [] }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = mkdtempSync(join(tmpdir(), "machines-fence-"));
  afterThisTest(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  });
  const name = "one";
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    clusters: [{ name, cluster: { server: address, "insecure-skip-tls-verify": true } }],
    users: [{ name, user: {} }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
  process.env["KUBECONFIG"] = join(folder, "config");
  writeFileSync(join(folder, "config"), JSON.stringify(config));
  const cluster = Cluster.of();
  await cluster.connect();
  return { methods, cluster };
}

test("a change waits until the leadership is certain, a read does not", async () => {
  const { methods, cluster } = await recorded();
  const { promise, resolve } = withResolvers();
  cluster.fence.unsure = () => promise;
  const deleted = cluster.delete(kinds.pod, { name: "a", namespace: "b" });
  await cluster.list(kinds.pod, undefined);
  await cluster.list(kinds.pod, undefined);
  expect(methods).not.toContain("DELETE");
  resolve();
  await deleted;
  expect(methods.at(-1)).toBe("DELETE");
});

test("a change that waits for the leadership fails when the service closes, which can then end", async () => {
  const { methods, cluster } = await recorded();
  const closing = new AbortController();
  const { promise: unsure } = withResolvers();
  cluster.fence.unsure = untilSure({ unsure }, closing.signal, new Error("the service closes"));
  const deleted = cluster.delete(kinds.pod, { name: "a", namespace: "b" });
  closing.abort();
  await expect(deleted).rejects.toThrow("the service closes");
  expect(methods).not.toContain("DELETE");
});
