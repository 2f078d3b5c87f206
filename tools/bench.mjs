// npm run bench [-- options]: measures the provider through the real Pulumi CLI; see docs/performance.md.
import { inRoot } from "./lib/paths.mjs";
import { foreground, main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { env } = await setup({ pulumi: true });
  const args = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", inRoot("bench/main.ts"), ...process.argv.slice(2)];
  return foreground("node", args, { cwd: inRoot("."), env });
});
