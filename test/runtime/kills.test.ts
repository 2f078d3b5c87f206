// kill -9 of the service and of containers while they work: the state converges to what runs, and no data is lost.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { caller } from "../service/client.ts";
import { command, folder, foreground, released } from "../service/command.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { removeStored } from "./cleaning.ts";
import { image } from "./image.ts";
import { fetchFrom } from "./requests.ts";
import { docker, hasEngine } from "./runtimes.ts";

const rounds = 50;

describe.runIf(hasEngine)("kill -9", () => {
  test(`${rounds} rounds under load`, async () => {
    const data = folder();
    afterThisTest(() => removeStored(data));
    const start = async () => {
      const { url, token, pid } = await foreground(data, ["--runtime", "docker", "--http", "0", "--https", "0"]);
      const { out } = await command(["status", "--json", "--data", data]);
      const { proxy } = JSON.parse(out) as { readonly proxy: { readonly http: number } };
      return { call: caller(url, token), pid, port: proxy.http };
    };
    let running = await start();
    const call: ReturnType<typeof caller> = (...args) => running.call(...args);
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    const machines = "/apps/web/machines";
    const { body: volume } = await call("POST", "/apps/web/volumes", { name: "data", region: "ams" });
    const services = [
      {
        protocol: "tcp",
        internal_port: 8080,
        ports: [{ port: 80, handlers: ["http"] }],
        checks: [{ type: "http", path: "/", interval: "1s" }],
      },
    ];
    const config = { image, services, restart: { policy: "always" } };
    const { body: store } = await call("POST", machines, {
      config: { ...config, mounts: [{ volume: volume.id, path: "/data" }] },
      region: "ams",
    });
    for (let count = 0; count < 2; count++) await call("POST", machines, { config: { ...config, services: [] } });
    const states = async (): Promise<string[]> =>
      ((await call("GET", machines)).body as { readonly state: string }[]).map(({ state }) => state);
    const isReady = () => expect.poll(states, { interval: 50 }).toEqual(["started", "started", "started"]);
    await isReady();
    let written = 0;
    const over = new AbortController();
    const writing = (async () => {
      for (let number = 1; !over.signal.aborted; number++) {
        const put = { method: "PUT", body: String(number) };
        const got = await fetchFrom(running.port, "/file/data/number", put).catch(() => undefined);
        if (got?.status === 200) written = number;
      }
    })();
    const label = [`machines-service.data=${readFileSync(join(data, "data-id"), "utf8").trim()}`];
    for (let round = 0; round < rounds; round++) {
      const before = written;
      if (round % 2 === 0) {
        process.kill(running.pid, "SIGKILL");
        await released(data);
        running = await start();
      } else {
        const containers = await docker.listContainers({ filters: { label } });
        const victim = containers[round % Math.max(1, containers.length)];
        if (victim) await docker.getContainer(victim.Id).kill({ signal: "SIGKILL" });
      }
      // In the middle of an update.
      if (round % 3 === 0) await call("POST", `${machines}/${store.id}/restart`);
      await isReady();
      await expect.poll(() => written, { interval: 20 }).toBeGreaterThan(before);
    }
    over.abort();
    await writing;
    const { text } = await fetchFrom(running.port, "/file/data/number");
    expect(Number(text)).toBeGreaterThanOrEqual(written);
    await call("DELETE", "/apps/web?force=true");
    const left = async () => (await docker.listContainers({ all: true, filters: { label } })).length;
    await expect.poll(left).toBe(0);
    process.kill(running.pid, "SIGTERM");
  });
});
