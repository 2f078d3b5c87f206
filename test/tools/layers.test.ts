// Imports from higher layers and circles of files are found, and the code has none.
import { expect, test } from "vitest";
import { checkLayers, circles, upwardImports } from "../../tools/lib/layers.mjs";

test.each([
  ["an import", 'import { app } from "../http/app.ts";'],
  ["an import of types", 'import type { App } from "../http/app.ts";'],
  ["an import over several lines", 'import {\n  app,\n} from "../http/app.ts";'],
  ["an import for its side effects", 'import "../http/app.ts";'],
  ["an export", 'export { app } from "../http/app.ts";'],
])("%s from a layer above is found", (_, text) => {
  expect(upwardImports("service/rules/apps.ts", text)).toEqual([
    'service/rules/apps.ts imports service/http/app.ts: "http" is not below "rules"',
  ]);
});

test.each([
  ["provider/client/api.ts", "../core/journal.ts", '"core" is not below "client"'],
  ["provider/core/journal.ts", "../machines/create.ts", '"machines" is not below "core"'],
  ["provider/machines/create.ts", "../registry.ts", '"registry" is not below "machines"'],
  ["provider/core/journal.ts", "../../policy/index.ts", '"policy" is not below "provider"'],
  ["service/rules/apps.ts", "../../provider/client/api.ts", '"provider" is not below "service"'],
  ["api/apps.ts", "../test/support/stack.ts", '"test" is not below "api"'],
])("%s may not import %s", (file, target, problem) => {
  expect(upwardImports(file, `import { one } from "${target}";`)).toEqual([expect.stringContaining(problem)]);
});

test("imports from the same layer, from those below and from other packages are allowed", () => {
  const text = ["./find.ts", "../context.ts", "../store/rows.ts", "../../api/apps.ts"].map(
    (target) => `import { one } from "${target}";`,
  );
  expect(upwardImports("service/rules/apps.ts", [...text, 'import { z } from "zod";'].join("\n"))).toEqual([]);
});

test("a folder without a layer is found", () => {
  expect(upwardImports("service/extra/one.ts", "")).toEqual([
    'service/extra/one.ts: add "extra" to the layers in tools/lib/layers.mjs',
  ]);
});

test.each([
  ["of values", 'import { one } from "./one.ts";'],
  ["of types", 'import type { One } from "./one.ts";'],
  ["over several lines", 'import {\n  one,\n} from "./one.ts";'],
  ["by an export", 'export * from "./one.ts";'],
  ["by an import that is loaded later", 'const { one } = await import("./one.ts");'],
  ["by a type of a value that is loaded later", 'let one: typeof import("./one.ts");'],
])("a circle %s is found", (_, text) => {
  const texts = {
    "cli/one.ts": 'import { two } from "./two.ts";',
    "cli/two.ts": 'import { three } from "../api/three.ts";',
    "api/three.ts": 'export { one } from "../cli/four.mjs";',
    "cli/four.mjs": text,
    "cli/five.ts": text,
  };
  expect(circles(texts)).toEqual([
    "a circle of imports: cli/one.ts → cli/two.ts → api/three.ts → cli/four.mjs → cli/one.ts",
  ]);
});

test("every file of a circle is named, also when circles share files", () => {
  const imports = (...names: string[]): string => names.map((name) => `import "./${name}.ts";\n`).join("");
  const texts = {
    "a.ts": imports("b", "d"),
    "b.ts": imports("a", "c"),
    "c.ts": imports("d"),
    "d.ts": imports("a"),
    "e.ts": imports("e"),
  };
  expect(circles(texts)).toEqual([
    "a circle of imports: a.ts → b.ts → a.ts",
    "a circle of imports: c.ts → d.ts → a.ts → b.ts → c.ts",
    "a circle of imports: e.ts → e.ts",
  ]);
});

test("files that import the same file are no circle", () => {
  const texts = {
    "a.ts": 'import "./b.ts";\nimport "./c.ts";',
    "b.ts": 'import "./c.ts";',
    "c.ts": 'import "./gone.ts";',
  };
  expect(circles(texts)).toEqual([]);
});

test("the repository only imports from lower layers, and has no circle of files", async () => {
  expect(await checkLayers()).toEqual({ code: 0, output: "" });
});
