// Programs in TypeScript on Bun and on Deno, by the real CLI: both bindings.
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { send } from "../support/around.ts";
import { findBun, findDeno } from "../support/javascriptRuntimes.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const program = (name: "bun" | "deno"): string => `import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";

// Without types, because those of Node.js know no other runtime.
const versions: Record<string, string | undefined> = process.versions;
if (versions["${name}"] === undefined) throw new Error("the program does not run on ${name}");
const settings = new pulumi.Config();
const app = new machines.App("shop");
const data = new machines.Volume("data", { app: app.id, region: "ams", sizeGb: 1 });
const web = new machines.Machine("web", {
  app: app.id,
  region: "ams",
  config: {
    image: settings.require("image"),
    env: { PASSWORD: pulumi.secret("hush-hush") },
    mounts: [{ volume: data.id, path: "/data" }],
  },
});
const seen = machines.getVolumeOutput({ app: app.id, volume: data.volumeId });
export const machine = web.id;
export const sizeGb = seen.sizeGb;
`;

describe.each([
  { name: "bun", find: findBun },
  { name: "deno", find: findDeno },
] as const)("a program on $name", async ({ name, find }) => {
  const { runtime, reason } = await find(inject("installed"));
  if (runtime === undefined) {
    leaveOut(`programs on ${name}`, reason);
    test.skip(`programs on it are not run: ${reason}`);
    return;
  }

  describe.each(bindings)("with %s", (binding) => {
    let service: TestService;
    let stack: Stack;

    beforeAll(async () => {
      service = await startService();
      stack = new Stack(inject("installed"), name, binding, runtime);
      stack.program(program(name));
      await stack.init({
        "machines:endpoint": service.url,
        "machines:token": service.token,
        image: "registry.example.com/shop:1.0.0",
      });
    });
    afterAll(() => service.close());

    test("up creates an App, a volume and a Machine, and reads the volume", async () => {
      expect(await stack.ok("preview")).toMatch(/\+ 4 to create/);
      expect(counts(await stack.up())).toEqual({ created: 4 });
      const outputs = JSON.parse((await stack.run(["stack", "output", "--json"])).stdout) as Record<string, unknown>;
      expect(outputs).toEqual({ machine: stack.state()["web"]?.id, sizeGb: 1 });
      expect(JSON.stringify(stack.resources())).not.toContain("hush-hush");
    });

    test("up again and refresh change nothing", async () => {
      expect(counts(await stack.up())).toEqual({ unchanged: 4 });
      expect(counts(await stack.refresh())).toEqual({ unchanged: 4 });
    });

    test("another image is an update, and an invalid one is refused", async () => {
      await stack.set({ image: "registry.example.com/shop:2.0.0" });
      expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 3 });
      await stack.set({ image: "registry.example.com/Not An Image" });
      expect(await stack.fails("preview")).toMatch(/config\.image: got "registry\.example\.com\/Not An Image"/);
      await stack.set({ image: "registry.example.com/shop:2.0.0" });
    });

    test("destroy leaves the service empty", async () => {
      await stack.destroy();
      expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
      expect(stack.state()).toEqual({});
    });
  });
});

describe("the embedded service, for a program on bun", async () => {
  const { runtime } = await findBun(inject("installed"));
  const data = join(mkdtempSync(join(inject("installed"), "data-")), "service");
  const command = (verb: string): string =>
    execFileSync(join(inject("installed"), "node_modules/.bin/machines-service"), [verb, "--data", data], {
      encoding: "utf8",
    });

  test.skipIf(runtime === undefined)("a preview that asks starts it on Node.js, and up uses it", async () => {
    const stack = new Stack(inject("installed"), "bun-local", "pulumi-machines", runtime);
    Object.assign(stack.env, { MACHINES_SERVICE_DATA: data });
    stack.program(program("bun"));
    await stack.init({ "machines:endpoint": "local", image: "registry.example.com/shop:1.0.0" });
    try {
      expect(await stack.ok("preview")).not.toContain("the service did not answer");
      expect(command("status")).toContain("is ready at");
      expect(counts(await stack.up())).toEqual({ created: 4 });
      expect(counts(await stack.destroy())).toEqual({ deleted: 4 });
    } finally {
      command("stop");
    }
  });
});
