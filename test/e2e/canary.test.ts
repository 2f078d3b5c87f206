// The canary with its gate, with the real CLI: the example's program, and the steps that docs/fleets.md shows for it.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import type { Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const [, steps = ""] = /^```sh\n(pulumi config set image .*?)^```/ms.exec(readFileSync("docs/fleets.md", "utf8")) ?? [];
const [deploy = "", promote = ""] = steps.split(/^(?=pulumi config set promoted true)/m);

describe("the guide's canary", () => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = await exampleStack("canary", service, { observe: "1s", image: "registry.example.com/shop:1.0.0" });
    await stack.up();
  });
  afterAll(() => service.close());

  const run = async (commands: string): Promise<void> => {
    const script = commands.replaceAll(/^pulumi up\b/gm, "pulumi up --yes --skip-preview");
    const { code, output } = await stack.run(["-euc", script], { command: "bash", plain: true });
    expect(code, output).toBe(0);
  };
  const output = async (name: string): Promise<string> => (await stack.ok("stack", "output", name)).trim();
  /** Number of Machines on the new image. */
  const updated = async (): Promise<number> => {
    const [{ name: app } = { name: "" }] = (
      await send<{ apps: { name: string }[] }>(service, "GET", "/v1/apps?org_slug=personal")
    ).apps;
    const all = await send<{ config: { image: string } }[]>(service, "GET", `/v1/apps/${app}/machines`);
    expect(all).toHaveLength(4);
    return all.filter(({ config }) => config.image.includes(":2.0.0")).length;
  };

  test("a new image reaches one Machine, and waits there", async () => {
    await run(deploy);
    expect([await output("rollout"), await updated()]).toEqual(["canary", 1]);
    await stack.up();
    expect([await output("rollout"), await updated()]).toEqual(["canary", 1]);
  });

  test("the promotion brings the image to all Machines", async () => {
    await run(promote);
    expect([await output("rollout"), await updated()]).toEqual(["complete", 4]);
  });
});
