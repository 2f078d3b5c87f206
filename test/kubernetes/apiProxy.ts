// A proxy in front of an API server, which treats requests as a test says.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { request as send } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { seededRandom } from "../../service/index.ts";
import { afterThisTest } from "../support/leftovers.ts";

/** What happens to a request. */
export type Treatment =
  | "pass"
  /** The connection is cut before the server has the request. */
  | "cutRequest"
  /** The connection is cut when the server has answered. */
  | "cutAnswer"
  /** The server has no time: 429. */
  | "throttle"
  /** The watch ends after one event. */
  | "cutWatch"
  /** The request waits half a second. */
  | "delay";

/** A request as the proxy sees it. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly isWatch: boolean;
}

/** Writes a configuration of clients that leads to a server. */
function kubeconfigFor(server: string): string {
  const folder = mkdtempSync(join(tmpdir(), "machines-kubeconfig-"));
  afterThisTest(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "config");
  const named = { name: "proxy", cluster: { server, "insecure-skip-tls-verify": true } };
  const context = { name: "proxy", context: { cluster: "proxy", user: "proxy" } };
  const users = [{ name: "proxy", user: {} }];
  writeFileSync(file, JSON.stringify({ clusters: [named], users, contexts: [context], "current-context": "proxy" }));
  return file;
}

/** The API server that a proxy is in front of. */
interface Target {
  readonly server: string;
  readonly token: string;
  readonly ca: string;
}

/** The API server of a configuration of clients. */
export function targetOf(kubeconfig: string): Target {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const { server = "", caFile: ca = "" } = config.getCurrentCluster() ?? {};
  return { server, ca, token: config.getCurrentUser()?.token ?? "" };
}

/** Starts a proxy, and returns the configuration of its clients. `treat` decides about each request, perhaps after it has done something. */
export async function apiProxy(
  { server, token, ca }: Target,
  treat: (seen: Seen) => Treatment | Promise<Treatment>,
): Promise<string> {
  const certificate = readFileSync(ca);
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? "/";
    const isWatch = /[?&]watch=true/.test(path);
    const treatment = await treat({ method: request.method ?? "GET", path, isWatch });
    if (treatment === "cutRequest") return void request.socket.destroy();
    if (treatment === "throttle") {
      request.resume();
      response.writeHead(429, { "retry-after": "1", "content-type": "application/json" });
      return void response.end(JSON.stringify({ kind: "Status", code: 429, message: "too many requests" }));
    }
    if (treatment === "delay") await sleep(500);
    const headers = { ...request.headers, authorization: `Bearer ${token}`, host: new URL(server).host };
    const upstream = send(`${server}${path}`, { method: request.method, headers, ca: certificate }, (answer) => {
      if (treatment === "cutAnswer") {
        answer.resume();
        answer.once("end", () => request.socket.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      response.flushHeaders();
      if (treatment !== "cutWatch") return void answer.pipe(response);
      // An event may come in pieces.
      answer.on("data", (chunk: Buffer) => {
        const end = chunk.indexOf("\n");
        if (end < 0) return void response.write(chunk);
        response.end(chunk.subarray(0, end + 1));
        answer.destroy();
      });
      answer.once("close", () => response.end());
    });
    upstream.on("error", () => request.socket.destroy());
    response.on("close", () => upstream.destroy());
    request.on("error", () => {});
    request.pipe(upstream);
  };
  const proxy = createServer((request, response) => {
    response.on("error", () => {});
    forward(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  afterThisTest(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  return kubeconfigFor(`http://127.0.0.1:${port}`);
}

/** Treats a request, with a number from 0 to 1 by chance. */
export type Fault = (seen: Seen, random: number) => Treatment;

/** Starts a proxy that passes all requests until `faults.isOn`, and then treats them. `faults.count` is the number that did not just pass. */
export async function faultyApi(target: Target, treat: Fault) {
  const bytes = seededRandom("faults");
  const faults = { isOn: false, count: 0 };
  const kubeconfig = await apiProxy(target, (seen) => {
    const treatment = faults.isOn ? treat(seen, (bytes(1)[0] ?? 0) / 256) : "pass";
    if (treatment !== "pass") faults.count++;
    return treatment;
  });
  return { kubeconfig, faults };
}
