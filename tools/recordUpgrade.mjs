// npm run record-upgrade: records the output of this version for a program, and a data folder of its service; see
// test/upgrade/record.ts. `-- --build MAIN --name NAME` records only a data folder, of the build of another version.
import { forTests } from "./lib/environment.mjs";
import { inRoot } from "./lib/paths.mjs";
import { foreground, main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const options = process.argv.slice(2);
  const { env } = await setup({ pulumi: options.length === 0 });
  const args = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", inRoot("test/upgrade/record.ts"), ...options];
  return foreground("node", args, { cwd: inRoot("."), env: forTests(env) });
});
