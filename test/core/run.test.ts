// What one run of the engine has said, and what follows for deletions and repeated creates (R11, R12, R13).
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { Run } from "../../provider/core/run.ts";
import { CONTEXT, type Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import { noIntents } from "../support/jumpingClient.ts";

const run = new Run(() => noIntents);
beforeEach(() => run.begin());

const typeOf = (name: string) => {
  const found = resources[name];
  if (!found) throw new Error(name);
  return found;
};
const app = typeOf("App");
const data = typeOf("Volume");
const key = typeOf("Secret");
const cluster = typeOf("PostgresCluster");
const database = typeOf("PostgresDatabase");
const as = (name: string, values: Values): Values => ({ ...values, [CONTEXT]: { owner: `owner-${name}`, name } });
const state = as("data", { app: "shop", volumeId: "vol_1", allowDataLoss: false });

describe("what is guarded (R11)", () => {
  test("what the program no longer has is deleted", () => {
    run.declare(app, {}, as("shop", { name: "shop" }));
    expect(() => run.refuseLoss(data, state, "shop/vol_1")).not.toThrow();
  });

  test.each([
    ["checked with what was there", { app: "shop" }],
    ["checked as if there were nothing, as when it is replaced by force", {}],
  ])("what the program still has is not, %s", (_, olds) => {
    run.declare(data, olds, as("data", { app: "shop" }));
    expect(() => run.refuseLoss(data, state, "shop/vol_1")).toThrow(
      /Volume shop\/vol_1 is guarded.*undo-replacement.*allowDataLoss: true/,
    );
  });

  test("the program's word of now counts, not that of the state", () => {
    run.declare(data, {}, as("data", { app: "shop", allowDataLoss: true }));
    expect(() => run.refuseLoss(data, state, "shop/vol_1")).not.toThrow();
    run.begin();
    run.declare(data, {}, as("data", { app: "shop" }));
    expect(() => run.refuseLoss(data, { ...state, allowDataLoss: true }, "shop/vol_1")).toThrow(/is guarded/);
  });

  test("a parent does not go while the program has guarded data in it", () => {
    run.declare(database, { cluster: "c1", name: "orders" }, as("orders", { cluster: UNKNOWN, name: "orders" }));
    const gone = as("db", { name: "db", deletionProtection: false });
    expect(() => run.refuseLoss(cluster, gone, "c1")).toThrow(/PostgresCluster c1 holds .*PostgresDatabase "orders"/);
    expect(() => run.refuseLoss(cluster, gone, "c2")).not.toThrow();
  });

  test("what is replaced while an alias gives it another name is judged by its new name, and by later runs too", () => {
    const old = as("db", { name: "db" });
    const allowed = as("database", { name: "db", deletionProtection: false });
    run.declare(cluster, old, allowed);
    run.noteDiff(cluster, "c1", old, allowed, true);
    expect(() => run.refuseLoss(cluster, old, "c1")).not.toThrow();
    run.begin();
    expect(() => run.refuseLoss(cluster, old, "c1")).toThrow(/protected/);
    run.declare(cluster, allowed, allowed);
    const { __context } = allowed;
    const made = { ...allowed, __context: { ...(__context as object), formerOwners: ["owner-db"] } };
    run.noteDiff(cluster, "c2", made, allowed, false);
    expect(() => run.refuseLoss(cluster, old, "c1")).not.toThrow();
    run.declare(cluster, allowed, as("database", { name: "db" }));
    expect(() => run.refuseLoss(cluster, old, "c1")).toThrow();
  });

  test("data in a parent that is replaced is refused while the new parent is unknown, and only then", () => {
    const olds = { app: "shop" };
    const refused = () => run.lossByParent(data, olds, { app: UNKNOWN });
    run.declare(app, as("shop", { name: "shop" }), as("shop", { name: "other" }));
    expect(refused()).toBeUndefined();
    run.noteDiff(app, "shop", {}, as("shop", { name: "other" }), true);
    expect(refused()?.message).toMatch(/App shop would be replaced, and with it this Volume/);
    expect(run.lossByParent(data, olds, { app: UNKNOWN, allowDataLoss: true })).toBeUndefined();
    expect(run.lossByParent(data, { app: "else" }, { app: UNKNOWN })).toBeUndefined();
  });
});

test("what lies in something that this run has created again under its old name is lost with it, and nothing else", () => {
  const [database, extension, user] = ["PostgresDatabase", "PostgresExtension", "PostgresUser"].map(typeOf);
  if (!database || !extension || !user) throw new Error("a type is missing");
  run.declare(database, {}, as("orders", { cluster: "c1", name: "orders" }));
  expect(run.lostWith(extension, "c1/extension/orders/vector")).toBeUndefined();
  run.noteCreated("c1/database/orders", "owner-orders");
  expect(run.lostWith(extension, "c1/extension/orders/vector")).toBe("database");
  expect(run.lostWith(extension, "c1/extension/other/vector")).toBeUndefined();
  expect(run.lostWith(extension, "c2/extension/orders/vector")).toBeUndefined();
  expect(run.lostWith(user, "c1/user/orders")).toBeUndefined();
  expect(run.lostWith(database, "c1/database/orders")).toBeUndefined();
  run.declare(app, {}, as("shop", { name: "shop" }));
  run.noteCreated("shop", "owner-shop");
  expect(run.lostWith(key, "shop/KEY")).toBe("app");
  expect(run.lostWith(key, "else/KEY")).toBeUndefined();
});

describe("what several resources claim (R12)", () => {
  const values = { app: "shop", name: "KEY", value: "v" };

  test("a claim of another resource of the program holds, whatever became of the one that gives it up", () => {
    run.declare(key, {}, as("new", { ...values, app: "shop" }));
    const claimant = { name: "new", owner: "owner-new", value: "v" };
    expect(run.claimantOtherThan("secret shop/KEY", "owner-old")).toEqual(claimant);
    expect(run.claimantOtherThan("secret shop/OTHER", "owner-old")).toBeUndefined();
    expect(run.claimantOtherThan("secret else/KEY", "owner-old")).toBeUndefined();
  });

  test("its own claim holds against what was left over, not against its replacement that is yet to come", () => {
    run.declare(key, values, as("one", values));
    expect(run.claimantOtherThan("secret shop/KEY", "owner-one")?.name).toBe("one");
    run.declare(key, {}, as("one", values));
    expect(run.claimantOtherThan("secret shop/KEY", "owner-one")).toBeUndefined();
    run.noteCreated("shop/KEY", "owner-one");
    expect(run.claimantOtherThan("secret shop/KEY", "owner-one")?.name).toBe("one");
  });

  test("an object is held by whoever the engine has named it to, until it replaces that", () => {
    expect(run.holderOf(data, "shop/vol_1")).toBeUndefined();
    run.declare(data, { app: "shop" }, as("data", { app: "shop" }));
    run.noteDiff(data, "shop/vol_1", {}, as("data", { app: "shop" }), false);
    expect(run.holderOf(data, "shop/vol_1")).toBe("data");
    expect(run.holderOf(app, "shop/vol_1")).toBeUndefined();
    run.noteDiff(data, "shop/vol_1", {}, as("data", { app: "shop" }), true);
    expect(run.holderOf(data, "shop/vol_1")).toBeUndefined();
  });

  test("in any order of checks, a name is given up only when no resource of the program claims it", () => {
    const names = fc.uniqueArray(fc.constantFrom("A", "B", "C", "D"), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(names, { maxLength: 5 }), fc.constantFrom("A", "B", "C", "D"), (programs, name) => {
        run.begin();
        for (const [i, listed] of programs.entries())
          run.declare(
            typeOf("AppSecrets"),
            {},
            as(`s${i}`, { app: "shop", values: Object.fromEntries(listed.map((one) => [one, "v"])) }),
          );
        expect(run.claimantOtherThan(`secret shop/${name}`, "owner-gone") !== undefined).toBe(
          programs.some((listed) => listed.includes(name)),
        );
      }),
    );
  });
});
