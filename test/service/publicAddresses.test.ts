// Where the proxy listens at all addresses of the computer, it answers at those of Apps as well.
import { describe, expect, test } from "vitest";
import { get, hasLoopback, withReach } from "./reachable.ts";
import { freePort } from "../support/freePort.ts";

describe.runIf(hasLoopback)("addresses of Apps beside a public address", () => {
  test("the proxy answers there by HTTP and HTTPS, as long as an App has the address", async () => {
    const ports = { http: await freePort(), https: await freePort() };
    const app = await withReach({}, undefined, ports, { addresses: ["0.0.0.0"] });
    const offered = [
      { port: ports.http, handlers: ["http"] },
      { port: ports.https, handlers: ["tls", "http"] },
      { port: await freePort(), handlers: ["http"] },
    ];
    await app.offer(offered);
    await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
    await app.offer(offered, "other");
    const [own, shared] = [await app.assign("v4"), await app.assign("shared_v4", "other")];
    const plain = (ip: string, host: string, port = ports.http) => get(`http://${ip}:${port}/at`, host);
    const addresses = async () =>
      (await app.service.proxy?.addressesOf({ id: await appId(app), name: "web" }))?.flatMap(({ url, ip }) =>
        ip ? [url] : [],
      );
    // Any name leads to the App that alone has the address.
    await expect.poll(() => plain(own, "any.example")).toMatchObject({ status: 200, text: "any.example /at" });
    await expect.poll(() => plain(own, "any.example", offered[2]?.port)).toMatchObject({ status: 200 });
    const secure = await get(`https://${own}:${ports.https}/at`, "web.localhost", { servername: "web.localhost" });
    expect(secure).toMatchObject({ status: 200, text: "web.localhost /at" });
    expect(new Set(await addresses())).toEqual(
      new Set(offered.map(({ port, handlers }) => `${handlers.length === 1 ? "http" : "https"}://${own}:${port}`)),
    );
    // At a shared one, the name says which App is meant, of those that have it.
    expect(await plain(shared, "other.localhost")).toMatchObject({ status: 200 });
    expect(await plain(shared, "web.localhost")).toMatchObject({ status: 404 });
    await app.release(own);
    await expect.poll(() => plain(own, "any.example")).toMatchObject({ status: 404 });
    expect(await plain("127.0.0.1", "web.localhost")).toMatchObject({ status: 200 });
  });
});

const appId = async (app: Awaited<ReturnType<typeof withReach>>): Promise<string> =>
  (await app.call("GET", "/apps/web")).body.id;
