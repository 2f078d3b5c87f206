// Proxies as processes of their own, in front of a service of the test.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reportPath } from "../../service/proxy/feedPaths.ts";
import type { Report } from "../../service/proxy/replicas.ts";
import { addToken } from "../../service/store/tokens.ts";
import { serviceMain } from "../support/built.ts";
import { freePort } from "../support/freePort.ts";
import { afterThisTest } from "../support/leftovers.ts";
import type { TestService } from "../support/startService.ts";

/** A file that only this test has. */
export function fileOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "machines-proxy-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "file");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** Adds a token of a proxy to a service. */
export async function proxyToken({ service }: Pick<TestService, "service">, token = "of-a-proxy"): Promise<string> {
  const { store, clock } = service.context;
  await store.write(() => addToken(store, token, { slug: "personal", role: "proxy", expiresAt: null }, clock.now()));
  return token;
}

/** A proxy that is being started. */
export function startProxy(url: string, token: string, args: readonly string[] = []) {
  const usual = [
    ...["proxy", "--service", url, "--token-file", fileOf(`${token}\n`), "--public", "127.0.0.1"],
    ...["--http", "0", "--https", "0", "--health", "127.0.0.1:0", "--json"],
  ];
  const child = spawn(process.execPath, [serviceMain, ...usual, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  afterThisTest(() => void (child.exitCode === null && child.kill("SIGKILL")));
  const end = once(child, "close");
  let said = "";
  child.stderr.on("data", (part: Buffer) => (said += part.toString()));
  const line = once(child.stdout, "data").then(([part]) => String(part));
  const running = Promise.race([line, end]).then((first) => {
    if (typeof first !== "string") throw new Error(`it ended: ${said}`);
    return JSON.parse(first) as { readonly http: number; readonly https: number; readonly health: string };
  });
  // A test may end one that was never ready.
  running.catch(() => {});
  return { child, end, running, said: () => said };
}

/** A proxy that answers. */
export async function ownProxy(app: TestService, args: readonly string[] = [], url = app.url) {
  const token = await proxyToken(app, `of-proxy-${++count}`);
  const started = startProxy(url, token, args);
  return { ...started, ...(await started.running), token };
}

/** What proxies have reported to a service that keeps the bodies of requests, oldest first. */
export const reportsOf = ({ bodies }: Pick<TestService, "bodies">): readonly Reported[] =>
  bodies.filter(({ path }) => path === reportPath).map(({ body }) => body as Reported);

type Reported = Report & { readonly replica: string };

/** A way to a service that can be closed: connections break, and new ones are refused. It can lead to another service. */
export async function wayTo(url: string, host = "127.0.0.1") {
  let { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  /** The first line of each connection that began with a request. */
  const asked: string[] = [];
  const server = createServer((socket) => {
    const there = connect(Number(port), hostname);
    for (const one of [socket, there]) {
      sockets.add(one);
      one.on("error", () => one.destroy()).once("close", () => sockets.delete(one));
    }
    socket.once("data", (part: Buffer) => asked.push(part.toString().split("\r\n", 1).join("")));
    socket.pipe(there).pipe(socket);
  });
  const open = async (at: number): Promise<number> => {
    server.listen(at, host);
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const own = await open(await freePort());
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  afterThisTest(close);
  const leadTo = (other: string): Promise<number> => {
    ({ hostname, port } = new URL(other));
    return open(own);
  };
  return { url: `http://${host}:${own}`, asked, close, open: () => open(own), leadTo };
}

let count = 0;
