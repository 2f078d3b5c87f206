// What the provider learns from one run of the engine, and its effect on deletions and repeated creates (R11, R12, R13).
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { Run } from "../../provider/core/run/run.ts";
import { CONTEXT, type Resource, type Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import { noIntents } from "../support/jumpingClient.ts";

let run: Run;
const begin = (): void => void (run = new Run(() => noIntents));
beforeEach(begin);

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

describe("guarded resources (R11)", () => {
  test("a resource removed from the program is deleted", () => {
    run.program.declare(app, {}, as("shop", { name: "shop" }));
    expect(() => run.guards.refuseDeletion(data, state, "shop/vol_1")).not.toThrow();
  });

  test.each([
    ["checked with its old inputs", { app: "shop" }],
    ["checked without old inputs, as in a forced replacement", {}],
  ])("a resource still in the program is not deleted, %s", (_, olds) => {
    run.program.declare(data, olds, as("data", { app: "shop" }));
    expect(() => run.guards.refuseDeletion(data, state, "shop/vol_1")).toThrow(
      /Volume shop\/vol_1 is guarded.*undo-replacement.*allowDataLoss: true/,
    );
  });

  test("the program's current inputs decide, not those of the state", () => {
    run.program.declare(data, {}, as("data", { app: "shop", allowDataLoss: true }));
    expect(() => run.guards.refuseDeletion(data, state, "shop/vol_1")).not.toThrow();
    begin();
    run.program.declare(data, {}, as("data", { app: "shop" }));
    expect(() => run.guards.refuseDeletion(data, { ...state, allowDataLoss: true }, "shop/vol_1")).toThrow(
      /is guarded/,
    );
  });

  test("a volume is used by the other Machine of the program that mounts it, and by no former one", () => {
    const machine = typeOf("Machine");
    const mounting = (name: string, volume: string) =>
      as(name, { app: "shop", config: { image: "x", mounts: [{ volume, path: "/d" }] } });
    const volume = (id: string) => ({ path: [], kind: "volume", id, agreesOn: "region" });
    run.program.declare(machine, mounting("one", "shop/vol_1"), mounting("one", "shop/vol_2"));
    expect(run.program.otherUserOf(volume("shop/vol_2"), "owner-two")).toEqual({ name: "one", isInState: false });
    expect(run.program.otherUserOf(volume("shop/vol_2"), "owner-one")).toBeUndefined();
    expect(run.program.otherUserOf(volume("shop/vol_1"), "owner-two")).toBeUndefined();
  });

  test("what is in a protected cluster is kept, unless this run ends the protection", () => {
    const user = typeOf("PostgresUser");
    const inProtected = { cluster: "c1", __context: { owner: "owner-user", inProtected: true } };
    const refuse = (resource: Resource) => run.guards.refuseDeletion(resource, inProtected, "c1/x");
    // A destroy declares nothing.
    for (const resource of [user, database])
      expect(() => refuse(resource)).toThrow(
        /in the protected cluster c1, .* outside of the cluster may be deleted already: `pulumi up` creates them again\. .*`protect: true`/,
      );
    const cluster1 = as("db", { name: "db" });
    run.program.declare(cluster, cluster1, cluster1);
    run.program.noteDiff(cluster, "c1", cluster1, cluster1, false);
    // The cluster stays: its data stays too, and a user can be removed from the program.
    expect(() => refuse(user)).not.toThrow();
    expect(() => refuse(database)).toThrow(/in the protected cluster "db" \(c1\), .* Then delete it\.$/);
    const open = as("db", { name: "db", deletionProtection: false });
    begin();
    run.program.declare(cluster, cluster1, open);
    run.program.noteDiff(cluster, "c1", cluster1, open, false);
    expect(() => refuse(database)).not.toThrow();
  });

  test("the engine requests no diff of a tainted cluster, whose end of protection counts nevertheless", () => {
    const attachment = typeOf("PostgresAttachment");
    const context = { owner: "owner-attachment", inProtected: true, inCluster: "owner-db" };
    const refuse = () => run.guards.refuseDeletion(attachment, { cluster: "c1", [CONTEXT]: context }, "c1/shop");
    const cluster1 = as("db", { name: "db" });
    run.program.declare(cluster, cluster1, cluster1);
    expect(run.guards.protectionOf(attachment, { cluster: "c1", [CONTEXT]: context })).toEqual({
      inProtected: true,
      inCluster: "owner-db",
    });
    begin();
    run.program.declare(cluster, cluster1, as("db", { name: "db", deletionProtection: false }));
    expect(refuse).not.toThrow();
    begin();
    expect(refuse).toThrow(/in the protected cluster c1/);
  });

  test("a parent is not deleted while the program has guarded data in it", () => {
    run.program.declare(
      database,
      { cluster: "c1", name: "orders" },
      as("orders", { cluster: UNKNOWN, name: "orders" }),
    );
    const gone = as("db", { name: "db", deletionProtection: false });
    expect(() => run.guards.refuseDeletion(cluster, gone, "c1")).toThrow(
      /PostgresCluster c1 contains .*PostgresDatabase "orders"/,
    );
    expect(() => run.guards.refuseDeletion(cluster, gone, "c2")).not.toThrow();
  });

  test("a replacement under an alias is judged by its new name, also in later runs", () => {
    const old = as("db", { name: "db" });
    const allowed = as("database", { name: "db", deletionProtection: false });
    run.program.declare(cluster, old, allowed);
    run.program.noteDiff(cluster, "c1", old, allowed, true);
    expect(() => run.guards.refuseDeletion(cluster, old, "c1")).not.toThrow();
    begin();
    expect(() => run.guards.refuseDeletion(cluster, old, "c1")).toThrow(/protected/);
    run.program.declare(cluster, allowed, allowed);
    const { __context } = allowed;
    const made = { ...allowed, __context: { ...(__context as object), formerOwners: ["owner-db"] } };
    run.program.noteDiff(cluster, "c2", made, allowed, false);
    expect(() => run.guards.refuseDeletion(cluster, old, "c1")).not.toThrow();
    run.program.declare(cluster, allowed, as("database", { name: "db" }));
    expect(() => run.guards.refuseDeletion(cluster, old, "c1")).toThrow();
  });

  test("data in a replaced parent blocks the replacement only while the new parent is unknown", () => {
    const olds = { app: "shop" };
    const refused = () => run.guards.dataLossByParent(data, olds, { app: UNKNOWN });
    run.program.declare(app, as("shop", { name: "shop" }), as("shop", { name: "other" }));
    expect(refused()).toBeUndefined();
    run.program.noteDiff(app, "shop", {}, as("shop", { name: "other" }), true);
    expect(refused()?.message).toMatch(/App shop would be replaced, which would destroy this Volume and its data/);
    expect(run.guards.dataLossByParent(data, olds, { app: UNKNOWN, allowDataLoss: true })).toBeUndefined();
    expect(run.guards.dataLossByParent(data, { app: "else" }, { app: UNKNOWN })).toBeUndefined();
  });
});

test("only objects in a parent that this run created again under its old name are lost with it", () => {
  const [database, extension, user] = ["PostgresDatabase", "PostgresExtension", "PostgresUser"].map(typeOf);
  if (!database || !extension || !user) throw new Error("a type is missing");
  run.program.declare(database, {}, as("orders", { cluster: "c1", name: "orders" }));
  expect(run.program.recreatedParentInput(extension, "c1/extension/orders/vector")).toBeUndefined();
  run.program.noteCreated("c1/database/orders", "owner-orders");
  expect(run.program.recreatedParentInput(extension, "c1/extension/orders/vector")).toBe("database");
  expect(run.program.recreatedParentInput(extension, "c1/extension/other/vector")).toBeUndefined();
  expect(run.program.recreatedParentInput(extension, "c2/extension/orders/vector")).toBeUndefined();
  expect(run.program.recreatedParentInput(user, "c1/user/orders")).toBeUndefined();
  expect(run.program.recreatedParentInput(database, "c1/database/orders")).toBeUndefined();
  run.program.declare(app, {}, as("shop", { name: "shop" }));
  run.program.noteCreated("shop", "owner-shop");
  expect(run.program.recreatedParentInput(key, "shop/KEY")).toBe("app");
  expect(run.program.recreatedParentInput(key, "else/KEY")).toBeUndefined();
});

describe("claims of several resources (R12)", () => {
  const values = { app: "shop", name: "KEY", value: "v" };

  test("a claim of another resource in the program remains valid, whatever happens to the previous owner", () => {
    run.program.declare(key, {}, as("new", { ...values, app: "shop" }));
    const claimant = { name: "new", owner: "owner-new", value: "v" };
    expect(run.program.remainingClaimant("secret shop/KEY", "owner-old")).toEqual(claimant);
    expect(run.program.remainingClaimant("secret shop/OTHER", "owner-old")).toBeUndefined();
    expect(run.program.remainingClaimant("secret else/KEY", "owner-old")).toBeUndefined();
  });

  test("its own claim protects it from leftovers, but not from its own later replacement", () => {
    run.program.declare(key, values, as("one", values));
    expect(run.program.remainingClaimant("secret shop/KEY", "owner-one")?.name).toBe("one");
    run.program.declare(key, {}, as("one", values));
    expect(run.program.remainingClaimant("secret shop/KEY", "owner-one")).toBeUndefined();
    run.program.noteCreated("shop/KEY", "owner-one");
    expect(run.program.remainingClaimant("secret shop/KEY", "owner-one")?.name).toBe("one");
  });

  test("an object belongs to the resource that the engine named for it, until that replaces it", () => {
    expect(run.program.remainingResource(data, "shop/vol_1")).toBeUndefined();
    run.program.declare(data, { app: "shop" }, as("data", { app: "shop" }));
    run.program.noteDiff(data, "shop/vol_1", {}, as("data", { app: "shop" }), false);
    expect(run.program.remainingResource(data, "shop/vol_1")).toBe("data");
    expect(run.program.remainingResource(app, "shop/vol_1")).toBeUndefined();
    run.program.noteDiff(data, "shop/vol_1", {}, as("data", { app: "shop" }), true);
    expect(run.program.remainingResource(data, "shop/vol_1")).toBeUndefined();
  });

  test("in any order of checks, a name is released only when no resource of the program claims it", () => {
    const names = fc.uniqueArray(fc.constantFrom("A", "B", "C", "D"), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(names, { maxLength: 5 }), fc.constantFrom("A", "B", "C", "D"), (programs, name) => {
        begin();
        for (const [i, listed] of programs.entries())
          run.program.declare(
            typeOf("AppSecrets"),
            {},
            as(`s${i}`, { app: "shop", values: Object.fromEntries(listed.map((one) => [one, "v"])) }),
          );
        expect(run.program.remainingClaimant(`secret shop/${name}`, "owner-gone") !== undefined).toBe(
          programs.some((listed) => listed.includes(name)),
        );
      }),
    );
  });
});
