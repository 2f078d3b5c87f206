// A Release from stack to stack, on both bindings: the last stack runs exactly what the previous one ran.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { startAdmin, type Admin } from "../../service/index.ts";
import { send } from "../support/around.ts";
import { digest, listImage } from "../support/promotion.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/shop:1.0.0";

const program = `
import { existsSync, readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const settings = new pulumi.Config();
const before = settings.get("before");
const pin = \`\${pulumi.getStack()}.json\`;
const source = settings.get("sourceToken") ? { token: settings.requireSecret("sourceToken") } : undefined;
const release = new machines.Release("release", before
  ? {
      from: new pulumi.StackReference(\`organization/\${pulumi.getProject()}/\${before}\`).getOutput("release"),
      pinned: existsSync(pin) ? JSON.parse(readFileSync(pin, "utf8")) : undefined,
      source,
    }
  : { image: settings.require("image"), settings: { LOG_LEVEL: settings.get("level") ?? "info" } });
const app = new machines.App("shop");
const web = ["ams", "fra"].slice(0, settings.getNumber("replicas") ?? 1).map((region) =>
  new machines.Machine(\`web-\${region}\`, {
    app: app.id,
    region,
    config: {
      image: release.image,
      env: release.settings,
      checks: { alive: { type: "tcp", port: 8080, interval: "10s", timeout: "2s" } },
    },
  }),
);
export const machine = web[0].id;
export { runs as release };
const runs = release.runBy(web);
`;

interface Told {
  readonly machine: string;
  readonly release: { readonly image: string; readonly digest: string; readonly machines: readonly string[] };
}

describe.each(bindings)("a release on %s", (binding) => {
  let service: TestService;
  let admin: Admin;
  let stack: Stack;

  const tag = (to: string): Promise<void> => listImage(admin, image, to);
  const on = (name: string, ...args: string[]) => stack.run([...args, "--stack", name]);
  const up = async (name: string): Promise<string> => {
    const { code, output } = await on(name, "up", "--yes", "--skip-preview");
    expect(code, output).toBe(0);
    return output;
  };
  const outputs = async (name: string): Promise<Told> =>
    JSON.parse((await on(name, "stack", "output", "--json")).stdout) as Told;
  /** The digests of the Machines of a stack, as the service shows them. */
  const running = async (name: string): Promise<string[]> => {
    const { release } = await outputs(name);
    const ids = release.machines.map((id) => id.split("/"));
    return Promise.all(
      ids.map(async ([app = "", id = ""]) => {
        const live = await send<{ image_ref: { digest: string } }>(service, "GET", `/v1/apps/${app}/machines/${id}`);
        return live.image_ref.digest;
      }),
    );
  };

  beforeAll(async () => {
    service = await startService();
    admin = await startAdmin({ service: service.service, listen: { host: "127.0.0.1", port: 0 } });
    await tag(digest("a"));
    stack = new Stack(inject("installed"), "release", binding);
    stack.program(program);
    const configuration = { "machines:endpoint": service.url, "machines:token": service.token };
    await stack.init({ ...configuration, image });
    for (const [name, before] of [
      ["staging", "dev"],
      ["prod", "staging"],
    ] as const) {
      await stack.ok("stack", "init", name);
      const prod = { replicas: "2", sourceToken: service.token };
      await stack.set({ ...configuration, before, ...(name === "prod" ? prod : {}) });
    }
  });
  afterAll(async () => {
    await admin.close();
    await service.close();
  });

  test("a release is refused while the source stack has none", async () => {
    const { code, output } = await on("staging", "preview");
    expect(code).not.toBe(0);
    expect(output).toMatch(/the release cannot be used: from does not exist yet: .*run `pulumi up` there first/);
  });

  test("a release is promoted from stack to stack by its digest, even if the tag is moved", async () => {
    await up("dev");
    expect((await outputs("dev")).release).toMatchObject({
      image: `${image}@${digest("a")}`,
      digest: digest("a"),
      settings: { LOG_LEVEL: "info" },
      stack: "release/dev",
    });
    await tag(digest("b"));
    await up("staging");
    await up("prod");
    expect(await running("prod")).toEqual([digest("a"), digest("a")]);
    expect(counts(await up("prod"))).toEqual({ unchanged: expect.any(Number) });
  });

  test("a release is checked only with the source's token, as soon as the token is known", async () => {
    const elsewhere = (token: string): void =>
      stack.program(program.replace(/^const source = .*$/m, `const source = { token: ${token} };`));
    elsewhere('new machines.DeployToken("reader", { app: new machines.App("other").id, expiry: "1h" }).token');
    const { code, output } = await on("prod", "preview");
    expect(code, output).toBe(0);
    expect(output).toContain("source is not known yet: the update checks whether the release is healthy");
    elsewhere('""');
    expect((await on("prod", "preview")).output).toContain("source has no token: this stack's own token is not sent");
    elsewhere('"no-token-of-anybody"');
    expect((await on("prod", "preview")).output).toMatch(/cannot be read: .*401/);
    stack.program(program);
  });

  test("a release is refused at preview with all reasons while the source is not healthy", async () => {
    const { machine } = await outputs("staging");
    const [app = "", id = ""] = machine.split("/");
    await send(service, "POST", `/v1/apps/${app}/machines/${id}/stop`);
    await send(service, "GET", `/v1/apps/${app}/machines/${id}/wait?state=stopped&timeout=10`);
    const { code, output } = await on("prod", "preview");
    expect(code).not.toBe(0);
    expect(output).toContain(
      `error: the release cannot be used: release/staging does not run its release in a healthy state now: ${machine} is stopped, not started`,
    );
    expect((await on("prod", "up", "--yes", "--skip-preview")).code).not.toBe(0);
  });

  test("a release is kept in a pinned stack, whatever happens to the source", async () => {
    const { release } = await outputs("prod");
    const by = { promotedBy: "alice", promotedAt: "2026-01-31T12:00:00Z" };
    writeFileSync(join(stack.dir, "prod.json"), JSON.stringify({ ...release, ...by }));
    expect(counts(await up("prod"))).toEqual({ unchanged: expect.any(Number) });
    expect((await outputs("prod")).release).toMatchObject({ ...release, ...by });
  });

  test("a release is checked again in a pinned stack while its promotion is under way", async () => {
    const { release } = await outputs("staging");
    writeFileSync(join(stack.dir, "prod.json"), JSON.stringify({ ...release, pending: true }));
    const { code, output } = await on("prod", "preview");
    expect(code).not.toBe(0);
    expect(output).toContain("release/staging does not run its release in a healthy state now");
  });

  // Both bindings use the same code.
  test.runIf(binding === "pulumi-machines")("a release is refused if its record is invalid", async () => {
    const { release } = await outputs("prod");
    for (const [record, message] of [
      [{ ...release, digest: "latest" }, /pinned has no digest/],
      [{ ...release, image }, /pinned has an image with another digest/],
      [{ ...release, settings: { LOG_LEVEL: "debug" } }, /pinned has settings that differ from its original ones/],
      [{ ...release, machines: [] }, /pinned names no Machines/],
    ] as const) {
      writeFileSync(join(stack.dir, "prod.json"), JSON.stringify(record));
      const { code, output } = await on("prod", "preview");
      expect(code).not.toBe(0);
      expect(output).toMatch(message);
    }
  });
});
