// Replacements without a changed input, requested by the program or the user: whatever the new resource takes over from the
// old one must still exist afterwards.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindings, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const program = (name: string, role: string) => `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "shop" });
const web = new machines.Machine("web", { app: app.id, name: "web", config: { image: "registry.example.com/web:1" } });
new machines.MachineMetadata("${name}", { app: app.id, machine: web.id, values: { role: "${role}" }, adopt: true }, { replaceOnChanges: ["values"] });
new machines.AppSecrets("${name}", { app: app.id, values: { LEVEL: "${role}" } }, { replaceOnChanges: ["values"] });
new machines.Secret("${name}-token", { app: app.id, name: "TOKEN", value: "${role}" }, { replaceOnChanges: ["value"] });
export const machine = web.machineId;
`;

describe.each(bindings)("replaced without a changed input, %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "replaced", binding);
    stack.program(program("one", "web"));
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await stack.up();
  });
  afterAll(() => service.close());

  const there = async () => {
    const machine = (await stack.ok("stack", "output", "machine")).trim();
    const { secrets } = await send<{ secrets: { name: string; value: string }[] }>(
      service,
      "GET",
      "/v1/apps/shop/secrets?show_secrets=true",
    );
    const { role } = await send<{ role?: string }>(service, "GET", `/v1/apps/shop/machines/${machine}/metadata`);
    return { role, ...Object.fromEntries(secrets.map(({ name, value }) => [name, value])) };
  };

  test("a forced replacement keeps the values of secrets and metadata", async () => {
    const before = await there();
    expect(before).toEqual({ role: "web", LEVEL: "web", TOKEN: "web" });
    const urns = [
      ["MachineMetadata", "one"],
      ["AppSecrets", "one"],
      ["Secret", "one-token"],
    ] as const;
    const replace = urns.flatMap(([type, name]) => ["--replace", stack.urn(type, name)]);
    await stack.ok("up", "--yes", "--skip-preview", ...replace);
    expect(await there()).toEqual(before);
    expect(await stack.preview()).toEqual({});
  });

  // In process, the tests of the three types and the stories of unfinished renames have these two.
  test("a replacement by replaceOnChanges keeps the values of secrets and metadata", async () => {
    stack.program(program("one", "db"));
    await stack.up();
    expect(await there()).toEqual({ role: "db", LEVEL: "db", TOKEN: "db" });
    await stack.refresh();
    expect(await stack.preview()).toEqual({});
  });

  test("a replacement under another name in the program keeps the values of secrets and metadata", async () => {
    stack.program(program("two", "db"));
    await stack.up();
    expect(await there()).toEqual({ role: "db", LEVEL: "db", TOKEN: "db" });
    await stack.refresh();
    expect(await stack.preview()).toEqual({});
  });
});
