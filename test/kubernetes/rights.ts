// The rights of the service's own manifest, for a service of a test that runs outside of the cluster.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeConfig, KubernetesObjectApi, type KubernetesObject } from "@kubernetes/client-node";
import { expect, inject } from "vitest";
import { command } from "../service/command.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { clientsOf } from "./clusters.ts";

const namespace = "machines-service";

/** The objects of the manifest. */
export async function manifest(...more: string[]): Promise<KubernetesObject[]> {
  const { out, code } = await command(["kubernetes", "manifest", "--image", "example/machines-service:1", ...more]);
  expect(code).toBe(0);
  return out
    .split("---\n")
    .slice(1)
    .map((text) => JSON.parse(text) as KubernetesObject);
}

/** Applies the manifest, and returns a configuration of clients with the rights of its service account. */
export async function asManifest(...more: string[]): Promise<string> {
  const objects = await manifest(...more);
  const config = new KubeConfig();
  config.loadFromFile(inject("kubeconfig"));
  const api = KubernetesObjectApi.makeApiClient(config);
  for (const object of objects) {
    const applied = api.patch(object, undefined, undefined, "kubectl", true, "application/apply-patch+yaml");
    // The cluster of the tests has no image for it.
    expect((await applied).kind).toBe(object.kind);
    const runs = ["StatefulSet", "Deployment"].includes(object.kind ?? "");
    if (runs)
      await api.delete({ apiVersion: "apps/v1", kind: object.kind ?? "", metadata: { name: namespace, namespace } });
  }
  const { core } = clientsOf(inject("kubeconfig"));
  const body = { spec: { audiences: [] } };
  const { status } = await core.createNamespacedServiceAccountToken({ name: namespace, namespace, body });
  config.users = [{ name: "administrator", token: status?.token ?? "" }];
  config.contexts = config.contexts.map((context) => ({ ...context, namespace }));
  const home = mkdtempSync(join(tmpdir(), "machines-rights-"));
  afterThisTest(() => rmSync(home, { recursive: true }));
  const file = join(home, "config");
  writeFileSync(file, config.exportConfig());
  return file;
}
