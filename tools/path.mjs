// npm run -s path: the folders of this clone's Node.js and of the Pulumi CLI it found or built, to put before a PATH.
import path from "node:path";
import { bin } from "./lib/paths.mjs";
import { main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { env } = await setup({ pulumi: true, build: false });
  const before = new Set((process.env.PATH ?? "").split(path.delimiter));
  console.log(
    env.PATH.split(path.delimiter)
      .filter((dir) => !before.has(dir))
      .join(path.delimiter),
  );
  return 0;
});
