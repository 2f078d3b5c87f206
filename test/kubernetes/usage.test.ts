// What Pods use, from the metrics API of a cluster.
import { ApiextensionsV1Api, CustomObjectsApi, KubeConfig } from "@kubernetes/client-node";
import { expect, inject, test } from "vitest";
import { page } from "../service/console/browser.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { onCluster } from "./clusters.ts";

const group = "metrics.k8s.io";
const version = "v1beta1";

test("what Pods use is read from the metrics API, and without one the console says what is missing", async () => {
  const config = new KubeConfig();
  config.loadFromFile(inject("kubeconfig"));
  const definitions = config.makeApiClient(ApiextensionsV1Api);
  const objects = config.makeApiClient(CustomObjectsApi);
  const app = await onCluster({ console: "read" });
  const id = await app.create({ guest: { cpu_kind: "shared", cpus: 2, memory_mb: 512 } });
  await app.reaches(id, "started");
  const own = await page(app);
  const usage = async () => {
    await app.service.usage.sample();
    return (await own("GET", `/console/api/apps/web/machines/${id}/usage`)).body;
  };
  expect(await usage()).toMatchObject({
    isSimulated: false,
    problem: expect.stringContaining("the cluster does not say what Machines use: it has no metrics API"),
    limits: { cpus: 2, memory: 512 * 2 ** 20 },
  });

  // The nodes of the tests are simulated, so no kubelet measures anything: the API itself is real, and its objects are ours.
  const name = `pods.${group}`;
  await definitions.createCustomResourceDefinition({
    body: {
      metadata: { name, annotations: { "api-approved.kubernetes.io": "unapproved, for a test" } },
      spec: {
        group,
        scope: "Namespaced",
        names: { plural: "pods", singular: "pod", kind: "PodMetrics", listKind: "PodMetricsList" },
        versions: [
          {
            ...{ name: version, served: true, storage: true },
            schema: { openAPIV3Schema: { type: "object", x_kubernetes_preserve_unknown_fields: true } },
          },
        ],
      },
    },
  });
  afterThisTest(async () => void (await definitions.deleteCustomResourceDefinition({ name })));
  const [pod] = await app.pods(id);
  const { namespace = "", labels } = pod?.metadata ?? {};
  const body = {
    ...{ apiVersion: `${group}/${version}`, kind: "PodMetrics", metadata: { name: id, namespace, labels } },
    ...{ timestamp: new Date().toISOString(), window: "15s" },
    containers: [
      { name: "machine", usage: { cpu: "250000000n", memory: "65536Ki" } },
      { name: "other", usage: { cpu: "500u", memory: "1Mi" } },
    ],
  };
  const metrics = { group, version, namespace, plural: "pods", body };
  await expect
    .poll(() =>
      objects.createNamespacedCustomObject(metrics).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  await expect.poll(async () => (await usage()).courses.cpus.at(-1)).toBeCloseTo(0.2505);
  expect(await usage()).toMatchObject({ problem: null, hasNetwork: false });
  expect((await usage()).courses.memory.at(-1)).toBe(65 * 2 ** 20);
});
