// The Helm chart: real Helm renders from it what the manifest has, and installs it into the cluster.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { KubeConfig, KubernetesObjectApi, loadAllYaml, type KubernetesObject } from "@kubernetes/client-node";
import { beforeAll, beforeEach, expect, inject, test } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { helmProgram } from "../../tools/setup/helm.mjs";
import { command, folder } from "../service/command.ts";

const image = "example/machines-service:1";

let program: string | undefined;
beforeAll(async () => {
  const found = await helmProgram(process.env);
  program = found.program;
  if (program === undefined) leaveOut("the Helm chart with Helm", found.reason ?? "no program");
});
beforeEach(({ skip }) => skip(program === undefined));

/** Runs Helm, with a home of its own. */
async function helm(...args: string[]): Promise<string> {
  const home = join(folder(), "..");
  const env = { PATH: process.env["PATH"], HOME: home, KUBECONFIG: inject("kubeconfig") };
  return (await promisify(execFile)(program ?? "", args, { env, maxBuffer: 2 ** 24 })).stdout;
}

/** Writes the chart, and returns its folder. */
async function chart(): Promise<string> {
  const out = folder();
  expect(await command(["kubernetes", "chart", "--out", out])).toMatchObject({ code: 0, err: "" });
  return out;
}

const nameOf = ({ kind, metadata }: KubernetesObject): string =>
  `${kind} ${metadata?.namespace ?? ""} ${metadata?.name}`;

/** The objects by their names, without the namespace that Helm creates. */
const byName = (objects: readonly KubernetesObject[], namespace: string) =>
  Object.fromEntries(
    objects.map((one) => [nameOf(one), one] as const).filter(([name]) => name !== `Namespace  ${namespace}`),
  );

/** Options of the manifest, and the values of the chart that mean the same. */
const choices: readonly (readonly [option: string, value: string, set: string])[][] = [
  [["--storage", "20Gi", "storage"]],
  [["--storage-class", "fast", "storageClass"]],
  [["--ingress-class", "public", "ingressClass"]],
  [["--acme", "https://acme.example.com/directory", "acme"]],
  [["--cluster-issuer", "letsencrypt", "clusterIssuer"]],
  [["--postgres", "cnpg", "postgres"]],
  [
    ["--store-secret", "store", "storeSecret"],
    ["--replicas", "5", "replicas"],
  ],
];

/** Every combination of them that the manifest accepts. */
const combinations = choices
  .reduce<(readonly [string, string, string])[][]>(
    (all, one) => [...all, ...all.map((some) => [...some, ...one])],
    [[]],
  )
  .filter((some) => {
    const has = (...options: string[]) => options.every((option) => some.some(([name]) => name === option));
    const isAlone = !has("--storage") && !has("--storage-class");
    return (!has("--store-secret") || isAlone) && !has("--acme", "--cluster-issuer");
  });

test("Helm finds no fault, and renders what the manifest has, for every combination of options", async () => {
  const at = await chart();
  expect(await helm("lint", "--strict", at, "--set", `image=${image}`)).toContain("0 chart(s) failed");
  expect(combinations.length).toBe(60);
  for (const some of combinations) {
    const options = some.flatMap(([option, value]) => [option, value]);
    const { out } = await command(["kubernetes", "manifest", "--image", image, "--namespace", "own", ...options]);
    const wanted = out
      .split("---\n")
      .slice(1)
      .map((text) => JSON.parse(text) as KubernetesObject);
    const sets = [["", image, "image"] as const, ...some].flatMap(([, value, name]) => ["--set", `${name}=${value}`]);
    const rendered = loadAllYaml(await helm("template", "machines-service", at, "--namespace", "own", ...sets));
    expect(byName(rendered, "own"), options.join(" ")).toEqual(byName(wanted, "own"));
  }
});

test("values that do not fit together are refused", async () => {
  const at = await chart();
  await expect(helm("template", at)).rejects.toThrow("image is required");
  const both = ["--set", "acme=https://a.example", "--set", "clusterIssuer=b"];
  await expect(helm("template", at, "--set", `image=${image}`, ...both)).rejects.toThrow("acme cannot be combined");
  await expect(helm("template", at, "--set", `image=${image},nonsense=1`)).rejects.toThrow("nonsense");
});

test("Helm installs, upgrades and removes it", async () => {
  const at = await chart();
  const namespace = "by-helm";
  const config = new KubeConfig();
  config.loadFromFile(inject("kubeconfig"));
  const api = KubernetesObjectApi.makeApiClient(config);
  const read = (kind: string) =>
    api.read({ apiVersion: "apps/v1", kind, metadata: { name: "machines-service", namespace } }).then(
      () => true,
      () => false,
    );
  const release = ["machines-service", at, "--namespace", namespace, "--set", `image=${image}`];
  await helm("install", ...release, "--create-namespace");
  expect([await read("StatefulSet"), await read("Deployment")]).toEqual([true, false]);
  await helm("upgrade", ...release, "--set", "storeSecret=store");
  expect([await read("StatefulSet"), await read("Deployment")]).toEqual([false, true]);
  await helm("uninstall", "machines-service", "--namespace", namespace);
  await expect.poll(() => read("Deployment")).toBe(false);
  await api.delete({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
});
