// npm run build: compiles the SDK and the service, whether or not anything changed.
import { main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => void (await setup({ force: true })));
