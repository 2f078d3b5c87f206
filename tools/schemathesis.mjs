// npm run test:schemathesis [-- --max 20000 --seed 1]: the service with requests generated from its own description. Finds
// server errors, undescribed answers, and requests that should have been refused.
import { parseArgs } from "node:util";
import { main, say, Stop } from "./lib/process.mjs";
import { runSchemathesis, schemathesisEnvironment } from "./lib/schemathesis.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { max, seed } = numbers();
  const { env } = await setup({ pulumi: false, build: false });
  const { dir, reason } = await schemathesisEnvironment(env);
  if (dir === undefined) throw new Stop(`Schemathesis cannot run here: ${reason}`);
  const { createService } = await import("../service/index.ts"); // imported only after its dependencies are installed
  const service = createService({ delays: "none", strict: true });
  const url = await service.app.listen({ host: "127.0.0.1", port: 0 });
  const started = Date.now();
  const { code, output, requests } = await runSchemathesis({ dir, env, service, url, max, seed });
  await service.close();
  console.log(output);
  say(`${requests} requests in ${Math.round((Date.now() - started) / 1000)} s, seed ${seed}`);
  return code;
});

function numbers() {
  const { values } = parseArgs({
    options: { max: { type: "string", default: "20000" }, seed: { type: "string", default: "1" } },
  });
  const read = (name) => {
    if (!/^\d{1,9}$/.test(values[name]))
      throw new Stop(`--${name} takes a number, got ${JSON.stringify(values[name])}`);
    return Number(values[name]);
  };
  return { max: read("max"), seed: read("seed") };
}
