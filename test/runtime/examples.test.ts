// The examples as they are, with the real CLI, on Machines that really run.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts, type Stack } from "../support/stack.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image, nextImage } from "./image.ts";
import { startReal, type Real } from "./real.ts";
import { fetchFrom } from "./requests.ts";
import { hasEngine } from "./runtimes.ts";
import { tryVolumes } from "./volumesExample.ts";

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

  test("volumes: the data is there after growth, in each copy, and in another region", async () => {
    await tryVolumes(real.service);
    await expectNothingRuns(real.dataId);
  });

  describe("fleets and the quickstart", () => {
    test.each(["rolling", "bluegreen"])("a new image of %s answers", async (name) => {
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
