// An empty text means that an optional field is left out, in every operation (docs/interface.md#values-on-the-wire).
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { define, fieldOf, type Field } from "../../api/schema.ts";
import { validate } from "../../service/validation/validate.ts";
import { arbitraryOf } from "../support/arbitrary.ts";
import { withApp } from "./client.ts";

const rows = Object.values(contract).flatMap((group) => Object.values(group) as Operation[]);

/** Texts whose emptiness has a meaning: an empty file. */
const meaningful = ["raw_value"];

/** A field that is optional in the interface, and that the service requires. */
const isNeeded = ({ meta }: Field): boolean => /\. Required\b/.test(meta.description ?? "");

const isOptionalText = (name: string, field: Field): boolean =>
  field.optional &&
  !isNeeded(field) &&
  field.shape.kind === "leaf" &&
  (field.shape.type === "string" || field.shape.type === "stringOrBoolean") &&
  !meaningful.includes(name);

const valueOf = (field: Field): unknown => fc.sample(arbitraryOf(field), { seed: 1, numRuns: 1 })[0];

/** A value with every object, list and map in it filled, and every optional text as given, or left out. */
function filled(field: Field, text: "" | undefined, found: string[] = [], path = ""): unknown {
  const { shape } = field;
  if (shape.kind === "leaf") return valueOf(field);
  if (shape.kind === "array") return [filled(shape.item, text, found, `${path}[]`)];
  if (shape.kind === "record") return { KEY: filled(shape.value, text, found, `${path}.*`) };
  const value: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(shape.fields)) {
    const at = `${path}.${name}`;
    if (isOptionalText(name, inner)) {
      found.push(at);
      if (text !== undefined) define(value, name, text);
    } else if (inner.shape.kind !== "leaf" || !inner.optional || isNeeded(inner))
      define(value, name, filled(inner, text, found, at));
  }
  return value;
}

const paramsOf = (row: Operation): object =>
  Object.fromEntries(Object.keys(row.params.shape).map((name) => [name, "x1"]));

/** The required parameters of the query. */
const requiredOf = (row: Operation): object =>
  Object.fromEntries(
    Object.entries(row.query?.shape ?? {}).flatMap(([name, schema]) =>
      fieldOf(schema).optional ? [] : [[name, valueOf(fieldOf(schema))]],
    ),
  );

describe("in the body", () => {
  const withTexts = rows.flatMap((row) => {
    const texts: string[] = [];
    if (row.body) filled(fieldOf(row.body), "", texts);
    return texts.length > 0 ? [[row.id, row, texts] as const] : [];
  });

  test.each(withTexts)("an empty text in the body of %s counts as absent", (_, row, texts) => {
    const bodyWith = (text: "" | undefined): unknown => row.body && filled(fieldOf(row.body), text);
    expect(JSON.stringify(bodyWith("")).split('""').length - 1, "each is sent").toBe(texts.length);
    const read = (body: unknown) => validate(row, paramsOf(row), requiredOf(row), body).body;
    expect(read(bodyWith(""))).toEqual(read(bodyWith(undefined)));
  });

  test("the walk reaches every depth of a body", () => {
    const paths = withTexts.flatMap(([id, , texts]) => texts.map((path) => `${id}${path}`));
    expect(paths).toEqual(
      expect.arrayContaining([
        "ipAssignments.assign.region",
        "volumes.create.region",
        "volumes.create.fstype",
        "machines.create.region",
        "machines.create.config.guest.cpu_kind",
        "machines.create.config.containers[].healthchecks[].kind",
        "machines.create.config.checks.*.kind",
        "apps.createDeployToken.expiry",
        "postgres.create.pool_mode",
      ]),
    );
  });
});

describe("in the query", () => {
  const strict = ["postgres.list"]; // its booleans are only `true` and `false` (docs/interface.md#managed-postgres)
  const optionalOf = (row: Operation): string[] =>
    Object.entries(row.query?.shape ?? {}).flatMap(([name, schema]) => {
      const field = fieldOf(schema);
      return field.optional && field.shape.kind !== "record" ? [name] : [];
    });

  test.each(
    rows.filter((row) => optionalOf(row).length > 0 && !strict.includes(row.id)).map((row) => [row.id, row] as const),
  )("an empty text in the query of %s counts as absent", (_, row) => {
    const { body } = row;
    const read = (more: object) => {
      const sent = body && filled(fieldOf(body), undefined);
      return validate(row, paramsOf(row), { ...requiredOf(row), ...more }, sent).query;
    };
    expect(read(Object.fromEntries(optionalOf(row).map((name) => [name, ""])))).toEqual(read({}));
  });
});

test("an empty region of an address is every region, and one of a volume or Machine is the nearest", async () => {
  const { call, machines } = await withApp();
  const address = await call("POST", "/apps/web/ip_assignments", { type: "v6", region: "", network: "" });
  expect([address.status, address.body.region]).toEqual([200, "global"]);
  const nearest = (await call("POST", "/apps/web/volumes", { name: "data" })).body;
  const options = { region: "", fstype: "", snapshot_id: "", source_volume_id: "", compute_image: "" };
  const volume = await call("POST", "/apps/web/volumes", { name: "data", ...options });
  expect([volume.status, volume.body.region]).toEqual([200, nearest.region]);
  const config = { image: "nginx", env: { EMPTY: "" }, guest: { cpu_kind: "", gpu_kind: "" }, restart: { policy: "" } };
  const machine = await call("POST", machines, { name: "", region: "", config });
  expect(machine).toMatchObject({ status: 200, body: { region: nearest.region, config: { env: { EMPTY: "" } } } });
  expect(machine.body.config).toEqual({ image: "nginx", env: { EMPTY: "" }, guest: {}, restart: {} });
});

test("an empty text that is required, or in a list or map, is a value", async () => {
  const { call, machines, machine } = await withApp();
  expect((await call("POST", "/apps", { name: "", org_slug: "personal" })).status).toBe(400);
  expect((await call("POST", machines, { config: { image: "" } })).status).toBe(400);
  expect((await call("POST", "/apps/web/secrets/EMPTY", { value: "" })).status).toBe(201);
  const files = [{ guest_path: "/empty", raw_value: "" }];
  expect((await machine({ files, init: { cmd: [""] } })).config).toMatchObject({ files, init: { cmd: [""] } });
});
