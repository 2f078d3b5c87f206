// A client that is generated from the served description has every operation, compiles, and works.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Operation } from "../../api/operation.ts";
import { fieldOf } from "../../api/schema.ts";
import { inRoot, tsc } from "../../tools/lib/paths.mjs";
import { afterThisTest } from "../support/leftovers.ts";
import { wholeTest } from "../support/patience.mts";
import { withApp } from "./client.ts";
import { document, operationOf, rows } from "./description.ts";

const run = promisify(execFile);

/** Flags in the query of an operation. */
const flagsOf = (row: Operation): string[] =>
  Object.entries(row.query?.shape ?? {}).flatMap(([name, schema]) => {
    const { shape } = fieldOf(schema);
    return shape.kind === "leaf" && shape.type === "boolean" ? [name] : [];
  });

/** Compiles only if the client has exactly these operations, and takes a boolean for each of their flags. */
const everyOperation = (ids: readonly string[]): string => `import type { operations } from "./service.d.ts";
export const known: Record<keyof operations, true> = ${JSON.stringify(Object.fromEntries(ids.map((id) => [id, true])))};
type Query<Id extends keyof operations> = NonNullable<operations[Id]["parameters"]["query"]>;
${rows
  .flatMap((row) => flagsOf(row).map((flag) => [row.id, flag] as const))
  .map(
    ([id, flag], i) =>
      `export const flag${i}: Required<Query<"${id}">>["${flag}"] extends boolean ? true : false = true;`,
  )
  .join("\n")}
`;

const program = `import createClient from "openapi-fetch";
import type { paths } from "./service.d.ts";
import { known } from "./everyOperation.ts";

const { URL: baseUrl = "", TOKEN: token = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });

const app = await client.POST("/v1/apps", { body: { name: "generated", org_slug: "personal", network: "" } });
const path = { app_name: "generated" };
const address = await client.POST("/v1/apps/{app_name}/ip_assignments", {
  params: { path },
  body: { type: "v6", region: "ams" },
});
const machine = await client.POST("/v1/apps/{app_name}/machines", {
  params: { path },
  body: { name: "one", region: "ams", config: { image: "nginx", guest: { cpu_kind: "shared" }, env: { EMPTY: "" } } },
});
const all = "/v1/apps/{app_name}/machines";
const short = await client.GET(all, { params: { path, query: { summary: true, include_deleted: false } } });
const whole = await client.GET(all, { params: { path, query: { summary: false, include_leases: true } } });
const one = { ...path, machine_id: machine.data?.id ?? "" };
const gone = await client.DELETE("/v1/apps/{app_name}/machines/{machine_id}", {
  params: { path: one, query: { force: true } },
});
const missing = await client.GET("/v1/apps/{app_name}", { params: { path: { app_name: "missing" } } });

console.log(
  JSON.stringify({
    operations: Object.keys(known).length,
    app: [app.data?.name, app.data?.status, app.data?.organization?.slug],
    address: address.data?.region,
    env: machine.data?.config?.env,
    short: short.data?.map(({ name, config }) => [name, config?.image]),
    whole: whole.data?.map(({ name, config }) => [name, config?.image]),
    gone: gone.data?.ok,
    missing: [missing.response.status, missing.error?.error],
  }),
);
`;

test(
  "a client that openapi-typescript generates has every operation, compiles, and works",
  { timeout: wholeTest },
  async () => {
    const { url, token } = await withApp();
    const dir = mkdtempSync(join(tmpdir(), "machines-generated-"));
    afterThisTest(() => rmSync(dir, { recursive: true, force: true }));
    symlinkSync(inRoot("node_modules"), join(dir, "node_modules"));
    const compilerOptions = {
      ...{ target: "es2023", module: "nodenext", strict: true, exactOptionalPropertyTypes: true, types: ["node"] },
      ...{ rewriteRelativeImportExtensions: true, outDir: "out" },
    };
    const meta = ["service.health", "service.ready", "service.metrics"];
    const files = {
      "package.json": JSON.stringify({ type: "module" }),
      "tsconfig.json": JSON.stringify({ compilerOptions, files: ["program.ts"] }),
      "everyOperation.ts": everyOperation([...rows.map(({ id }) => id), ...meta]),
      "program.ts": program,
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
    // The command of docs/service.md.
    const generator = inRoot("node_modules/openapi-typescript/bin/cli.js");
    const args = [`${url}/openapi.json`, "-o", "service.d.ts", "--default-non-nullable=false"];
    await run(process.execPath, [generator, ...args], { cwd: dir });
    const compiled = await run(process.execPath, [tsc, "-p", dir], { cwd: dir }).catch((error: unknown) => error);
    expect(compiled).toMatchObject({ stdout: "" });
    const env = { ...process.env, URL: url, TOKEN: token };
    const { stdout } = await run(process.execPath, [join(dir, "out/program.js")], { cwd: dir, env });
    expect(JSON.parse(stdout)).toEqual({
      operations: rows.length + meta.length,
      app: ["generated", "pending", "personal"],
      address: "ams",
      env: { EMPTY: "" },
      short: [["one", null]],
      whole: [["one", "nginx"]],
      gone: true,
      missing: [404, "app not found"],
    });
  },
);

// Some generators leave out an operation with a parameter that may be of several types.
test("every parameter is of one type", () => {
  const typesOf = (schema: Readonly<Record<string, unknown>>): unknown => schema["type"] ?? JSON.stringify(schema);
  const parameters = rows.flatMap((row) => operationOf(row).parameters ?? []);
  const types = new Set(parameters.map(({ schema }) => typesOf(schema)));
  expect([...types].sort()).toEqual(["array", "boolean", "integer", "string"]);
  const flags = rows.flatMap((row) => flagsOf(row).map((name) => [row, name] as const));
  expect(flags.length).toBeGreaterThan(11);
  for (const [row, flag] of flags) {
    const found = operationOf(row, document).parameters?.find(({ name }) => name === flag);
    expect(found?.schema["type"], `${row.id} ${flag}`).toBe("boolean");
  }
});
