// docs/hooks.md: its programs, with the real CLI and both bindings.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { runInline } from "../support/inline.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const [drainAndTest = "", repeat = ""] = [
  ...readFileSync("docs/hooks.md", "utf8").matchAll(/^```ts\n(.*?)^```/gms),
].map(([, code = ""]) => code);
const image = (tag: string) => `registry.example.com/shop:${tag}`;

describe("hooks", () => {
  describe.each(bindings)("that drain and test, on %s", (binding) => {
    let service: TestService;
    let stack: Stack;
    beforeAll(async () => {
      service = await startService();
      stack = new Stack(inject("installed"), "hooks", binding);
      stack.program(drainAndTest);
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, image: image("1") });
      await stack.set({ drainSeconds: "0", regions: JSON.stringify(["ams", "fra"]), smokeTest: passing });
    });
    afterAll(() => service.close());

    const passing = JSON.stringify(["true"]);
    const up = () => runInline(stack, "up");
    const live = () => send<{ config: { image: string } }[]>(service, "GET", "/v1/apps/shop/machines");
    const imageIn = (region: string) => {
      const config = stack.state()[`web-${region}`]?.inputs["config"] as { image: string } | undefined;
      return config?.image;
    };
    const images = async () => (await live()).map(({ config }) => config.image);
    /** The commands, cordons and deletions that the service got during a run. */
    const during = async (run: () => Promise<{ code: number; output: string }>, code = 0) => {
      const from = service.requests.length;
      const ran = await run();
      expect(ran.code, ran.output).toBe(code);
      const watched = ["machines.exec", "machines.cordon", "machines.destroy"];
      const operations = service.requests.slice(from).map(({ operation = "" }) => operation);
      return { ...ran, did: operations.filter((operation) => watched.includes(operation)) };
    };

    test("a preview calls none, and a create is tested", async () => {
      expect((await during(() => runInline(stack, "preview"))).did).toEqual([]);
      expect((await during(up)).did).toEqual(["machines.exec", "machines.exec"]);
    });

    test("a failed test fails the up; the new version stays, and the next up does not test it", async () => {
      await stack.set({ image: image("2"), smokeTest: JSON.stringify(["false"]) });
      const failed = await during(up, 1);
      expect(failed.output).toMatch(
        /error: after hook "smoke-test" failed: .*the smoke test in Machine shop\/\w+ ended with 1: /,
      );
      expect(failed.did[0]).toBe("machines.exec");
      const updated = ["ams", "fra"].filter((region) => imageIn(region) === image("2"));
      expect(updated).not.toEqual([]);
      expect(await images()).toEqual(expect.arrayContaining([image("2")]));
      // Resources that Pulumi had not begun are updated, and tested, by the next one.
      await stack.set({ smokeTest: passing });
      expect((await during(up)).did).toHaveLength(2 - updated.length);
      const again = await during(up);
      expect([again.did, counts(again.output)]).toEqual([[], { unchanged: 4 }]);
    });

    test("the old version is tested too", async () => {
      await stack.set({ image: image("1") });
      expect((await during(up)).did).toEqual(["machines.exec", "machines.exec"]);
      expect(await images()).toEqual([image("1"), image("1")]);
    });

    test("a drain that fails prevents the deletion, and the next up repeats it", async () => {
      await stack.set({ regions: JSON.stringify(["ams"]) });
      service.fail({ operation: "machines.cordon", status: 409, times: 1 });
      const failed = await during(up, 1);
      expect(failed.output).toMatch(/error: before hook "drain" failed: /);
      expect([failed.did, await images()]).toEqual([["machines.cordon"], [image("1"), image("1")]]);
      expect((await during(up)).did).toEqual(["machines.cordon", "machines.destroy"]);
      expect(await images()).toEqual([image("1")]);
    });

    test("destroy needs the program", async () => {
      const without = await stack.run(["destroy", "--yes", "--skip-preview"]);
      expect(without.code).not.toBe(0);
      expect(without.output).toContain(
        "You must run with the `--run-program` flag to use delete hooks during destroy.",
      );
      expect(await images()).toEqual([image("1")]);
      const destroyed = await during(() => runInline(stack, "destroy", { runProgram: true }));
      expect(destroyed.did).toEqual(["machines.cordon", "machines.destroy"]);
      expect(stack.state()).toEqual({});
    });
  });

  describe.each(bindings)("that repeat, on %s", (binding) => {
    test("a create that failed for lack of capacity is repeated, and creates one Machine", async () => {
      const service = await startService();
      try {
        const stack = new Stack(inject("installed"), "repeat", binding);
        stack.program(repeat);
        await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
        service.fail({ operation: "machines.create", capacity: true, times: 1 });
        const { code, output } = await runInline(stack, "up");
        expect(code, output).toBe(0);
        expect(counts(output)).toEqual({ created: 3 });
        expect(await send(service, "GET", "/v1/apps/shop/machines")).toHaveLength(1);
      } finally {
        await service.close();
      }
    });
  });
});
