// Every version reads what earlier versions recorded, and gives the same answers. CONTRIBUTING says what to do when one of
// these tests fails.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { seededRandom } from "../../service/index.ts";
import { startPlugin } from "../support/plugin.ts";
import { bindingsOr, counts, Stack, type Binding } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";
import { conversationOf, folder, placedAt, withoutResource } from "./records.ts";
import { replay } from "./replay.ts";

/** Properties added after a version was recorded, as `Machine.zone`; answers may also have these. */
const later: readonly string[] = [
  "App.httpUrl",
  "App.httpsUrl",
  "Machine.failure",
  "Machine.memoryLimitMb",
  "Machine.onUpdateFailure",
  "Machine.recreate",
  "Volume.finalSnapshot",
  "Volume.startBeforeGrowth",
  "Volume.uniqueZoneAppWide",
];

const versions = readdirSync(folder).filter((name) => existsSync(join(folder, name, "program.txt")));
const read = (version: string, file: string): string => readFileSync(join(folder, version, file), "utf8");
const stateFiles: Readonly<Record<Binding, string>> = {
  "pulumi-machines": "state.dynamic.json",
  "pulumi-machines-plugin": "state.plugin.json",
};

/** An empty service, without any of the recorded objects. */
let service: TestService;
beforeAll(async () => {
  service = await startService({ random: seededRandom("upgrade") });
});
afterAll(() => service.close());

test("this version is recorded", () => {
  const { version } = JSON.parse(readFileSync("sdk/nodejs/package.json", "utf8")) as { version: string };
  expect(versions, "npm run record-upgrade").toContain(version);
});

describe.each(versions)("the record of version %s", (version) => {
  test("the record has plaintext secrets only in the conversation", () => {
    for (const file of Object.values(stateFiles)) {
      const state = read(version, file);
      expect(state).toContain("ciphertext");
      expect(state).not.toMatch(/hush-hush|aHVzaC1odXNo|mcs_/);
    }
    expect(read(version, "grpc.json")).not.toMatch(/mcs_/);
  });

  describe.each(bindingsOr("pulumi-machines-plugin"))("on %s", (binding) => {
    let stack: Stack;
    beforeAll(async () => {
      stack = new Stack(inject("installed"), "upgrade", binding);
      stack.program(read(version, "program.txt"));
      stack.checkTypes();
      await stack.ok("stack", "init", "dev");
    });

    /** Imports the recorded state into the stack, and sets the program's configuration. */
    const bring = async ({ failing = false, places = true }): Promise<void> => {
      const state = placedAt(read(version, stateFiles[binding]), service);
      writeFileSync(join(stack.dir, "state.json"), failing ? state : withoutResource(state, "failing"));
      await stack.ok("stack", "import", "--file", "state.json");
      await stack.set({
        "machines:endpoint": service.url,
        "machines:token": service.token,
        "upgrade:image": "registry.example.com/shop:1.0.0",
        "upgrade:failing": `${failing}`,
        "upgrade:places": `${places}`,
      });
    };
    const writesSince = (from: number): string[] =>
      service.requests.slice(from).flatMap(({ method, path }) => (method === "GET" ? [] : [`${method} ${path}`]));

    test("the same program changes only what had failed", async () => {
      await bring({ failing: true });
      const { failing, ...others } = await stack.preview();
      // The compiler has checked the program once; checking types in every run would take most of the time.
      stack.checkTypes(false);
      expect(others).toEqual({});
      expect(failing).toMatchObject({ op: "update", changes: [] });
    });

    test("up changes nothing and writes nothing, and a changed image changes only the image", async () => {
      await bring({});
      const before = service.requests.length;
      const output = await stack.up();
      expect(Object.keys(counts(output)), output).toEqual(["unchanged"]);
      expect(writesSince(before)).toEqual([]);
      await stack.ok("config", "set", "upgrade:image", "registry.example.com/shop:2.0.0");
      const steps = await stack.preview();
      const changes = Object.values(steps).map(({ op, name, changes }) => `${op} ${name}: ${changes.join()}`);
      expect(changes.sort()).toEqual(
        ["half-worker", "job", "plain", "removed"].map((name) => `update ${name}: config.image`),
      );
    });

    test("destroy needs only the state", async () => {
      await bring({ failing: true });
      const args = ["destroy", "--yes", "--skip-preview"];
      // The service has none of the objects, so their absence must be accepted.
      const { code, output } = await stack.run(args, { env: { MACHINES_ALLOW_MISSING_APPS: "true" } });
      expect(code, output).toBe(0);
      expect(Object.keys(counts(output)), output).toEqual(["deleted"]);
    });

    if (binding === "pulumi-machines-plugin") return;
    test("switching to the plugin changes nothing", async () => {
      await bring({ places: false });
      stack.switchTo("pulumi-machines-plugin");
      stack.program(read(version, "program.txt"));
      // The plugin's provider has another endpoint in its state, so it looks for the Apps, and the service has none.
      expect(await stack.preview({ MACHINES_ALLOW_MISSING_APPS: "true" })).toEqual({});
    });
  });

  describe("the plugin's answers are unchanged", () => {
    const operations = conversationOf(version).map((one, i) => ({ ...one, name: `${i + 1} ${one.operation}` }));
    test.each(operations)("the plugin's answers are unchanged in $name", async ({ calls }) => {
      const plugin = await startPlugin();
      try {
        const here = JSON.parse(placedAt(JSON.stringify(calls), service)) as typeof calls;
        expect(await replay(plugin.client, here, later)).toEqual([]);
      } finally {
        await plugin.close();
      }
    });
  });
});
