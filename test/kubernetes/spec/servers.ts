// Takes the place of test/service/postgres/servers.ts when the tests of queries run on CloudNativePG (vitest.config.mts).
import type { ServiceOptions } from "../../../service/index.ts";
import { dataFolder } from "../../service/postgres/servers.ts";
import { onOperator } from "../postgres.ts";

export { requestsOfClusters, rowsOf } from "../../service/postgres/servers.ts";

/** A service with real servers, and data of its own. */
export async function withServers({ service = {} }: { readonly service?: ServiceOptions }) {
  const data = dataFolder();
  return { ...(await onOperator({ data, ...service })), data };
}
