// The example of a database with the real CLI, on servers of CloudNativePG and a Pod that uses one.
import { describe, expect, test } from "vitest";
import { tryDatabase } from "../runtime/databaseExample.ts";
import { hasPostgres, onOperator } from "./postgres.ts";

describe.runIf(hasPostgres)("a database of the operator", () => {
  test("it is migrated and used from a Pod and from outside, rotated, restored, forked, and leaves nothing", async () => {
    const app = await onOperator();
    await tryDatabase(app, app.addressOf);
    await expect.poll(app.pods).toEqual([]);
  });
});
