// npm run -s path: the folders of this clone's Node.js and of its Pulumi CLI, to put before your PATH. Both are always
// printed: another Node.js may be before them on the PATH, and a script wants the same output each time.
import path from "node:path";
import { main } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const { folders } = await setup({ pulumi: true, build: false });
  console.log(folders.join(path.delimiter));
  return 0;
});
