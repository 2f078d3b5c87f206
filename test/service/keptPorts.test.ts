// Ports of the proxy over restarts, and the addresses of Apps that programs read.
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bind } from "../../service/runtime/bind.ts";
import { portsFile } from "../../service/proxy/keptPorts.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { withApp } from "./client.ts";
import { withReach } from "./reachable.ts";

function dataFolder(): string {
  const made = mkdtempSync(join(tmpdir(), "machines-ports-"));
  afterThisTest(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Takes a port of this computer. */
async function takePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  afterThisTest(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { port, free: () => new Promise((resolve) => server.close(resolve)) };
}

/** The addresses of the App `web`, as `machines-service url` prints them. */
async function urlsOf({ url, token }: { readonly url: string; readonly token: string }): Promise<readonly string[]> {
  const answer = await fetch(`${url}/local/apps/web/addresses`, { headers: { authorization: `Bearer ${token}` } });
  const { addresses } = (await answer.json()) as { readonly addresses: readonly { readonly url: string }[] };
  return addresses.map((address) => address.url);
}

test("where a wanted port was taken, the one that was used is kept over restarts, also once the wanted one is free", async () => {
  const data = dataFolder();
  const [http, https, echo] = [await takePort(), await takePort(), await takePort()];
  const wanted = { http: http.port, https: https.port };
  const first = await withReach({ data }, bind, wanted);
  await first.offer([{ port: echo.port }, { port: 80, handlers: ["http"] }]);
  await expect.poll(() => urlsOf(first)).toHaveLength(2);
  const [ports, urls] = [first.service.proxy?.ports, await urlsOf(first)];
  expect([http.port, https.port]).not.toContain(ports?.http);
  expect(urls.join()).not.toContain(`:${echo.port}`);
  await first.close();
  await Promise.all([http.free(), https.free(), echo.free()]);
  const second = await withReach({ data }, bind, wanted);
  expect(second.service.proxy?.ports).toEqual(ports);
  await expect.poll(() => urlsOf(second)).toEqual(urls);
  // Another choice of the operator goes first.
  await second.close();
  const other = await takePort();
  await other.free();
  const third = await withReach({ data }, bind, { ...wanted, http: other.port });
  expect(third.service.proxy?.ports).toEqual({ http: other.port, https: ports?.https });
});

test("a file of ports that holds something else is replaced; one of ports that were free is not written", async () => {
  const data = dataFolder();
  writeFileSync(join(data, "proxy-ports.json"), '{"http": {"wanted": 1, "used": "x"}}');
  const first = await withReach({ data }, bind, { http: 0, https: 0 });
  const ports = first.service.proxy?.ports;
  await first.close();
  const second = await withReach({ data }, bind, { http: 0, https: 0 });
  expect(second.service.proxy?.ports).toEqual(ports);
  await second.close();
  const other = dataFolder();
  const [http, https] = [await takePort(), await takePort()];
  await Promise.all([http.free(), https.free()]);
  await withReach({ data: other }, bind, { http: http.port, https: https.port });
  expect(existsSync(portsFile(other))).toBe(false);
});

test("an App says where it can be opened, if the service makes Machines reachable", async () => {
  const { call, service } = await withReach();
  const { http, https } = service.proxy?.ports ?? {};
  expect((await call("GET", "/apps/web")).body).toMatchObject({
    http_url: `http://web.localhost:${http}`,
    https_url: `https://web.localhost:${https}`,
  });
  const simulated = await withApp();
  expect((await simulated.call("GET", "/apps/web")).body).not.toHaveProperty("http_url");
});
