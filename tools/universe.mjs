// npm run test:universe [-- --runs 2000 --seed 1 --bugs]: people, the provider, and all members of a service in one process and one
// simulated time, while members, networks and runs fail. A failure prints the shortest story that shows it, and how to replay it.
import { forTests } from "./lib/environment.mjs";
import { inRoot } from "./lib/paths.mjs";
import { foreground, main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const args = process.argv.slice(2);
  // The console of a replay has a page.
  const { env } = await setup({ pulumi: false, build: args.includes("--console") });
  const program = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", inRoot("test/universe/main.ts")];
  return foreground("node", [...program, ...args], { cwd: inRoot("."), env: forTests(env) });
});
