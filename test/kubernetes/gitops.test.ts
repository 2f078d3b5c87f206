// The example of the Pulumi Kubernetes Operator: the definitions of the operator itself accept it, as a cluster checks it.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  loadAllYaml,
  type KubernetesListObject,
  type KubernetesObject,
} from "@kubernetes/client-node";
import { expect, inject, test } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { isOffline } from "../../tools/setup/goProgram.mjs";
import { afterThisTest } from "../support/leftovers.ts";

const operator = "github.com/pulumi/pulumi-kubernetes-operator/v2@v2.9.0";

/** The definitions of the operator, from its Go module; undefined, said once, where it cannot be had. */
async function definitions(): Promise<readonly KubernetesObject[] | undefined> {
  try {
    const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", operator]);
    const folder = join((JSON.parse(stdout) as { Dir: string }).Dir, "deploy", "crds");
    return readdirSync(folder).flatMap(
      (name) => loadAllYaml(readFileSync(join(folder, name), "utf8")) as KubernetesObject[],
    );
  } catch (error) {
    const said = error instanceof Error && "stdout" in error ? String(error.stdout) : String(error);
    leaveOut(
      "the example of the Pulumi Kubernetes Operator",
      isOffline(said) ? "its Go module cannot be downloaded: check the network and GOPROXY" : said.slice(0, 500),
    );
    return undefined;
  }
}

test("a cluster with the definitions of the operator accepts the example", async ({ skip }) => {
  const found = await definitions();
  if (!found) return skip();
  const config = new KubeConfig();
  config.loadFromFile(inject("kubeconfig"));
  const api = KubernetesObjectApi.makeApiClient(config);
  for (const one of found) {
    await api.create(one);
    afterThisTest(async () => void (await api.delete(one)));
  }
  const objects = loadAllYaml(readFileSync("examples/gitops/stack.yaml", "utf8")) as KubernetesObject[];
  const namespace = objects[0]?.metadata?.namespace ?? "";
  await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  afterThisTest(
    async () => void (await api.delete({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } })),
  );
  const isServed = (list: Promise<KubernetesListObject<KubernetesObject>>) =>
    list.then(
      () => true,
      () => false,
    );
  await expect.poll(() => isServed(api.list("pulumi.com/v1", "Stack"))).toBe(true);
  await expect.poll(() => isServed(api.list("pulumi.com/v1", "Program"))).toBe(true);
  // As `kubectl apply --dry-run=server --validate=strict`: a field that the definitions do not have is an error.
  const custom = config.makeApiClient(CustomObjectsApi);
  const plurals: Readonly<Record<string, string>> = { Program: "programs", Stack: "stacks" };
  const checked = { group: "pulumi.com", version: "v1", namespace, dryRun: "All", fieldValidation: "Strict" };
  const apply = async (body: KubernetesObject) => {
    const plural = plurals[body.kind ?? ""];
    if (plural === undefined) await api.create(body, undefined, "All");
    else await custom.createNamespacedCustomObject({ ...checked, plural, body });
  };
  for (const object of objects) await apply(object);
  expect(objects.map(({ kind }) => kind)).toEqual(expect.arrayContaining(Object.keys(plurals)));
  const stack = objects.find(({ kind }) => kind === "Stack") as KubernetesObject & { spec: object };
  await expect(apply({ ...stack, spec: { ...stack.spec, nonsense: true } } as never)).rejects.toThrow("nonsense");
});
