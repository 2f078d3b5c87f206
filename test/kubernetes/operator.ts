// The operator of Postgres clusters, for a cluster with a real node.
import { nodePrograms } from "../../tools/setup/kubernetesNode.mjs";
import { importImages, operatorProgram, serverArchive, startOperator } from "../../tools/setup/kubernetesPostgres.mjs";

/** A cluster in which the operator runs. */
export interface PostgresCluster {
  readonly kubeconfig: string;
  readonly folder: string;
  /** The first two numbers of the addresses of its Services. */
  readonly services: string;
}

/** Starts the operator, with images on the node of a folder; or says what cannot be built for it. */
export async function addOperator(cluster: PostgresCluster, folder: string) {
  const [program, servers] = [await operatorProgram(process.env), await serverArchive(process.env)];
  const { found = {} } = await nodePrograms(process.env);
  if (program.program === undefined) return { reason: program.reason };
  if (servers.archive === undefined) return { reason: servers.reason };
  await importImages({ folder, ctr: found["ctr"] ?? "" }, program.program, servers.archive);
  return { operator: await startOperator(cluster, program.program) };
}
