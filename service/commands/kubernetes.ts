// The command that prints what runs the service in a Kubernetes cluster.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import { chart } from "../local/kubernetesChart.ts";
import {
  manifest,
  type ClusterSecret,
  type Members,
  type PostgresBackup,
  type Proxies,
} from "../local/kubernetesManifest.ts";
import { Problem } from "../local/problem.ts";
import { rawOf } from "../local/rawPort.ts";
import { print } from "./print.ts";

interface Flags {
  readonly image: string;
  readonly namespace: string;
  readonly storage: string;
  readonly storageClass?: string;
  readonly ingressClass?: string;
  readonly kubeconfigSecret?: readonly ClusterSecret[];
  readonly acme?: string;
  readonly clusterIssuer?: string;
  readonly replicas?: number;
  readonly storeSecret?: string;
  readonly postgres?: "cnpg";
  readonly postgresBackup?: string;
  readonly postgresBackupSecret?: string;
  readonly proxy?: true;
  readonly proxyReplicas?: number;
  readonly proxyTcp?: string[];
}

function membersOf({ replicas, storeSecret }: Flags): { readonly members?: Members } {
  if (storeSecret !== undefined) return { members: { replicas: replicas ?? 3, secret: storeSecret } };
  if (replicas === undefined || replicas === 1) return {};
  throw new Problem(
    "--replicas needs --store-secret, the Secret with the URL and the key of the database that the members share",
  );
}

/** The proxies, if there are any. Throws a Problem for options that need them. */
function proxiesOf({ proxy, proxyReplicas, proxyTcp = [] }: Flags): { readonly proxies?: Proxies } {
  if (proxy) return { proxies: { replicas: proxyReplicas ?? 2, tcp: proxyTcp.map(rawOf) } };
  const given = proxyReplicas === undefined ? (proxyTcp.length > 0 ? "--proxy-tcp" : undefined) : "--proxy-replicas";
  if (given !== undefined) throw new Problem(`${given} needs --proxy, which adds proxies of their own`);
  return {};
}

/** The object storage of Postgres clusters, if there is one. Throws a Problem for options that need others. */
function postgresBackupOf({ postgres, postgresBackup: at, postgresBackupSecret: secret }: Flags): {
  readonly postgresBackup?: PostgresBackup;
} {
  if (at === undefined && secret === undefined) return {};
  if (at === undefined) throw new Problem("--postgres-backup-secret needs --postgres-backup, the address");
  if (secret === undefined) throw new Problem("--postgres-backup needs --postgres-backup-secret, the credentials");
  if (postgres === undefined) throw new Problem("--postgres-backup needs --postgres cnpg");
  return { postgresBackup: { at, secret } };
}

function countOf(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new InvalidArgumentError("It must be a number from 1 to 999.");
  return Number(text);
}

function clusterOf(text: string, before: readonly ClusterSecret[] = []): readonly ClusterSecret[] {
  const [, region, secret] = /^([a-z0-9-]+)=([a-z0-9][a-z0-9.-]*)$/.exec(text) ?? [];
  if (region === undefined || secret === undefined)
    throw new InvalidArgumentError("It must be REGION=SECRET, such as ams=amsterdam.");
  return [...before, { region, secret }];
}

function writeChart(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new Problem(`--out needs a folder that is empty or does not exist, got ${folder}`);
  for (const { path, text } of chart()) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

/** Adds the commands for Kubernetes. */
export function addKubernetes(program: Command): void {
  const command = program.command("kubernetes").description("run the service in a Kubernetes cluster");
  command
    .command("manifest")
    .description("print the objects that run the service in a cluster, for kubectl apply -f -")
    .addOption(new Option("--image <image>", "image with the commands machines-service and node").makeOptionMandatory())
    .option("--namespace <name>", "namespace of the service", "machines-service")
    .option("--storage <size>", "size of the volume with the data", "10Gi")
    .option("--storage-class <name>", "class of this volume (default: that of the cluster)")
    .option("--ingress-class <name>", "class of the Ingresses for hostnames (default: that of the cluster)")
    .option("--acme <directory>", "https address of the ACME directory that issues certificates (default: none)")
    .addOption(
      new Option(
        "--cluster-issuer <name>",
        "ClusterIssuer of cert-manager that issues certificates instead (default: none)",
      ).conflicts("acme"),
    )
    .addOption(
      new Option("--postgres <engine>", "what runs Postgres clusters: CloudNativePG (default: a simulation)").choices([
        "cnpg",
      ]),
    )
    .option("--postgres-backup <address>", "object storage of Postgres clusters, with --postgres cnpg (default: none)")
    .option(
      "--postgres-backup-secret <name>",
      "Secret with its credentials, named as variables such as AWS_ACCESS_KEY_ID",
    )
    .addOption(
      new Option(
        "--kubeconfig-secret <region=secret...>",
        "Secrets with the kubeconfig of the clusters of regions (default: the cluster of the service has all)",
      ).argParser(clusterOf),
    )
    .addOption(
      new Option(
        "--store-secret <name>",
        "Secret with the url and the key of a database that several members share",
      ).conflicts(["storage", "storageClass"]),
    )
    .option("--replicas <count>", "number of members, with --store-secret (default: 3)", countOf)
    .addOption(
      new Option("--proxy", "proxies of their own instead of Ingresses, which start and stop Machines").conflicts(
        "ingressClass",
      ),
    )
    .option("--proxy-replicas <count>", "number of proxies, with --proxy (default: 2)", countOf)
    .option("--proxy-tcp <ports...>", "raw ports of Apps, such as db:5432, with --proxy (default: none)")
    .action((flags: Flags) => {
      const { kubeconfigSecret: clusters = [], postgresBackup: _, ...options } = flags;
      const particulars = { clusters, ...membersOf(flags), ...proxiesOf(flags), ...postgresBackupOf(flags) };
      for (const object of manifest({ ...options, ...particulars }))
        print(`---\n${JSON.stringify(object, undefined, 2)}`);
    });
  command
    .command("chart")
    .description("write a Helm chart with the same objects, whose values are named as the options of manifest")
    .requiredOption("--out <folder>", "folder of the chart; it must be empty or not exist")
    .action(({ out }: { readonly out: string }) => {
      writeChart(resolve(out));
      print(`wrote the chart into ${out}: helm install machines-service ${out} --set image=IMAGE --create-namespace`);
    });
}
