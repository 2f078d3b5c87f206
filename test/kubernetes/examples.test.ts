// An example as it is, with the real CLI, on the nodes of a cluster.
import { expect, inject, test } from "vitest";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { onCluster } from "./clusters.ts";
import { provideDisks } from "./storage.ts";

test("a fleet with volumes is deployed, changed by nothing, and destroyed", async () => {
  provideDisks(inject("kubeconfig"));
  const app = await onCluster();
  const stack = await exampleStack("worker-fleet", app);
  await stack.up();
  const phases = (await app.pods()).map(({ status }) => status?.phase);
  expect(phases).toEqual(["Running", "Running"]);
  await stack.up();
  await expectUnchanged(stack);
  await stack.destroy();
  expect(stack.state()).toEqual({});
  // Of the deleted volumes, their day of grace is left.
  await expect.poll(() => app.pods()).toEqual([]);
});
