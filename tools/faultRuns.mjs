// npm run test:faults [-- --runs 2000 --seed 1]: programs by chance through the provider while the service, the network and
// others do everything wrong. A failure names the smallest run that shows it, and how to have that run again.
import { inRoot } from "./lib/paths.mjs";
import { foreground, main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { env } = await setup({ pulumi: false, build: false });
  const args = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", inRoot("test/faults/main.ts")];
  return foreground("node", [...args, ...process.argv.slice(2)], { cwd: inRoot("."), env });
});
