import { describe, expect, test } from "vitest";
import { databaseBackups } from "../../../policy/policies/databaseBackups.ts";
import { checkStack, unknownText, type Declared } from "../../support/policies.ts";

const cluster = (name: string, props: object = {}): Declared => ({
  type: "PostgresCluster",
  name,
  props: { name: `${name}-db`, clusterId: `${name}0123`, ...props },
});
const backup = (of: string, ...madeOf: string[]): Declared => ({
  type: "PostgresBackup",
  name: "backup",
  props: { cluster: of },
  madeOf: { cluster: madeOf },
});
const missing = (name: string) => `${name}: There is no backup of it. Add a PostgresBackup with its id as \`cluster\`.`;

describe("database-backups", () => {
  test.each<[string, Declared[]]>([
    ["no cluster", [backup("old")]],
    ["created from it, at a preview", [cluster("a", { clusterId: unknownText }), backup(unknownText, "a")]],
    ["created from it, at an update", [cluster("a"), backup("a0123", "a")]],
    ["with its literal id", [cluster("a"), backup("a0123")]],
    ["with its literal name", [cluster("a"), backup("a-db")]],
    ["beside an unknown one", [cluster("a"), backup(unknownText), backup(unknownText, "a")]],
    ["one of several", [cluster("a"), backup("b0123"), backup("a0123")]],
  ])("the policy accepts a cluster with a backup: %s", async (_, declared) => {
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const)
      expect(await checkStack(databaseBackups, declared, { binding })).toEqual({ violations: [] });
  });

  test.each<[string, Declared[]]>([
    ["no backup", []],
    ["a backup of another cluster", [cluster("b"), backup(unknownText, "b")]],
    ["a backup of a cluster outside the stack", [backup("b0123")]],
    [
      "a literal id that a new cluster cannot have yet",
      [cluster("b", { clusterId: unknownText }), backup("b0123"), backup(unknownText, "b")],
    ],
  ])("the policy reports a cluster with %s", async (_, declared) => {
    expect(await checkStack(databaseBackups, [cluster("a"), ...declared])).toEqual({ violations: [missing("a")] });
  });

  test("the policy reports unknown values, unless there is a backup anyway", async () => {
    const declared = [cluster("a"), cluster("b"), backup(unknownText), backup("b0123")];
    expect(await checkStack(databaseBackups, declared)).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^backup\.cluster is known only at the update/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(checkStack(databaseBackups, [], { config: { every: 1 } })).rejects.toThrow('has "every"');
  });
});
