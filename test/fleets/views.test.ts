// How the views of a fleet change: never in a way that makes the state invalid.
import { expect, test } from "vitest";
import type { View } from "../../provider/core/views.ts";
import { changesOf } from "../../provider/fleets/views.ts";

const volume = (name: string, id: string, sizeGb = 1): View => ({
  ...{ type: "FleetVolume", name: `shop/${name}`, inputs: { region: "ams", sizeGb }, outputs: { id: `shop/${id}` } },
});

test("a volume that a fleet knows by its mark alone was created in the state twice", () => {
  const fleet = { app: "shop", machines: new Set<string>(), volumes: new Set(["vol_2"]) };
  const done = { known: new Set(["vol_2"]), failures: [], fields: [] };
  const old = [volume("web-ams-1", "vol_1"), volume("web-ams-2", "vol_2")];
  expect(changesOf(fleet, old, old, done)).toEqual([]);
  const larger = volume("web-ams-1", "vol_1", 2);
  expect(changesOf(fleet, old, [larger, old[1] ?? larger], done)).toMatchObject([{ op: "update", new: larger }]);
  // One of another fleet, which the same resource had before.
  expect(changesOf(fleet, [...old, volume("old-ams-1", "vol_9")], old, done)).toEqual([]);
});
