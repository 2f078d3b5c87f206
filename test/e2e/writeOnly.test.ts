// Secrets that are never stored, with the real engine: its options, and what it keeps of a value.
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { isObject } from "../../api/schema.ts";
import { makeApp, send } from "../support/around.ts";
import { leaks } from "../support/canaries.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

/** Names of everything in a plan or a state that has a value. The engine also notes which resources an input depends on. */
const inputsIn = (at: unknown): string[] =>
  Object.entries(isObject(at) || Array.isArray(at) ? at : {}).flatMap(([name, inner]) =>
    name === "propertyDependencies" ? [] : [name, ...inputsIn(inner)],
  );

// The lifecycle suite and test/secrets/writeOnly.test.ts have the provider's part of this in process.
describe("write-only secrets", () => {
  describe.each(bindings)("on %s", (binding) => {
    let service: TestService;
    let stack: Stack;

    beforeAll(async () => {
      service = await startService();
      await makeApp(service, "wo-shop");
      stack = new Stack(inject("installed"), "write-only", binding);
      program("");
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    });
    afterAll(() => service.close());

    const program = (resources: string): void =>
      stack.program(`
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = "wo-shop";
${resources}
`);
    const secret = (args: string, options = "", name = "token"): string =>
      `new machines.Secret("${name}", { app, name: "TOKEN", ${args} }, { ${options} });\n`;
    const set = (value: string) => send(service, "POST", "/v1/apps/wo-shop/secrets/TOKEN", { value });
    const live = async () => {
      const { secrets } = await send<{ secrets: { name: string; value: string }[] }>(
        service,
        "GET",
        "/v1/apps/wo-shop/secrets?show_secrets=true",
      );
      return Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
    };
    const stored = async () =>
      leaks({ canary: "c4n4ry-wo" }, [{ what: "state", text: await stack.ok("stack", "export", "--show-secrets") }]);
    /** Changes the program and applies it. @returns the number of steps of each kind */
    const apply = async (resources: string, ...options: string[]) => {
      program(resources);
      return counts(await stack.ok("up", "--yes", "--skip-preview", ...options));
    };

    test("a stored value moves out of the state, and is written again only with another version", async () => {
      expect(await apply(secret('value: "c4n4ry-wo-stored"'))).toMatchObject({ created: 2 });
      expect(await stored()).toHaveLength(1);
      program(secret('valueWo: "c4n4ry-wo-1"'));
      expect(await stack.preview()).toMatchObject({ token: { op: "update", changes: ["value", "valueVersion"] } });
      expect(counts(await stack.up())).toMatchObject({ updated: 1 });
      expect([await live(), await stored()]).toEqual([{ TOKEN: "c4n4ry-wo-1" }, []]);
      expect(await apply(secret('valueWo: "c4n4ry-wo-2"'))).toEqual({ unchanged: 2 });
      expect(await live()).toEqual({ TOKEN: "c4n4ry-wo-1" });
      expect(await apply(secret('valueWo: "c4n4ry-wo-2", valueVersion: 1'))).toMatchObject({ updated: 1 });
      expect([await live(), await stored()]).toEqual([{ TOKEN: "c4n4ry-wo-2" }, []]);
    });

    test("a plan is carried out without the value in it", async () => {
      program(secret('valueWo: "c4n4ry-wo-3", valueVersion: 2'));
      const plan = join(stack.dir, "plan.json");
      await stack.ok("preview", "--save-plan", plan);
      const planned = readFileSync(plan, "utf8");
      expect(leaks({ canary: "c4n4ry-wo" }, [{ what: "plan", text: planned }])).toEqual([]);
      expect(inputsIn(JSON.parse(planned))).toContain("valueVersion");
      expect(inputsIn(JSON.parse(planned))).not.toContain("valueWo");
      await stack.ok("up", "--yes", "--skip-preview", "--plan", plan);
      expect([await live(), await stored()]).toEqual([{ TOKEN: "c4n4ry-wo-3" }, []]);
    });

    test("what others changed is repaired after a refresh, in one command and in two, with a target, on another computer", async () => {
      const same = secret('valueWo: "c4n4ry-wo-3", valueVersion: 2');
      await set("theirs");
      expect(await apply(same, "--refresh")).toMatchObject({ updated: 1 });
      expect(await live()).toEqual({ TOKEN: "c4n4ry-wo-3" });
      await set("theirs");
      await stack.refresh();
      const target = ["--target", stack.urn("Secret", "token")];
      // Another computer has no journal.
      rmSync(join(stack.env["PULUMI_HOME"] ?? "", "machines"), { recursive: true, force: true });
      expect(await apply(same, ...target)).toMatchObject({ updated: 1 });
      expect([await live(), await stored()]).toEqual([{ TOKEN: "c4n4ry-wo-3" }, []]);
    });

    test("ignoreChanges keeps the value; with a new version it is an error that says what to do", async () => {
      const ignoring = (version: number, more = "") =>
        secret(`valueWo: "c4n4ry-wo-4", valueVersion: ${version}`, `ignoreChanges: ["valueWo"${more}]`);
      expect(await apply(ignoring(2))).toEqual({ unchanged: 2 });
      program(ignoring(3));
      expect(await stack.fails("preview")).toMatch(
        /valueVersion: is new, so valueWo must be written, .* ignoreChanges/,
      );
      expect(await apply(ignoring(3, ', "valueVersion"'))).toEqual({ unchanged: 2 });
      expect(await live()).toEqual({ TOKEN: "c4n4ry-wo-3" });
    });

    test("a replacement, forced or by a changed input, and an alias write the value of the program", async () => {
      const next = secret('valueWo: "c4n4ry-wo-5", valueVersion: 2');
      const forced = ["--replace", stack.urn("Secret", "token")];
      expect(await apply(next, ...forced)).toMatchObject({ replaced: 1 });
      expect(await live()).toEqual({ TOKEN: "c4n4ry-wo-5" });
      const renamed = secret('valueWo: "c4n4ry-wo-6", valueVersion: 2', 'aliases: [{ name: "token" }]', "renamed");
      expect(await apply(renamed)).toEqual({ unchanged: 2 });
      const other = renamed.replace('name: "TOKEN"', 'name: "OTHER"');
      expect(await apply(other)).toMatchObject({ replaced: 1 });
      expect([await live(), await stored()]).toEqual([{ OTHER: "c4n4ry-wo-6" }, []]);
    });

    test("a value that is unknown in a preview, and one that no preview accepts", async () => {
      const unknown = `const first = new machines.Secret("first", { app, name: "FIRST", valueWo: "c4n4ry-wo-7" });\n`;
      program(unknown + secret("valueWo: first.digest.apply((d) => `c4n4ry-wo-8-${d}`)", "", "second"));
      expect(await stack.preview()).toMatchObject({ first: { op: "create" }, second: { op: "create" } });
      expect(counts(await stack.up())).toMatchObject({ created: 2, deleted: 1 });
      expect((await live())["TOKEN"]).toMatch(/^c4n4ry-wo-8-/);
      expect(await stored()).toEqual([]);
      program(secret('value: "c4n4ry-wo", valueWo: "c4n4ry-wo"'));
      const refused = await stack.fails("preview");
      expect(refused).toMatch(/valueWo: cannot be given together with value/);
      expect(refused).not.toContain("c4n4ry");
    });

    test("destroy needs no value", async () => {
      program("");
      await stack.destroy();
      expect(await live()).toEqual({});
    });
  });
});
