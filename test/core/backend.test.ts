// The backend of a state, which distinguishes a state from its copies elsewhere.
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { backendId, backendIn, stateIdIn } from "../../provider/core/backend.ts";
import { emptyJournal, openJournal } from "../../provider/core/journal.ts";
import { Run } from "../../provider/core/run/run.ts";

let folder = "";
const at = (...names: string[]): string => join(folder, ...names);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "machines-backend-"));
  for (const name of ["a/.pulumi", "b/.pulumi", "project/program", "home"]) mkdirSync(at(name), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const url = (name: string): string => `file://${at(name)}`;
const of = (env: Record<string, string>): string | undefined =>
  backendId({ PULUMI_HOME: at("home"), ...env }, at("project/program"));
const given = (text: string): string | undefined => of({ PULUMI_BACKEND_URL: text });

describe("F59: the backend of a process", () => {
  test("the backend of a process is one folder, however it is spelled, and not another one", () => {
    symlinkSync(at("a"), at("link"));
    expect(given(url("a"))).toMatch(/^[0-9a-f]{12}$/);
    expect([`${url("a")}/`, `${url("a")}?metadata=skip`, url("link"), url("b/../a")].map(given)).toEqual(
      Array(4).fill(given(url("a"))),
    );
    expect(of({ PULUMI_BACKEND_URL: "file://~/a", HOME: folder })).toBe(given(url("a")));
    expect(given(url("b"))).not.toBe(given(url("a")));
    expect(given("https://a.example.com/")).toBe(given("https://a.example.com"));
    expect(given("https://a.example.com")).not.toBe(given("https://b.example.com"));
  });

  test("the backend of a process is another one for a folder of the same path on another computer", () => {
    const before = given(url("a"));
    renameSync(at("a"), at("old"));
    renameSync(at("b"), at("a"));
    expect(given(url("a"))).not.toBe(before);
  });

  test("the backend of a process is that of the environment, then of the project, then of the login", () => {
    expect(of({})).toBeUndefined();
    writeFileSync(at("home/credentials.json"), JSON.stringify({ current: "https://login.example.com" }));
    expect(of({})).toBe(given("https://login.example.com"));
    const project = "name: shop\nbackend:\n  # of the team\n  url: https://project.example.com\nruntime: nodejs\n";
    writeFileSync(at("project/Pulumi.yaml"), project);
    expect(of({})).toBe(given("https://project.example.com"));
    expect(given("https://env.example.com")).not.toBe(of({}));
    // A spelling that is not understood is no backend, rather than a wrong one.
    writeFileSync(at("project/Pulumi.yaml"), "name: shop\nbackend: { url: https://project.example.com }\n");
    expect(of({})).toBeUndefined();
  });

  test("the backend of a process is unknown if its folder cannot be read", () => {
    expect([url("none"), url("project"), ""].map(given)).toEqual([undefined, undefined, undefined]);
  });
});

describe("F59: the id of a state", () => {
  const before = process.env["PULUMI_BACKEND_URL"];
  afterEach(() => {
    if (before === undefined) delete process.env["PULUMI_BACKEND_URL"];
    else process.env["PULUMI_BACKEND_URL"] = before;
  });
  /** A run in a backend, of a state with these ids. */
  const run = (name: string, ...ids: readonly string[]): Run => {
    process.env["PULUMI_BACKEND_URL"] = url(name);
    const started = new Run(() => emptyJournal);
    for (const stack of ids) started.stateIds.note(stack);
    return started;
  };

  test("the id of a state is kept in its backend, and a copy elsewhere gets one of its own, there and back", () => {
    const first = run("a").stateIds.own;
    expect(backendIn(first)).toBe(given(url("a")));
    expect(run("a", first).stateIds.own).toBe(first);
    const copy = run("b", first);
    const second = copy.stateIds.own;
    expect(backendIn(second)).toBe(given(url("b")));
    expect([copy.stateIds.has(first), copy.stateIds.has(second)]).toEqual([false, true]);
    expect(run("b", first, second).stateIds.own).toBe(second);
    const back = run("a", first, second);
    expect(back.stateIds.own).toBe(first);
    expect([back.stateIds.has(first), back.stateIds.has(second)]).toEqual([true, false]);
  });

  test("the id of a state of an older version stays known, and new objects get one with the backend", () => {
    const older = run("a", "0123456789ab");
    expect(older.stateIds.has("0123456789ab")).toBe(true);
    expect(backendIn(older.stateIds.own)).toBe(given(url("a")));
    expect(stateIdIn("0123456789ab", undefined)).toBe("0123456789ab");
  });
});

test("F59: an interrupted create of the same owner in another backend is not this one's to adopt", async () => {
  const open = (backend: string | undefined) => openJournal(() => undefined, at("home"), backend);
  const intent = { owner: "o", endpoint: "http://service", place: "shop", name: "web" };
  const [a, b] = [open("a"), open("b")];
  await a.write({ ...intent, op: "of a" });
  await b.write({ ...intent, op: "of b" });
  const ops = [a, b].map((journal) => journal.find("o")?.op);
  expect(ops).toEqual(["of a", "of b"]);
  expect(b.openIn("shop").map(({ op }) => op)).toEqual(["of b"]);
  b.settle("o", "shop/1");
  expect(b.find("o")).toBeUndefined();
  expect(a.find("o")?.op).toBe("of a");
  // Nor in a later process, which reads both notes. These are of a process that cannot be alive.
  const notes = ["a", "b"].map((backend) => JSON.stringify({ ...intent, op: `later ${backend}`, owner: "p", backend }));
  writeFileSync(at("home/machines/intents/4194399-4194398-0.jsonl"), `${notes.join("\n")}\n`);
  expect(["a", "b", "c"].map((backend) => open(backend).find("p")?.op)).toEqual(["later a", "later b", undefined]);
});
