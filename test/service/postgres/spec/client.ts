// Takes the place of test/service/client.ts when the specification tests of clusters run on real servers (vitest.config.mts).
import { embeddedPostgres } from "../../../../service/runtime/postgres/index.ts";
import { clientOn } from "./clientOn.ts";

export type { Answer } from "../../client.ts";
export { callerWith } from "./clientOn.ts";

export const { withApp, withStillClock } = clientOn((data) => embeddedPostgres({ data }));
