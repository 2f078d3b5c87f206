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
const choices = [
  { options: ["--storage", "20Gi"], sets: ["storage=20Gi"] },
  { options: ["--storage-class", "fast"], sets: ["storageClass=fast"] },
  { options: ["--ingress-class", "public"], sets: ["ingressClass=public"] },
  { options: ["--acme", "https://acme.example.com/directory"], sets: ["acme=https://acme.example.com/directory"] },
  { options: ["--cluster-issuer", "letsencrypt"], sets: ["clusterIssuer=letsencrypt"] },
  { options: ["--postgres", "cnpg"], sets: ["postgres=cnpg"] },
  { options: ["--store-secret", "store", "--replicas", "5"], sets: ["storeSecret=store", "replicas=5"] },
] as const;

type Choice = { readonly options: readonly string[]; readonly sets: readonly string[] };

/** Every combination of them that the manifest accepts. */
const combinations = choices
  .reduce<Choice[][]>((all, one) => [...all, ...all.map((some) => [...some, one])], [[]])
  .filter((some) => {
    const has = (...options: string[]) =>
      options.every((option) => some.some(({ options: given }) => given.includes(option)));
    const isAlone = !has("--storage") && !has("--storage-class");
    return (!has("--store-secret") || isAlone) && !has("--acme", "--cluster-issuer");
  });

/** What has lists or other objects, each with what it depends on. */
const further: readonly Choice[][] = [
  { options: ["--proxy"], sets: ["proxy=true"] },
  {
    options: ["--proxy", "--proxy-replicas", "3", "--proxy-tcp", "db:5432", "cache:6379=16379"],
    sets: ["proxy=true", "proxyReplicas=3", "proxyTcp={db:5432,cache:6379=16379}"],
  },
  {
    options: [
      "--kubeconfig-secret",
      "ams=europe",
      "--kubeconfig-secret",
      "fra=europe",
      "--kubeconfig-secret",
      "iad=america",
    ],
    sets: ["kubeconfigSecret.ams=europe", "kubeconfigSecret.fra=europe", "kubeconfigSecret.iad=america"],
  },
  {
    options: [
      "--postgres",
      "cnpg",
      "--postgres-backup",
      "s3:https://s3.example.com/b",
      "--postgres-backup-secret",
      "b",
    ],
    sets: ["postgres=cnpg", "postgresBackup=s3:https://s3.example.com/b", "postgresBackupSecret=b"],
  },
].flatMap((one) => [[one], ...[choices[3], choices[4], choices[6]].map((other) => [one, other])]);

test("Helm finds no fault, and renders what the manifest has, for every combination of options", async () => {
  const at = await chart();
  expect(await helm("lint", "--strict", at, "--set", `image=${image}`)).toContain("0 chart(s) failed");
  expect(combinations.length).toBe(60);
  for (const some of [...combinations, ...further]) {
    const options = some.flatMap((one) => one.options);
    const { out } = await command(["kubernetes", "manifest", "--image", image, "--namespace", "own", ...options]);
    const wanted = out
      .split("---\n")
      .slice(1)
      .map((text) => JSON.parse(text) as KubernetesObject);
    const sets = [`image=${image}`, ...some.flatMap((one) => one.sets)].flatMap((one) => ["--set", one]);
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
  for (const [sets, problem] of [
    ["proxy=true,ingressClass=public", "proxy cannot be combined with ingressClass"],
    ["proxyTcp={db:5432}", "proxyTcp needs proxy"],
    ["proxy=true,proxyTcp={5432}", "proxyTcp"],
    ["kubeconfigSecret.ams=a/b", "kubeconfigSecret"],
    ["postgresBackup=s3:https://a/b", "postgresBackup needs postgres and postgresBackupSecret"],
    ["postgresBackupSecret=b", "postgresBackupSecret needs postgresBackup"],
  ] as const)
    await expect(helm("template", at, "--set", `image=${image},${sets}`)).rejects.toThrow(problem);
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
