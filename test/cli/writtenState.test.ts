// How commands write a state, with a fake CLI that is interrupted.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cliMain } from "../support/built.ts";
import { commandHere, type Ran } from "./command.ts";
import { exportOf, urnOf } from "./exports.ts";

/** Has its state in a file. An import is what `import.sh` does with `next.json`. */
const cli = `#!/bin/sh
cd "$(dirname "$0")"
if [ "$2" = export ]; then cat state.json; else cat > next.json; . ./import.sh; fi
`;
const written = "mv next.json state.json\n";

const view = { type: "FleetMachine", name: "web/shop/web-ams-1", viewOf: urnOf("plugin", "Fleet", "web") };
const before = exportOf("plugin", [{ type: "Fleet", name: "web", id: "shop/web" }, view]);

let folder = "";
const at = (name: string): string => join(folder, name);
const text = (name: string): string => readFileSync(at(name), "utf8");
const copies = (): string[] => readdirSync(folder).filter((file) => file.startsWith("dev-before-forget-views-"));
const args = ["forget-views", "--yes", "--stack", "dev"];
const env = (): Record<string, string> => ({ PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "machines-written-"));
  writeFileSync(at("pulumi"), cli, { mode: 0o755 });
  writeFileSync(at("state.json"), before);
});
afterEach(() => rmSync(folder, { recursive: true }));

const importDoes = (script: string): void => writeFileSync(at("import.sh"), script);
const run = (): Promise<Ran> =>
  commandHere({ url: "http://127.0.0.1:9", token: "x" }, args, { cwd: folder, env: env() });

test("^C on the terminal does not stop the import of a state", async () => {
  importDoes(`${written}touch is-written; while [ ! -e may-end ]; do sleep 0.05; done\n`);
  const child = spawn(process.execPath, [cliMain, ...args], {
    ...{ cwd: folder, env: { ...process.env, ...env() } },
    // A process group of its own, like that of a shell's job.
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => (out += part));
  const ended = new Promise((resolve) => child.on("close", resolve));
  await expect.poll(() => existsSync(at("is-written"))).toBe(true);
  process.kill(-(child.pid ?? 0), "SIGINT");
  writeFileSync(at("may-end"), "");
  expect(await ended).toBe(0);
  expect(out).toContain("The state has no views any more");
  expect(copies()).toHaveLength(1);
});

test("an import that was killed after it has written keeps the copy of the earlier state", async () => {
  importDoes(`${written}kill -KILL $$\n`);
  const { code, err } = await run();
  const [copy = ""] = copies();
  expect([code, err]).toEqual([
    2,
    expect.stringContaining(`\`pulumi stack import\` failed: SIGKILL
The state may have been written. The earlier state is in ${copy}. If no other run has changed the state since, this restores it: pulumi stack import --stack dev --file ${copy}
If the stack is locked and no run is at work: pulumi cancel --stack dev`),
  ]);
  expect(text(copy)).toBe(before);
  expect(text("state.json")).not.toContain("FleetMachine");
});

test("an import that was killed before it has written changes nothing, and leaves no copy", async () => {
  importDoes("kill -KILL $$\n");
  const { code, err } = await run();
  expect([code, err]).toEqual([
    2,
    expect.stringContaining(`\`pulumi stack import\` failed: SIGKILL
Nothing has changed.
If the stack is locked and no run is at work: pulumi cancel --stack dev`),
  ]);
  expect(copies()).toEqual([]);
  expect(text("state.json")).toBe(before);
});
