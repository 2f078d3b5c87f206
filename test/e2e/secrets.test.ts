// What a program marks secret, and the token, appear nowhere in clear text: not in state, not in any output.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindings, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const canary = "c4n4ry-secret-value";

const program = (image: string, value: string): string => `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("vault");
export const web = new machines.Machine("web", {
  app: app.id,
  config: {
    image: "${image}",
    env: { PLAIN: "visible", PASSWORD: pulumi.secret("${value}") },
    files: [{ guestPath: "/etc/secret", rawValue: pulumi.secret(Buffer.from("${value}").toString("base64")) }],
  },
});
`;

const filesBelow = (dir: string): string[] =>
  readdirSync(dir).flatMap((name) =>
    statSync(join(dir, name)).isDirectory() ? filesBelow(join(dir, name)) : [join(dir, name)],
  );

describe.each(bindings)("secrets on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  const seen: string[] = [];

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "secrets", binding);
    stack.program(program("registry.example.com/a:1", canary));
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  test("up, update, drift, refresh, errors and state never show them", async () => {
    const clear = [canary, `${canary}-2`].flatMap((value) => [value, Buffer.from(value).toString("base64")]);
    const run = async (...args: string[]) => {
      seen.push((await stack.run(args)).output);
    };
    await run("up", "--yes", "--diff");
    stack.program(program("registry.example.com/a:2", `${canary}-2`));
    await run("preview", "--diff", "--json");
    await run("up", "--yes", "--diff");
    const { web } = await stack.state();
    const id = web?.id.split("/")[1] ?? "";
    const appName = web?.id.split("/")[0] ?? "";
    const live = await send<{ config: { env: Record<string, string> } }>(
      service,
      "GET",
      `/v1/apps/${appName}/machines/${id}`,
    );
    expect(live.config.env).toEqual({ PLAIN: "visible", PASSWORD: `${canary}-2` });
    await send(service, "POST", `/v1/apps/${appName}/machines/${id}`, {
      config: { ...live.config, env: { PLAIN: "moved", PASSWORD: canary } },
    });
    await run("refresh", "--yes", "--diff");
    await run("up", "--yes", "--diff");
    await run("stack", "export");
    await run("stack", "output");
    stack.program(
      program("registry.example.com/a:3", canary).replace('"PLAIN"', "PLAIN").replace("rawValue: ", "rawValues: "),
    );
    await run("preview", "--diff");
    const kept = filesBelow(join(stack.dir, ".state")).map((file) => readFileSync(file, "utf8"));
    expect(kept.length).toBeGreaterThan(1);
    const all = [...seen, ...kept];
    for (const secret of [...clear, service.token]) {
      expect(
        all
          .filter((text) => text.includes(secret))
          .map((text) => text.slice(Math.max(0, text.indexOf(secret) - 300), text.indexOf(secret))),
      ).toEqual([]);
    }
    expect(seen.join("\n"), "the search itself works").toContain("visible");
  });
});
