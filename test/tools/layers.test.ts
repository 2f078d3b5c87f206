// Imports from higher layers are found, and the code has none.
import { expect, test } from "vitest";
import { checkLayers, upwardImports } from "../../tools/lib/layers.mjs";

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

test("the repository only imports from lower layers", async () => {
  expect(await checkLayers()).toEqual({ code: 0, output: "" });
});
