// Whatever a client sends, the answer says in our words what is wrong with which field.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { fieldOf } from "../../api/schema.ts";
import { Refusal } from "../../service/refusal.ts";
import { validate } from "../../service/validation/validate.ts";
import { isThorough } from "../support/extent.mts";
import { junkFor, zodsWords } from "../support/junk.ts";
import { withApp } from "./client.ts";

const numRuns = isThorough ? 1000 : 100;
const rows = Object.values(contract).flatMap((group) => Object.values(group) as Operation[]);

function refusalOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return String((error.body as { error: unknown }).error);
  }
}

describe.each(rows.filter(({ body }) => body).map((row) => [row.id, row] as const))("%s", (_, row) => {
  test("a refusal names the field of what it refuses, in our words", () => {
    const { body } = row;
    if (!body) throw new Error("no body");
    const field = fieldOf(body);
    const names = field.shape.kind === "object" ? Object.keys(field.shape.fields) : [];
    const params = Object.fromEntries(Object.keys(row.params.shape).map((name) => [name, "x1"]));
    fc.assert(
      fc.property(junkFor(field), (value) => {
        const text = refusalOf(() => validate(row, params, {}, value));
        if (text === undefined) return;
        expect(text).not.toMatch(zodsWords);
        const named = ["body", "name", ...names].some((name) => text.toLowerCase().includes(name));
        expect(named, text).toBe(true);
      }),
      { numRuns },
    );
  });
});

test("the service names the nearest option, and repeats no secret", async () => {
  const { call, machines } = await withApp({ strict: false });
  const config = { image: "registry.example.com/web:1", guest: { cpu_kind: "sharde" } };
  expect((await call("POST", machines, { config })).body).toEqual({
    error: 'invalid config.guest.cpu_kind, got "sharde", allowed are "shared", "performance"; did you mean "shared"?',
  });
  const wait = await call("GET", `${machines}/1/wait?state=strated`);
  expect(wait.body.error).toMatch(/got "strated", allowed are .*; did you mean "started"\?$/);
  const cluster = await call("POST", "/postgres", { org_slug: "personal", region: "fra", plan: "bsaic" });
  expect([cluster.status, cluster.body.error]).toEqual([
    422,
    'invalid plan, got "bsaic", allowed are basic, starter, launch, scale, Performance; did you mean "basic"?',
  ]);
  const secret = await call("POST", "/apps/web/secretkeys/KEY", { type: "hs25", value: "canary" });
  expect(JSON.stringify(secret.body)).not.toContain("canary");
});
