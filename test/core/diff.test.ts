import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fieldOf } from "../../api/schema.ts";
import { diffInputs } from "../../provider/core/diff.ts";
import { diff } from "../../provider/core/verbs/index.ts";
import type { Resource, Values } from "../../provider/core/resource.ts";
import { inSpellingOf, pathText, same, UNKNOWN } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { arbitraryOf } from "../support/arbitrary.ts";

const resource = (name: string): Resource => {
  const found = resources[name];
  if (!found) throw new Error(`no resource ${name}`);
  return found;
};
const machine = resource("Machine");
const volume = resource("Volume");
const app = resource("App");
const paths = (state: Values, news: Values, of = machine): string[] =>
  diffInputs(of, state, news).changes.map(({ path }) => pathText(path));
const base = { app: "a", name: "web", config: { image: "x" }, cordoned: false, forceDestroy: false };

describe("diff", () => {
  test.each(Object.keys(resources))("the diff of any %s with itself is empty", (name) => {
    const inputs = arbitraryOf(fieldOf(resource(name).inputs));
    fc.assert(
      fc.property(inputs, (values) => {
        expect(diffInputs(resource(name), values as Values, values as Values).changes).toEqual([]);
      }),
    );
  });

  test.each(Object.keys(resources))("the diff of any two %ss is empty only when they mean the same", (name) => {
    const inputs = arbitraryOf(fieldOf(resource(name).inputs));
    fc.assert(
      fc.property(inputs, inputs, (a, b) => {
        const { changes } = diffInputs(resource(name), a as Values, b as Values);
        for (const [key, field] of Object.entries(resource(name).inputFields)) {
          const [before, after] = [(a as Values)[key], (b as Values)[key]];
          if (field.meta["kind"] === "computed" && after === undefined) continue;
          expect(changes.some(({ path }) => path[0] === key)).toBe(!same(field, before, after));
        }
      }),
    );
  });

  test.each([
    ["60s and 1m", { stopConfig: { timeout: "60s" } }, { stopConfig: { timeout: "1m" } }],
    ["an omitted value and its default", {}, { stopConfig: { signal: "SIGINT" }, restart: { policy: "on-failure" } }],
    [
      "stop and true",
      { services: [{ protocol: "tcp", internalPort: 1, autostop: "stop" }] },
      { services: [{ protocol: "tcp", internalPort: 1, autostop: true }] },
    ],
    [
      "off and an omitted value",
      { services: [{ protocol: "tcp", internalPort: 1, autostop: "off" }] },
      { services: [{ protocol: "tcp", internalPort: 1 }] },
    ],
    ["an empty map and no map", { env: {} }, {}],
    [
      "an id with and without its path",
      { mounts: [{ volume: "a/vol_1", path: "/d" }] },
      { mounts: [{ volume: "vol_1", path: "/d" }] },
    ],
    ["the default guest and no guest", { guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 } }, {}],
  ])("%s are the same", (_, left, right) => {
    expect(paths({ ...base, config: { image: "x", ...left } }, { ...base, config: { image: "x", ...right } })).toEqual(
      [],
    );
    expect(paths({ ...base, config: { image: "x", ...right } }, { ...base, config: { image: "x", ...left } })).toEqual(
      [],
    );
  });

  test("diff names the property at the depth where it differs", () => {
    const old = {
      ...base,
      config: { image: "x", env: { "A.B": "1", C: "2" }, services: [{ protocol: "tcp", internalPort: 80 }] },
    };
    const next = {
      ...base,
      config: { image: "y", env: { "A.B": "9", C: "2" }, services: [{ protocol: "tcp", internalPort: 81 }] },
    };
    expect(paths(old, next).sort()).toEqual(['config.env["A.B"]', "config.image", "config.services[0].internalPort"]);
  });

  test("omitted computed inputs make no difference; behaviour inputs cause an update", () => {
    expect(paths({ ...base, region: "ams", state: "stopped" }, base)).toEqual([]);
    expect(paths(base, { ...base, forceDestroy: true })).toEqual(["forceDestroy"]);
    expect(diffInputs(machine, base, { ...base, forceDestroy: true }).replaces).toEqual([]);
  });

  test("a check without settings, and a spot without a price, are meaningful by their presence", () => {
    const config = { image: "x", checks: { a: { type: "tcp" } } };
    expect(
      paths({ ...base, config }, { ...base, config: { ...config, checks: { a: { type: "tcp" }, b: {} } } }),
    ).toEqual(["config.checks.b"]);
    expect(paths(base, { ...base, config: { image: "x", checks: { a: {} } } })).toEqual(["config.checks"]);
    expect(paths(base, { ...base, config: { image: "x", spot: {} } })).toEqual(["config.spot"]);
    expect(paths(base, { ...base, config: { image: "x", init: {}, guest: {} } })).toEqual([]);
  });

  test("removing a metadata key from the program is a change", () => {
    const old = { ...base, config: { image: "x", metadata: { a: "1", b: "2" } } };
    expect(paths(old, { ...base, config: { image: "x", metadata: { a: "1" } } })).toEqual(["config.metadata.b"]);
  });
});

