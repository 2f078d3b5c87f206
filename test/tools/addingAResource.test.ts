// docs/adding-a-resource.md adds a whole resource: its blocks are applied to a copy of this repository, in which the checks and the
// tests of the new type pass.
import { execFile, execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { repositoryFiles } from "../../tools/lib/files.mjs";
import { afterThisTest } from "../support/leftovers.ts";
import { wholeRun } from "../support/patience.mts";
import { thoroughTest } from "../support/thorough.ts";

const page = readFileSync("docs/adding-a-resource.md", "utf8");

/** A block of the page: a new file, or lines before or after the one that begins with an anchor. */
interface Block {
  readonly file: string;
  readonly place: "before" | "after" | undefined;
  readonly anchor: string;
  readonly code: string;
}

const blocks = [
  ...page.matchAll(/^\*\*`([^`\n]+)`\*\*, (?:a new file|(before|after) (`+)([^\n]+?)\3):\n\n```\w+\n(.*?)^```$/gms),
].map(([, file = "", place, , anchor = "", code = ""]): Block => ({
  file,
  place: place === "before" || place === "after" ? place : undefined,
  anchor,
  code,
}));

/** The text of a file with a block in it. @throws when the block has no place, or several. */
function withBlock({ file, place, anchor, code }: Block, text: string | undefined): string {
  if (place === undefined) {
    if (text !== undefined) throw new Error(`${file} exists already`);
    return code;
  }
  if (text === undefined) throw new Error(`there is no ${file}`);
  const lines = text.split("\n");
  const found = lines.flatMap((line, i) => (line.trimStart().startsWith(anchor) ? [i] : []));
  const [at] = found;
  if (at === undefined || found.length > 1) throw new Error(`${file}: ${found.length} lines begin with ${anchor}`);
  return lines.toSpliced(place === "after" ? at + 1 : at, 0, ...code.split("\n").slice(0, -1)).join("\n");
}

/** The files that the page changes or adds. */
function changed(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const block of blocks) {
    const text = files.get(block.file) ?? (existsSync(block.file) ? readFileSync(block.file, "utf8") : undefined);
    files.set(block.file, withBlock(block, text));
  }
  return files;
}

/** A copy of the repository, with its own packages and all others. */
function copied(): string {
  const root = process.cwd();
  const copy = realpathSync(mkdtempSync(join(tmpdir(), "machines-adding-")));
  afterThisTest(() => rmSync(copy, { recursive: true, force: true }));
  for (const file of repositoryFiles()) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(file, join(copy, file), { verbatimSymlinks: true });
  }
  const link = (name: string): void => {
    const own = relative(root, realpathSync(name));
    const isOurs = lstatSync(name).isSymbolicLink() && !own.startsWith("..") && !own.startsWith("node_modules");
    symlinkSync(isOurs ? join(copy, own) : join(root, name), join(copy, name));
  };
  mkdirSync(join(copy, "node_modules"));
  for (const name of readdirSync("node_modules").filter((one) => one !== ".cache")) {
    if (!name.startsWith("@")) link(join("node_modules", name));
    else {
      mkdirSync(join(copy, "node_modules", name));
      for (const inner of readdirSync(join("node_modules", name))) link(join("node_modules", name, inner));
    }
  }
  execFileSync("git", ["init", "--quiet", "."], { cwd: copy });
  return copy;
}

test("every block of the page names its file, and has one place there", () => {
  expect(blocks.length).toBeGreaterThan(20);
  expect([...page.matchAll(/^```(?!bash$)\w+$/gm)].length).toBe(blocks.length);
  expect(changed().size).toBeGreaterThan(10);
});

thoroughTest(
  "with the blocks of the page, the checks and the life of the new type pass",
  async () => {
    const copy = copied();
    for (const [file, text] of changed()) writeFileSync(join(copy, file), text);
    execFileSync("git", ["add", "--all"], { cwd: copy });
    // The samples of the tests, because all of them take hours.
    const env = { ...process.env, PULUMI_MACHINES_TEST_ALL: "0" };
    const run = (...words: string[]): Promise<unknown> =>
      promisify(execFile)(process.execPath, words, { cwd: copy, env, maxBuffer: 2 ** 26 }).catch((error: unknown) => {
        const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
        throw new Error(`${words.join(" ")} failed:\n${stdout.slice(-5000)}${stderr.slice(-5000)}`);
      });
    const generate = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "tools/generate/main.ts"];
    const compile = ["node_modules/typescript/bin/tsc", "--noEmit", "-p"];
    await run(...generate);
    await run("tools/build.mjs");
    await run(...compile, "tsconfig.json");
    await run(...compile, "examples/everything/tsconfig.json");
    await run(...generate, "--check");
    for (const check of ["layers.mjs", "citations.mjs"])
      await run(
        "--input-type=module",
        "--eval",
        `import * as lib from "./tools/lib/${check}";
         const { code, output } = await (lib.checkLayers ?? lib.checkCitations)();
         console.log(output);
         process.exitCode = code;`,
      );
    await run("node_modules/oxfmt/bin/oxfmt", "--check");
    await run("node_modules/vitest/vitest.mjs", "run", "--project", "unit", ...testsOfNotes);
  },
  wholeRun,
);

/** The tests that the page adds or changes, and those that list all types, operations or tables. */
const testsOfNotes = [
  ...new Set(blocks.map(({ file }) => file).filter((file) => file.endsWith(".test.ts"))),
  ...["test/faults/campaign.test.ts", "test/service/removal.test.ts", "test/service/migration.test.ts"],
  ...["test/tools/docs.test.ts"],
];
