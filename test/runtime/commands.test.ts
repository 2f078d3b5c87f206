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
  const { url, token, pid, end } = await foreground(data, ["--runtime", "docker", "--http", "0", "--https", "0"]);
  afterThisTest(async () => {
    process.kill(pid, "SIGTERM");
    await end;
  });
  const call = caller(url, token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  return { data, call };
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
    const line = new RegExp(String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ${body.id} listening on 8080$`, "gm");
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
    expect(await next()).toMatch(new RegExp(`${later.id} hello$`));
    expect(await command(["logs", "web", "nothing", "--data", data])).toMatchObject({
      code: 1,
      err: "machines-service: not_found: machine not found\n",
    });
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
