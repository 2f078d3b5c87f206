// The examples as they are, with the real CLI, on nodes that really run Pods.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { diskPrograms, startDisks } from "../../tools/setup/kubernetesDisks.mjs";
import { image, nextImage } from "../runtime/image.ts";
import { tryVolumes } from "../runtime/volumesExample.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts } from "../support/stack.ts";
import { onCluster } from "./clusters.ts";
import { addRealNode } from "./nodes.ts";

describe.runIf(inject("hasRealNode"))("the examples on Pods", () => {
  const parts: { remove(): Promise<void> }[] = [];
  let kubeconfig = "";

  beforeAll(async () => {
    const { found = {} } = await clusterPrograms(process.env);
    const cluster = await startCluster(found);
    parts.push(cluster);
    ({ kubeconfig } = cluster);
    const disks = await startDisks(cluster, (await diskPrograms(process.env)).found ?? {});
    parts.unshift(disks);
    for (const [i, region] of ["ams", "fra", "iad"].entries())
      parts.unshift(await addRealNode(cluster, region, disks.forNodes, `127.0.0.${i + 11}`));
  });

  afterAll(async () => {
    for (const part of parts) await part.remove();
  });

  test.each([
    "bluegreen",
    "database",
    "everything",
    "policy",
    "promotion",
    "quickstart",
    "rolling",
    "web-app",
    "worker-fleet",
  ])("%s runs on Pods: up, up, refresh, a new image, destroy", async (name) => {
    const app = await onCluster({ kubeconfig });
    const stack = await exampleStack(name, app, { image });
    await stack.up();
    await expectUnchanged(stack);
    await stack.set({ image: nextImage });
    expect(counts(await stack.up())["updated"]).toBeGreaterThan(0);
    // Pods of the old version may still be ending.
    const images = async () => (await app.pods()).map(({ spec }) => spec?.containers[0]?.image);
    await expect.poll(async () => new Set(await images())).toEqual(new Set([nextImage]));
    await expectUnchanged(stack);
    await stack.destroy();
    expect(stack.state()).toEqual({});
    await expect.poll(app.left).toEqual([]);
  });

  test("volumes: the data is there after growth, in each copy, and in another region", async () => {
    const app = await onCluster({ kubeconfig });
    await tryVolumes(app);
    await expect.poll(() => app.pods()).toEqual([]);
  });
});
