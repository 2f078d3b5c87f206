// npm run -s service -- ARGUMENTS: the machines-service command of this clone.
import { serviceMain } from "./lib/paths.mjs";
import { foreground, main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { env } = await setup();
  // Its hints name the command as it is called here.
  env.MACHINES_SERVICE_COMMAND = "npm run -s service --";
  return foreground("node", [serviceMain, ...process.argv.slice(2)], { env });
});
