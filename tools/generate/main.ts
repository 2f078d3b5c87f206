// Writes everything that is derived from the resource declarations; with --check only says what is stale.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { packageSchema } from "./schema.ts";
import { referencePages } from "./reference.ts";
import { sdkFiles } from "./sdk.ts";

const root = process.cwd();
const { version } = JSON.parse(readFileSync(join(root, "sdk/nodejs/package.json"), "utf8")) as { version: string };
const schema = packageSchema(version);

const files: Record<string, string> = { "provider/schema.json": `${JSON.stringify(schema, null, 2)}\n` };
for (const [path, text] of Object.entries(sdkFiles(schema))) files[`sdk/nodejs/${path}`] = text;

for (const [path, text] of Object.entries(referencePages(schema))) files[`docs/reference/${path}`] = text;

const current = (path: string): string | undefined => {
  try {
    return readFileSync(join(root, path), "utf8");
  } catch {
    return undefined;
  }
};
const stale = Object.keys(files).filter((path) => current(path) !== files[path]);
if (process.argv.includes("--check")) {
  if (stale.length > 0) {
    console.error(`stale, run \`npm run generate\`: ${stale.join(", ")}`);
    process.exitCode = 1;
  }
} else {
  for (const path of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), files[path] ?? "");
  }
  console.error(stale.length > 0 ? `generated ${stale.join(", ")}` : "nothing was stale");
}
