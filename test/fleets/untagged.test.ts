// Which Machines without tags a preview counts as a fleet's, since it does not see the ids in the state.
import { expect, test } from "vitest";
import type { Machine } from "../../provider/client/machine.ts";
import { untaggedOf } from "../../provider/fleets/preview.ts";

const config = { image: "registry.example.com/web:1" };
const machine = (
  id: string,
  { fleet, region = "ams", image = config.image }: Record<string, string> = {},
): Machine => ({
  ...{ id, name: id, region, state: "started", hostStatus: "ok" },
  config: { image, metadata: fleet === undefined ? {} : { "pulumi-fleet": fleet, "pulumi-region": region } },
});
const before = { config, regions: { ams: 2, iad: 1 } };
const counted = (machines: readonly Machine[], isOfOther: (one: Machine) => boolean = () => false) =>
  untaggedOf("web", machines, before, isOfOther).map(({ id }) => id);

test("those of a fleet that lost all tags count, where they have its configuration", () => {
  const all = [machine("a"), machine("b"), machine("c", { region: "iad" }), machine("d", { region: "fra" })];
  expect(counted([...all, machine("other", { region: "iad", image: "x:1" })])).toEqual(["a", "b", "c"]);
});

test("a Machine with the same configuration is no member of a fleet that misses none", () => {
  const own = [
    machine("a", { fleet: "web" }),
    machine("b", { fleet: "web" }),
    machine("c", { fleet: "web", region: "iad" }),
  ];
  expect(counted([...own, machine("alone")])).toEqual([]);
});

test("where more are alike than are missing, none counts, and neither does one of another resource", () => {
  expect(counted([machine("a", { fleet: "web" }), machine("b"), machine("c")])).toEqual([]);
  expect(counted([machine("a", { fleet: "web" }), machine("b"), machine("c")], ({ id }) => id === "c")).toEqual(["b"]);
  expect(counted([machine("a", { fleet: "api" }), machine("b"), machine("c")])).toEqual(["b", "c"]);
});
