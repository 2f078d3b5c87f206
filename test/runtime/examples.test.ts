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

  describe("fleets, a private network and the quickstart", () => {
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

    test("private-network: the gateway reaches the API by its name, and the proxy reaches only the gateway", async () => {
      const stack = await exampleStack("private-network", real.service, { image, cacheImage: image });
      // The image of the tests is no cache; it listens at one port.
      stack.program(stack.read().replaceAll("6379", "8080"));
      await stack.up();
      const { stdout } = await stack.run(["stack", "output", "apps", "--json"]);
      const apps = JSON.parse(stdout) as Record<"gateway" | "api" | "cache", string>;
      const [{ id } = { id: "" }] = await send<{ id: string }[]>(
        real.service,
        "GET",
        `/v1/apps/${apps.gateway}/machines`,
      );
      for (const name of [apps.api, apps.cache])
        expect(await real.exec(apps.gateway, id, ["get", `http://${name}.internal:8080/release`])).toContain("1");
      expect(await real.fetchSecure(apps.gateway, "/release")).toEqual({ status: 200, text: "1\n" });
      for (const name of [apps.api, apps.cache])
        expect((await real.fetchSecure(name, "/release")).status).not.toBe(200);
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
