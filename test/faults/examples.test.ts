// Each case in which users have lost data or secrets is a short story, played in the model of the engine.
import { describe, expect, test } from "vitest";
import { examples } from "./examples.ts";
import { play } from "./player.ts";

describe.each(Object.entries(examples))("%s", (_name, scenarios) => {
  test.each(scenarios.map((scenario, i) => [i, scenario] as const))("story %i", async (_i, scenario) => {
    await expect(play(scenario)).resolves.toHaveProperty("steps");
  });
});
