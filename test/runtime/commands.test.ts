// The commands for Machines that run: where an App can be opened, and what its Machines write.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { describe, expect, test } from "vitest";
import { serviceMain } from "../support/built.ts";
import { caller } from "../service/client.ts";
import { command, folder, foreground } from "../service/command.ts";
import { removeStored } from "./cleaning.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { image } from "./image.ts";
import { hasEngine } from "./runtimes.ts";

/** A started service with an App `web`. */
async function running() {
  const data = folder();
  afterThisTest(() => removeStored(data));
  const start = () => foreground(data, ["--runtime", "docker", "--http", "0", "--https", "0"]);
  let { url, token, pid, end } = await start();
  const stop = async (): Promise<void> => {
    process.kill(pid, "SIGTERM");
    await end;
  };
  afterThisTest(() => stop());
  const call = caller(url, token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const restart = async (): Promise<void> => {
    await stop();
    ({ url, token, pid, end } = await start());
  };
  return { data, call, restart };
}

describe.runIf(hasEngine)("the commands", () => {
  test("url prints where an App can be opened", async () => {
    const { data, call } = await running();
    expect(await command(["url", "web", "--data", data])).toMatchObject({
      code: 1,
      err: "machines-service: App web has no Machine with a service that has ports\n",
    });
    const ports = [
      { port: 80, handlers: ["http"] },
      { port: 443, handlers: ["tls", "http"] },
      { port: 81, handlers: ["http"] },
    ];
    const services = [{ protocol: "tcp", internal_port: 8080, ports }];
    await call("POST", "/apps/web/machines", { config: { image, services } });
    const { out } = await command(["url", "web", "--data", data]);
    const status = (await command(["status", "--data", data])).out;
    const [, http, https] = /http:\/\/<app>\.localhost:(\d+), https:\/\/<app>\.localhost:(\d+)/.exec(status) ?? [];
    expect(out).toBe(`http://web.localhost:${http}\nhttp://81.web.localhost:${http}\nhttps://web.localhost:${https}\n`);
    expect((await command(["url", "wep", "--data", data])).err).toBe(
      "machines-service: there is no app wep; did you mean web?\n",
    );
  });

  test("logs prints what the Machines of an App write, also those before a restart, and follows", async () => {
    const { data, call } = await running();
    const { body } = await call("POST", "/apps/web/machines", { config: { image } });
    const state = async () => (await call("GET", `/apps/web/machines/${body.id}`)).body.state;
    await expect.poll(state).toBe("started");
    const logs = async (...more: string[]) => (await command(["logs", "web", "--data", data, ...more])).out;
    const line = new RegExp(String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ${body.name} listening on 8080$`, "gm");
    await expect.poll(() => logs()).toMatch(line);
    await call("POST", `/apps/web/machines/${body.id}/restart`);
    await expect.poll(async () => [...(await logs()).matchAll(line)].length).toBe(2);
    expect([...(await logs("--lines", "1")).matchAll(line)]).toHaveLength(1);
    expect(await logs("--since", "2100-01-01")).toBe("");
    const following = spawn(process.execPath, [serviceMain, ...["logs", "web", "--follow", "--data", data]]);
    afterThisTest(() => void following.kill());
    const lines = createInterface({ input: following.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<string> => String((await lines.next()).value);
    for (let before = 0; before < 2; before++) expect(await next()).toContain("listening on 8080");
    // A Machine that is created later is followed too.
    const config = { image, init: { exec: ["/bin/echo", "hello"] } };
    const { body: later } = await call("POST", "/apps/web/machines", { config });
    expect(await next()).toMatch(new RegExp(`${later.name} hello$`));
    expect(await command(["logs", "web", "nothing", "--data", data])).toMatchObject({
      code: 1,
      err: "machines-service: App web has no Machine nothing\n",
    });
    for (const named of [later.name, later.id])
      expect((await command(["logs", "web", named, "--data", data])).out.trimEnd()).toMatch(
        new RegExp(`${later.name} hello$`),
      );
  });

  test("logs of Machines that write in turns are in the order of time, also while they are followed, and after a restart of the service", async () => {
    const { data, call, restart } = await running();
    const script =
      "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo turn $i; sleep 0.2; done; sleep 600";
    for (const name of ["ping", "pong"])
      await call("POST", "/apps/web/machines", { name, config: { image, init: { exec: ["/bin/sh", "-c", script] } } });
    const following = spawn(process.execPath, [serviceMain, ...["logs", "web", "--follow", "--data", data]]);
    afterThisTest(() => void following.kill());
    const followed: string[] = [];
    for await (const line of createInterface({ input: following.stdout })) {
      followed.push(line);
      if (followed.length === 40) break;
    }
    const sorted = followed.toSorted((a, b) =>
      a.slice(0, 24) < b.slice(0, 24) ? -1 : a.slice(0, 24) > b.slice(0, 24) ? 1 : 0,
    );
    expect(followed).toEqual(sorted);
    for (const name of ["ping", "pong"])
      expect(followed.filter((line) => line.includes(`Z ${name} turn`)).map((line) => line.split(" ").at(-1))).toEqual(
        Array.from({ length: 20 }, (_, i) => String(i + 1)),
      );
    await restart();
    const { out } = await command(["logs", "web", "--data", data]);
    expect(out.trimEnd().split("\n")).toEqual(followed);
    const last = await command(["logs", "web", "--lines", "3", "--data", data]);
    expect(last.out.trimEnd().split("\n")).toEqual(followed.slice(-3));
  });

  test("with the simulated runtime they say that no program runs", async () => {
    const data = folder();
    const { url, token } = await foreground(data);
    await caller(url, token)("POST", "/apps", { name: "web", org_slug: "personal" });
    for (const name of ["url", "logs"])
      expect((await command([name, "web", "--data", data])).err).toBe(
        "machines-service: failed_precondition: the simulated runtime runs no programs; start the service with --runtime docker\n",
      );
  });
});
