// The examples as they are, with the real CLI, on Machines that really run.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts, type Stack } from "../support/stack.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image, nextImage } from "./image.ts";
import { startReal, type Real } from "./real.ts";
import { fetchFrom } from "./requests.ts";
import { hasEngine } from "./runtimes.ts";

describe.runIf(hasEngine)("the examples on containers", () => {
  let real: Real;
  beforeAll(async () => {
    real = await startReal();
  });
  afterAll(() => real.end());

  /** The example's stack, after its first `up`. */
  async function deployed(name: string, created: number): Promise<{ readonly stack: Stack; readonly app: string }> {
    const stack = await exampleStack(name, real.service, { image });
    expect(counts(await stack.up())).toEqual({ created });
    return { stack, app: appOf(stack) };
  }

  /** Name of the App in a stack. */
  const appOf = (stack: Stack): string =>
    Object.values(stack.state()).find(({ type }) => type.endsWith(":App"))?.id ?? "";

  async function destroy(stack: Stack): Promise<void> {
    await stack.destroy();
    await expectNothingRuns(real.dataId);
  }

  describe("volumes", () => {
    let stack: Stack;
    let app = "";
    const resource = (name: string) => stack.state()[name]?.id.split("/").at(-1) ?? "";
    const note = () => real.exec(app, resource("store"), ["cat", "/data/note"]);

    /** A file of a volume that no Machine of the example mounts. */
    async function noteIn(volume: string): Promise<string> {
      const { region } = await send<{ region: string }>(real.service, "GET", `/v1/apps/${app}/volumes/${volume}`);
      const machines = `/v1/apps/${app}/machines`;
      const config = { image, mounts: [{ volume, path: "/data" }] };
      const { id } = await send<{ id: string }>(real.service, "POST", machines, { region, config });
      await send(real.service, "GET", `${machines}/${id}/wait?state=started`);
      const text = await real.exec(app, id, ["cat", "/data/note"]);
      await send(real.service, "DELETE", `${machines}/${id}?force=true`);
      return text;
    }

    const go = async (step: string) => {
      await stack.set({ step });
      return stack.up();
    };

    test("the data is there after growth, in the copy of the snapshot and in the fork", async () => {
      stack = await exampleStack("volumes", real.service, { image });
      // First the Machine alone, so that there is data which the others can copy.
      const first = ["App::shop", "Volume::data", "Machine::store"].flatMap((one) => ["--target", `**:${one}`]);
      await stack.ok("up", "--yes", "--skip-preview", ...first);
      app = appOf(stack);
      await real.exec(app, resource("store"), ["write", "/data/note", "644"], "kept");
      await stack.set({ sizeGb: "3" });
      expect(counts(await stack.up())).toEqual({ created: 3, updated: 1, unchanged: 3 });
      expect(await note()).toBe("kept");
      for (const copy of ["restored", "staging"]) expect(await noteIn(resource(copy))).toBe("kept");
      await expectUnchanged(stack);
    });

    test("the data moves into another region", async () => {
      await real.exec(app, resource("store"), ["write", "/data/note", "644"], "newest");
      expect(counts(await go("copied"))).toEqual({ created: 1, updated: 1, unchanged: 6 });
      expect(counts(await go("switched"))).toEqual({ replaced: 1, unchanged: 7 });
      expect(await note()).toBe("newest");
      expect(counts(await go("removed"))).toEqual({ deleted: 2, unchanged: 6 });
      expect(await note()).toBe("newest");
      await expectUnchanged(stack);
      await destroy(stack);
    });
  });

  describe("fleets and the quickstart", () => {
    test.each(["rolling", "bluegreen"])("%s: a new image answers", async (name) => {
      const { stack, app } = await deployed(name, 3);
      expect(await real.fetchSecure(app, "/release")).toEqual({ status: 200, text: "1\n" });
      await expectUnchanged(stack);
      await stack.set({ image: nextImage });
      expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 2 });
      expect(await real.fetchSecure(app, "/release")).toEqual({ status: 200, text: "2\n" });
      await expectUnchanged(stack);
      await destroy(stack);
    });

    test("quickstart: its page opens", async () => {
      const { stack, app } = await deployed("quickstart", 5);
      expect(await fetchFrom(real.port, "/release", { app })).toEqual({ status: 200, text: "1\n" });
      await expectUnchanged(stack);
      await destroy(stack);
    });
  });
});
