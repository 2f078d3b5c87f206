// Machines as Pods of a real control plane, with simulated nodes.
import { expect, test } from "vitest";
import { annotations, labels, regionLabel } from "../../service/runtime/kubernetes/names.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { onCluster } from "./clusters.ts";

test("a Machine is created, stopped, started, restarted and destroyed, and nothing is left", async () => {
  const app = await onCluster();
  const id = await app.create({ env: { COLOUR: "red" } });
  await app.reaches(id, "started");
  const [pod] = await app.pods(id);
  expect(pod?.metadata).toMatchObject({ name: id, namespace: expect.stringMatching(/^machines-/) });
  expect(pod?.spec?.nodeName).toMatch(/^ams-/);
  await app.post(id, "stop");
  await app.reaches(id, "stopped");
  expect(await app.pods(id)).toEqual([]);
  expect(await app.exit(id)).toMatchObject({ requested_stop: true });
  await app.post(id, "start");
  await app.reaches(id, "started");
  const [second] = await app.pods(id);
  expect(second?.metadata?.uid).not.toBe(pod?.metadata?.uid);
  await app.post(id, "restart");
  await expect.poll(async () => (await app.pods(id))[0]?.metadata?.uid).not.toBe(second?.metadata?.uid);
  await app.reaches(id, "started");
  await app.call("DELETE", `${app.machines}/${id}?force=true`);
  await app.reaches(id, "destroyed");
  await expect.poll(app.left).toEqual([]);
});

test("an update replaces the Pod, and keeps the Machine", async () => {
  const app = await onCluster();
  const id = await app.create();
  await app.reaches(id, "started");
  const { version } = await app.get(id);
  await app.call("POST", `${app.machines}/${id}`, { config: { image: "example/app:2" } });
  await app.reaches(id, "started");
  const [pod, ...others] = await app.pods(id);
  expect(others).toEqual([]);
  expect(pod?.spec?.containers[0]?.image).toBe("example/app:2");
  expect(pod?.metadata?.labels?.[labels.version]).not.toBe(version);
  expect(pod?.metadata?.annotations?.[annotations.start]).toBeTruthy();
});

test("a Pod that others delete has exited, and the restart policy decides", async () => {
  const app = await onCluster();
  const [restarted, left] = [await app.create(), await app.create({ restart: { policy: "no" } })];
  for (const id of [restarted, left]) await app.reaches(id, "started");
  const [before] = await app.pods(restarted);
  for (const id of [restarted, left])
    await app.core.deleteNamespacedPod({ name: id, namespace: before?.metadata?.namespace ?? "" });
  await app.reaches(left, "stopped");
  expect(await app.exit(left)).toMatchObject({ requested_stop: false });
  await expect.poll(async () => (await app.pods(restarted))[0]?.metadata?.uid).not.toBe(before?.metadata?.uid);
  await app.reaches(restarted, "started");
});

test("secrets and variables are in a Secret, and not in the Pod", async () => {
  const app = await onCluster();
  await app.call("POST", "/apps/web/secrets/TOKEN", { value: Buffer.from("hidden").toString("base64") });
  const id = await app.create({
    env: { PLAIN: "visible" },
    files: [{ guest_path: "/etc/app/key", raw_value: Buffer.from("private").toString("base64") }],
  });
  await app.reaches(id, "started");
  const [pod] = await app.pods(id);
  const text = JSON.stringify(pod);
  for (const secret of ["hidden", "visible", "private"]) {
    expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(secret).toString("base64"));
  }
  const namespace = pod?.metadata?.namespace ?? "";
  const { data } = await app.core.readNamespacedSecret({ name: id, namespace });
  expect(data).toMatchObject({ PLAIN: Buffer.from("visible").toString("base64") });
  expect(Buffer.from(data?.["TOKEN"] ?? "", "base64").toString()).toBe(Buffer.from("hidden").toString("base64"));
});

test("a Machine that no node has room for is refused", async () => {
  const app = await onCluster();
  await app.reaches(await app.create(), "started");
  const { status, body } = await app.call("POST", app.machines, { config: { image: "example/app:1" }, region: "nrt" });
  expect({ status, body }).toMatchObject({ status: 422, body: { error: "could not find a candidate host" } });
});

test("a Machine that the scheduler cannot place fails, and says why", async () => {
  const app = await onCluster({ runtime: { placementMs: 0 } });
  // The runtime does not see the Pods of others.
  const { items } = await app.core.listNode({ labelSelector: `${regionLabel}=gru` });
  const namespace = "default";
  for (const { metadata } of items) {
    const name = `other-${metadata?.name}`;
    const resources = { requests: { cpu: "63900m" } };
    const spec = { nodeName: metadata?.name ?? "", containers: [{ name: "other", image: "other", resources }] };
    await expect
      .poll(() =>
        app.core.createNamespacedPod({ namespace, body: { metadata: { name }, spec } }).catch(() => undefined),
      )
      .toBeDefined();
    afterThisTest(async () => {
      await app.core.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 });
    });
  }
  const id = await app.create({ guest: { cpu_kind: "performance", cpus: 1, memory_mb: 2048 } }, { region: "gru" });
  await app.reaches(id, "failed");
  expect((await app.exit(id)).error).toMatch(/^no node has room for it: .*Insufficient cpu/);
  expect(await app.pods(id)).toEqual([]);
});
