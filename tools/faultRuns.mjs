// npm run test:faults [-- --runs 2000 --seed 1 --kinds Fleet]: random programs with the provider under faults of the service, the network
// and other clients. A failure prints the smallest run that shows it, and the command that repeats it.
import { forTests } from "./lib/environment.mjs";
import { inRoot } from "./lib/paths.mjs";
import { foreground, main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { env } = await setup({ pulumi: false, build: false });
  const args = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", inRoot("test/faults/main.ts")];
  return foreground("node", [...args, ...process.argv.slice(2)], { cwd: inRoot("."), env: forTests(env) });
});
