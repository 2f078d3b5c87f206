// The example of a database with the real CLI, on servers of CloudNativePG and a Pod that uses one.
import { Resolver } from "node:dns/promises";
import { describe, expect, inject, test } from "vitest";
import { dnsOf } from "../../tools/setup/kubernetesServices.mjs";
import { tryDatabase } from "../runtime/databaseExample.ts";
import { hasPostgres, onOperator, withOperator } from "./postgres.ts";

describe.runIf(hasPostgres)("a database of the operator", () => {
  withOperator();

  test("it is migrated and used from a Pod and from outside, rotated, restored, forked, and leaves nothing", async () => {
    const app = await onOperator();
    const resolver = new Resolver();
    resolver.setServers([dnsOf(inject("postgres")?.cluster.services ?? "")]);
    const addressOf = async (host: string): Promise<string> => {
      const [address = host] = await resolver.resolve4(`${host}.cluster.local`);
      return address;
    };
    await tryDatabase(app, addressOf);
    await expect.poll(app.pods).toEqual([]);
  });
});
