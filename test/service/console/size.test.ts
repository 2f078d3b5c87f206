// What a browser loads for the console, without the terminal and the editor of queries, which few open.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

const folder = "service/dist/console/page";

test("the page has at most 120 kB, compressed and without the terminal and the editor", () => {
  const sizes = new Map(
    readdirSync(folder).map((name) => [name, gzipSync(readFileSync(join(folder, name)), { level: 9 }).length]),
  );
  expect(sizes.get("terminal.js")).toBeGreaterThan(0);
  expect(sizes.get("query.js")).toBeLessThan(130_000);
  for (const name of ["terminal.js", "xterm.css", "query.js"]) sizes.delete(name);
  const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  expect(total).toBeGreaterThan(10_000);
  expect(total).toBeLessThan(120_000);
});