describe("replacement (R4)", () => {
  const replaces = (old: Values, next: Values, of = machine) => diffInputs(of, old, next);

  test("app, name, region and a mounted volume replace a Machine; nothing else does", () => {
    const mounted = { ...base, region: "ams", config: { image: "x", mounts: [{ volume: "a/vol_1", path: "/d" }] } };
    expect(replaces(mounted, { ...mounted, app: "b" }).replaces).toEqual(["app"]);
    expect(replaces(mounted, { ...mounted, name: "other" }).replaces).toEqual(["name"]);
    expect(replaces(mounted, { ...mounted, region: "fra" }).replaces).toEqual(["region"]);
    expect(
      replaces(mounted, { ...mounted, config: { image: "x", mounts: [{ volume: "a/vol_2", path: "/d" }] } }).replaces,
    ).toEqual(["config"]);
    expect(replaces(mounted, { ...mounted, config: { image: "x" } }).replaces).toEqual(["config"]);
    expect(
      replaces(mounted, { ...mounted, config: { image: "y", mounts: [{ volume: "vol_1", path: "/e" }] } }).replaces,
    ).toEqual([]);
  });

  test("an unknown value never causes an additional replacement", () => {
    const { changes, replaces: found } = replaces(
      { ...base, region: "ams" },
      { ...base, app: UNKNOWN, region: UNKNOWN },
    );
    expect(changes.map(({ unknown }) => unknown)).toEqual([true, true]);
    expect(found).toEqual([]);
  });

  test("a fixed name or a mounted volume requires deletion first, a generated name does not", () => {
    const moved = { ...base, region: "fra" };
    const old = { ...base, region: "ams" };
    expect(replaces(old, moved).deleteBeforeReplace).toBe(true);
    expect(replaces(old, { ...moved, __context: { autonamed: true } }).deleteBeforeReplace).toBe(false);
    const mounts = { image: "x", mounts: [{ volume: "a/vol_1", path: "/d" }] };
    expect(
      replaces({ ...old, config: mounts }, { ...moved, config: mounts, __context: { autonamed: true } })
        .deleteBeforeReplace,
    ).toBe(true);
    expect(replaces({ ...old, name: "a" }, { ...moved, name: "b" }).deleteBeforeReplace).toBe(false);
  });

  test("an App whose organization changes keeps its name, so the old one is deleted first", () => {
    expect(
      diffInputs(app, { name: "n", organization: "x" }, { name: "n", organization: "y" }).deleteBeforeReplace,
    ).toBe(true);
  });

  test("a region that the service chose is not replaced without allowDataLoss (R9)", async () => {
    const state = { app: "a", name: "data", region: "ams", sizeGb: 3, __context: { left: ["region"] } };
    const { api, run } = jumpingClient({ url: "http://127.0.0.1:1", token: "none" });
    const caller = { api, run, progress: () => undefined, warn: () => undefined };
    const compared = (news: Values) =>
      diff(volume, "app/vol_1", state, { app: "a", name: "data", sizeGb: 3, ...news }, caller);
    await expect(compared({ region: "fra" })).rejects.toThrow(/allowDataLoss/);
    expect((await compared({ region: "fra", allowDataLoss: true })).replaces).toEqual(["region"]);
    expect((await compared({ region: "ams" })).replaces).toEqual([]);
  });

  test("a volume never shrinks below the size in its state, but may grow; a refresh refuses nothing (R3)", async () => {
    const { api, run } = jumpingClient({ url: "http://127.0.0.1:1", token: "none" });
    const caller = { api, run, progress: () => undefined, warn: () => undefined };
    const context = { __context: { owner: "data" } };
    const state = { app: "a", name: "data", region: "ams", sizeGb: 10, ...context };
    const compared = (sizeGb: unknown) => diff(volume, "app/vol_1", state, { ...state, sizeGb }, caller);
    expect((await compared(5)).changes).toHaveLength(1);
    // The inputs of an update that failed are not what the volume is.
    run.program.declare(volume, { ...state, sizeGb: 500 }, { ...state, sizeGb: 5 });
    await expect(compared(5)).rejects.toThrow(/^sizeGb: got 5, which is less than the 10 GB/);
    for (const accepted of [10, 20, UNKNOWN]) await compared(accepted);
  });
});

describe("live values in the program's spelling", () => {
  const field = fieldOf(machine.inputs).shape;
  const config = field.kind === "object" ? field.fields["config"] : undefined;
  if (!config) throw new Error("no config");

  test("equivalent values keep the program's spelling", () => {
    fc.assert(
      fc.property(arbitraryOf(config), (written) => {
        expect(inSpellingOf(config, written, written)).toEqual(written);
      }),
    );
  });

  test("a later diff shows exactly the differing values", () => {
    fc.assert(
      fc.property(arbitraryOf(config), arbitraryOf(config), (written, live) => {
        expect(same(config, inSpellingOf(config, written, live), live)).toBe(true);
      }),
    );
  });

  test("defaults that the program omitted are omitted", () => {
    const live = {
      image: "x",
      guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 },
      services: [{ protocol: "tcp", internalPort: 80, autostop: false }],
    };
    expect(
      inSpellingOf(config, { image: "x", services: [{ protocol: "tcp", internalPort: 80, autostop: "off" }] }, live),
    ).toEqual({
      image: "x",
      services: [{ protocol: "tcp", internalPort: 80, autostop: "off" }],
    });
  });

  test("an empty text, which the service leaves out, stays as the program wrote it", () => {
    const written = { image: "x", guest: { gpuKind: "" }, env: { EMPTY: "" } };
    const live = { image: "x", env: { EMPTY: "" } };
    expect(inSpellingOf(config, written, live)).toEqual(written);
    expect(same(config, written, { image: "x", env: {} })).toBe(false);
    const empty = { files: [{ guestPath: "/empty", rawValue: "" }] };
    expect(same(config, empty, { files: [{ guestPath: "/empty" }] })).toBe(false);
    expect(paths({ app: "a", name: "A" }, { app: "a", name: "A", value: "" }, resource("Secret"))).toEqual(["value"]);
  });
});
