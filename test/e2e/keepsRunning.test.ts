// Programs that end after their start, with the real CLI (F51, F52): no `up` succeeds with them, and no run calls them unchanged.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { expectEmptied, expectSettled } from "../support/invariants.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const canary = "c4n4ry-of-the-program";

const program = (script: string): string => `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "ending-shop" });
new machines.Machine("web", {
  app: app.id,
  config: {
    image: "registry.example.com/shop:1",
    init: { cmd: ["sh", "-c", ${JSON.stringify(script)}] },
    env: { TOKEN: pulumi.secret("${canary}") },
    restart: { policy: "on-failure", maxRetries: 2 },
  },
});
`;

describe.each(bindings)("a program that ends, on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService({ delays: "believable" });
    stack = new Stack(inject("installed"), "ending", binding);
    // The setting of users: the other tests do not watch.
    delete stack.env["MACHINES_MIN_HEALTHY_SECONDS"];
    stack.program(program(`echo cannot read config ${canary}; exit 3`));
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  const up = ["up", "--yes", "--skip-preview"];
  const live = async () => {
    const id = stack.state()["web"]?.id ?? "";
    return send<{ state: string }>(service, "GET", `/v1/apps/${id.replace("/", "/machines/")}`);
  };

  test("F51: its first up fails, and the message ends with what it wrote, without its secrets", async () => {
    const output = await stack.fails(...up);
    expect(output).toMatch(/is stopped and not started: its main process exited \(code 3\)/);
    expect(output).toMatch(/Its program wrote last:\s+cannot read config \[secret\]/);
    expect(output).not.toContain(canary);
  });

  test("F52: a refresh shows it, and the next up repairs it in place and fails again", async () => {
    await expect.poll(async () => (await live()).state).toBe("failed");
    const { id } = stack.state()["web"] ?? {};
    expect(counts((await stack.run(["refresh", "--yes"])).output)).toMatchObject({ updated: 1 });
    expect(stack.state()["web"]?.outputs).toMatchObject({
      state: "failed",
      failure: "its main process exited (code 3) and was restarted 2 times",
    });
    expect(await stack.fails(...up)).toMatch(/its main process exited \(code 3\)/);
    expect(stack.state()["web"]?.id).toBe(id);
  });

  // test/machines/keepsRunning.test.ts shows the same in simulated time.
  test("F52: a program that fails only later is shown by the next refresh, and repaired by the next up", async () => {
    stack.program(program("sleep infinity"));
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    await expectSettled(service, stack);
    const { id } = stack.state()["web"] ?? {};
    const path = `/v1/apps/${(id ?? "").replace("/", "/machines/")}`;
    for (let kill = 0; kill < 3; kill++) {
      await expect.poll(async () => (await live()).state).toBe("started");
      await send(service, "POST", `${path}/signal`, { signal: "SIGKILL" });
    }
    await expect.poll(async () => (await live()).state).toBe("failed");
    expect(counts((await stack.run(["refresh", "--yes"])).output)).toMatchObject({ updated: 1 });
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect(stack.state()["web"]?.id).toBe(id);
    expect(stack.state()["web"]?.outputs).not.toHaveProperty("failure");
    await expectSettled(service, stack);
  });

  test("destroy leaves nothing on the service", () => expectEmptied(service, stack));
});
