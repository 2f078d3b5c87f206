// Imports of the service that go up are found, and there are none.
import { expect, test } from "vitest";
import { checkLayers, upwardImports } from "../../tools/lib/layers.mjs";

test.each([
  ["an import", 'import { app } from "../http/app.ts";'],
  ["an import of types", 'import type { App } from "../http/app.ts";'],
  ["an import over several lines", 'import {\n  app,\n} from "../http/app.ts";'],
  ["an import for its effects", 'import "../http/app.ts";'],
  ["an export", 'export { app } from "../http/app.ts";'],
])("%s from a layer above is found", (_, text) => {
  expect(upwardImports("rules/apps.ts", text)).toEqual([
    'service/rules/apps.ts imports service/http/app.ts: "http" is not below "rules"',
  ]);
});

test("imports from the same layer, from those below and from other packages are allowed", () => {
  const text = ["./find.ts", "../context.ts", "../store/rows.ts", "../../api/apps.ts"].map(
    (target) => `import { one } from "${target}";`,
  );
  expect(upwardImports("rules/apps.ts", [...text, 'import { z } from "zod";'].join("\n"))).toEqual([]);
});

test("a folder without a place among the layers is found", () => {
  expect(upwardImports("extra/one.ts", "")).toEqual([
    'service/extra/one.ts: add "extra" to the layers in tools/lib/layers.mjs',
  ]);
});

test("the imports of the service only go down", async () => {
  expect(await checkLayers()).toEqual({ code: 0, output: "" });
});
