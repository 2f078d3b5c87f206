// npm run record-upgrade: records the output of this version for a program; see test/upgrade/record.ts.
import { forTests } from "./lib/environment.mjs";
import { inRoot } from "./lib/paths.mjs";
import { foreground, main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { env } = await setup({ pulumi: true });
  const args = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", inRoot("test/upgrade/record.ts")];
  return foreground("node", args, { cwd: inRoot("."), env: forTests(env) });
});
