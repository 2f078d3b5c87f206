// Addresses of Apps whose Machines are containers: the proxy answers at them, also after a restart of the service.
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { caller } from "../service/client.ts";
import { command, folder, foreground } from "../service/command.ts";
import { connected, echoed, get, hasLoopback } from "../service/reachable.ts";
import { freePort } from "../support/freePort.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { removeStored } from "./cleaning.ts";
import { image } from "./image.ts";
import { hasEngine } from "./runtimes.ts";

/** Starts the service of a data folder; it can be stopped before the test ends. */
async function start(data: string) {
  const { url, token, pid, end } = await foreground(data, ["--runtime", "docker", "--http", "0", "--https", "0"]);
  let isOver = false;
  const stop = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    process.kill(pid, "SIGTERM");
    await end;
  };
  afterThisTest(stop);
  return { call: caller(url, token), stop };
}

/** A data folder whose containers are removed after the test. */
function dataFolder(): string {
  const data = folder();
  afterThisTest(() => removeStored(data));
  return data;
}

/** An App with an address of its own and a Machine with two public ports. */
async function deploy({ call }: Awaited<ReturnType<typeof start>>, web: number, raw: number): Promise<string> {
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { body } = await call("POST", "/apps/web/ip_assignments", { type: "v4" });
  const services = [
    { protocol: "tcp", internal_port: 8080, ports: [{ port: web, handlers: ["http"] }] },
    { protocol: "tcp", internal_port: 9000, ports: [{ port: raw, handlers: ["proxy_proto"] }] },
  ];
  await call("POST", "/apps/web/machines", { config: { image, services } });
  return body.ip;
}

describe.runIf(hasEngine && hasLoopback)("addresses of Apps on containers", () => {
  test("two services answer at different addresses, again after a restart, and not after a release", async () => {
    const [web, raw] = [await freePort(), await freePort()];
    const [first, second] = [dataFolder(), dataFolder()];
    const [one, two] = [await start(first), await start(second)];
    const ips = [await deploy(one, web, raw), await deploy(two, web, raw)];
    const [ip = "", other = ""] = ips;
    expect(ip).not.toBe(other);
    const text = async (at: string) => (await get(`http://${at}:${web}/`)).text;
    for (const at of ips) await expect.poll(() => text(at)).toMatch(/^\w+ of web\n$/);
    expect(await text(ip)).not.toBe(await text(other));
    expect(await echoed(await connected(ip, raw))).toMatch(
      new RegExp(String.raw`^PROXY TCP4 127\.0\.0\.1 ${ip.replaceAll(".", String.raw`\.`)} \d+ ${raw}\r\nhello\n$`),
    );
    const { out } = await command(["url", "web", "--data", first]);
    expect(out.split("\n")).toEqual(expect.arrayContaining([`http://${ip}:${web}`, `tcp://${ip}:${raw}`]));
    await one.stop();
    expect((await get(`http://${ip}:${web}/`)).status).toBe("ECONNREFUSED");
    const again = await start(first);
    await expect.poll(() => text(ip)).toMatch(/^\w+ of web\n$/);
    const open = await connected(ip, raw);
    await echoed(open);
    const ended = once(open, "close");
    expect((await again.call("DELETE", `/apps/web/ip_assignments/${ip}`)).status).toBe(204);
    await ended;
    await expect.poll(async () => (await get(`http://${ip}:${web}/`)).status).toBe("ECONNREFUSED");
    expect(await text(other)).toMatch(/^\w+ of web\n$/);
  });
});
