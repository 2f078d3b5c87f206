// npm run -s path: the folders of this clone's Node.js and of the Pulumi CLI it found or built, to put before a PATH.
import path from "node:path";
import { bin } from "./lib/paths.mjs";
import { main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { env } = await setup({ pulumi: true, build: false });
  // npm puts our node on the PATH of every script: that is no part of what the caller has.
  const before = new Set((process.env.PATH ?? "").split(path.delimiter).filter((dir) => dir !== bin));
  const ours = env.PATH.split(path.delimiter).filter((dir) => !before.has(dir));
  console.log(ours.join(path.delimiter));
  return 0;
});
