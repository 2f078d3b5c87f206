// Takes the place of test/service/client.ts when the specification tests of clusters run on CloudNativePG (vitest.config.mts).
import { cnpgPostgres } from "../../../service/runtime/cnpg/index.ts";
import type { EngineFactory, EngineHost } from "../../../service/runtime/postgresEngine.ts";
import { catalog } from "../../../tools/setup/kubernetesPostgres.mjs";
import { clientOn } from "../../service/postgres/spec/clientOn.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { realRegion } from "../nodes.ts";
import { connected, removeClusters } from "../postgres.ts";

export type { Answer } from "../../service/client.ts";
export { callerWith } from "../../service/postgres/spec/clientOn.ts";

/** Every cluster fits the real node, whatever its region and its plan. */
const onRealNode = (host: EngineHost): EngineHost => ({
  ...host,
  cluster(id) {
    const found = host.cluster(id);
    return found && { ...found, region: realRegion, isShared: true, cpus: 2, memoryMb: 1024, replicas: 0 };
  },
});

export const { withApp, withStillClock } = clientOn(async (): Promise<EngineFactory> => {
  const create = cnpgPostgres(await connected(), { catalog });
  return (host) => {
    afterThisTest(() => removeClusters(host.dataId));
    return create(onRealNode(host));
  };
});
