// Services with Postgres clusters that the operator CloudNativePG runs on the real node.
import { Resolver } from "node:dns/promises";
import { CustomObjectsApi, KubeConfig } from "@kubernetes/client-node";
import pg from "pg";
import { expect, inject, vi } from "vitest";
import type { ServiceOptions } from "../../service/index.ts";
import { cnpgPostgres } from "../../service/runtime/cnpg/index.ts";
import { operatorKinds, postgresLabels } from "../../service/runtime/cnpg/names.ts";
import type { CnpgOptions } from "../../service/runtime/cnpg/objects.ts";
import { Cluster, kubernetesRuntime } from "../../service/runtime/kubernetes/index.ts";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { diskPrograms, startDisks } from "../../tools/setup/kubernetesDisks.mjs";
import { catalog } from "../../tools/setup/kubernetesPostgres.mjs";
import { startServices, dnsOf } from "../../tools/setup/kubernetesServices.mjs";
import { requestsOfClusters, type Ready } from "../service/postgres/servers.ts";
import { withApp } from "../service/client.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { hang } from "../support/patience.mts";
import { clientsOf, outagesOf } from "./clusters.ts";
import { addRealNode, realRegion } from "./nodes.ts";
import { addOperator, type PostgresCluster } from "./operator.ts";

/** Whether this computer can run the operator and servers. */
export const hasPostgres = inject("postgres") !== undefined;

/** The cluster of the tests, for an engine; by default as the configuration of clients says that the cluster has. */
export async function connected(kubeconfig = inject("postgres")?.kubeconfig ?? ""): Promise<Cluster> {
  process.env["KUBECONFIG"] = kubeconfig;
  const cluster = Cluster.of();
  await cluster.connect();
  return cluster;
}

const selectorOf = (dataId: string) => ({ labelSelector: `${postgresLabels.data}=${dataId}` });

/** Removes what the clusters of a service have left in a cluster. */
export async function removeClusters(dataId: string, kubeconfig = inject("postgres")?.kubeconfig ?? ""): Promise<void> {
  const { core } = clientsOf(kubeconfig);
  const { items } = await core.listNamespace(selectorOf(dataId));
  for (const { metadata } of items) await core.deleteNamespace({ name: metadata?.name ?? "" }).catch(() => {});
}

/** Where the operator runs, and the configuration of the service's own client, if it is another. */
interface Where {
  readonly on?: Pick<PostgresCluster, "kubeconfig" | "services"> | undefined;
  readonly through?: string;
}

/** The requests of a service whose clusters are in the cluster of the tests, or in another one. */
export async function onOperator(
  options: ServiceOptions = {},
  engine: CnpgOptions = {},
  { on = inject("postgres"), through }: Where = {},
) {
  const { kubeconfig = "", services = "" } = on ?? {};
  const cluster = await connected(through ?? kubeconfig);
  const app = await withApp({
    nearest: realRegion,
    delays: "none",
    ...options,
    runtime: await kubernetesRuntime({ cluster }),
    postgres: cnpgPostgres(cluster, { catalog, ...engine }),
  });
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const clients = { ...clientsOf(kubeconfig), custom: config.makeApiClient(CustomObjectsApi) };
  const { dataId } = app.service.context;
  const selector = selectorOf(dataId);
  afterThisTest(() => removeClusters(dataId, kubeconfig));
  const resolver = new Resolver();
  resolver.setServers([dnsOf(services)]);
  const requests = requestsOfClusters(app.call);
  /** Creates a cluster, and waits until it is ready. */
  const ready = (more: object = {}) => requests.cluster({ region: realRegion, ...more });
  /** The address of a name that Pods use. */
  async function addressOf(host: string): Promise<string> {
    const [address = host] = await resolver.resolve4(`${host}.cluster.local`);
    return address;
  }
  /** Connects as a user of a cluster, by the names that Pods use. */
  async function connect(
    { id, endpoints }: Ready,
    user = "fly-user",
    database = "fly-db",
    way: "direct" | "pooler" = "direct",
  ) {
    const { host = "", port } = (endpoints.primary as Record<string, { host: string; port: number }>)[way] ?? {};
    const address = await addressOf(host);
    const { password } = await requests.get(`/postgres/${id}/users/${user}/credentials`);
    // Services follow the Pods after a moment.
    return vi.waitFor(
      async () => {
        const client = new pg.Client({ host: address, port, user, password, database });
        client.on("error", () => {});
        await client.connect();
        afterThisTest(() => client.end().catch(() => {}));
        return client;
      },
      { timeout: hang },
    );
  }
  return {
    ...app,
    ...requests,
    ...clients,
    selector,
    create: (more: object = {}) => requests.create({ region: realRegion, ...more }),
    cluster: ready,
    /** A ready cluster with a table that has one row, and a connection to it. */
    async filled(more: object = {}) {
      const made = await ready(more);
      const client = await connect(made);
      await client.query("CREATE TABLE items (id int)");
      await client.query("INSERT INTO items VALUES (1)");
      return { ready: made, client };
    },
    addressOf,
    connect,
    /** The operator's objects of a kind. */
    async objects(kind: keyof typeof operatorKinds): Promise<readonly OperatorObject[]> {
      const [group = "", version = ""] = operatorKinds[kind].apiVersion.split("/");
      const resourcePlural = operatorKinds[kind].path.split("/").at(-1) ?? "";
      const found = await clients.custom.listCustomObjectForAllNamespaces({
        group,
        version,
        resourcePlural,
        ...selector,
      });
      return (found as { readonly items: readonly OperatorObject[] }).items;
    },
    /** The Pods of servers and poolers. */
    pods: async () => (await clients.core.listPodForAllNamespaces(selector)).items,
  };
}

/** A cluster of this test alone, with the operator and a real node, which needs an address of its own. */
export async function ownOperator(node: string) {
  const started = <T extends { remove(): Promise<void> }>(part: T): T => {
    afterThisTest(() => part.remove());
    return part;
  };
  const cluster = started(await startCluster((await clusterPrograms(process.env)).found ?? {}));
  const disks = started(await startDisks(cluster, (await diskPrograms(process.env)).found ?? {}));
  started(await startServices(cluster));
  const real = started(await addRealNode(cluster, realRegion, disks.forNodes, node));
  const { operator } = await addOperator(cluster, real.folder);
  if (operator) started(operator);
  const outages = outagesOf(cluster);
  return {
    ...cluster,
    ...outages,
    /** Restores the API server from the backup, and restarts the other programs. */
    async restore(): Promise<void> {
      await outages.restore();
      for (const each of [real, disks, operator]) for (const word of ["kill", "start"] as const) each?.ask(word);
    },
  };
}

/** An object of the operator. */
export interface OperatorObject {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly spec: Record<string, unknown>;
  readonly status?: Record<string, unknown>;
}

/** Waits until a query succeeds, over a new connection each time. */
export const eventually = (ask: () => Promise<unknown>) =>
  expect.poll(() =>
    ask().then(
      (answer) => answer,
      (error: Error) => error.message,
    ),
  );
