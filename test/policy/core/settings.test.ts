import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineSettings } from "../../../policy/core/settings.ts";

const settings = defineSettings({
  minDays: z.int().min(1).default(7).describe("Days at least."),
  regions: z.array(z.string()).default([]).describe("Regions."),
  most: z.number().optional().describe("The most."),
});
const of = (config: object) => settings.of({ getConfig: () => config });

describe("settings", () => {
  test("have a schema for the engine, with descriptions and defaults", () => {
    expect(settings.schema).toEqual({
      properties: {
        minDays: expect.objectContaining({ type: "integer", minimum: 1, default: 7, description: "Days at least." }),
        regions: { type: "array", items: { type: "string" }, default: [], description: "Regions." },
        most: { type: "number", description: "The most." },
      },
    });
  });

  test("settings are the configured ones, over the defaults", () => {
    expect(of({})).toEqual({ minDays: 7, regions: [] });
    expect(of({ minDays: 3, most: 1.5 })).toEqual({ minDays: 3, regions: [], most: 1.5 });
  });

  test("include the settings that every policy has", () => {
    expect(of({ exceptions: [], enforcementLevel: "advisory" })).toEqual({ minDays: 7, regions: [] });
  });

  test.each([
    ["minDay", "minDays"],
    ["min_days", "minDays"],
    ["region", "regions"],
    ["exception", "exceptions"],
    ["enforcementlevel", "enforcementLevel"],
  ])("settings refuse %s, and name %s", (name, meant) => {
    expect(() => of({ [name]: 1 })).toThrow(
      `the configuration of the policy has "${name}", which it does not know; did you mean "${meant}"?`,
    );
  });

  test("list all known names if none is similar", () => {
    expect(() => of({ colour: "red" })).toThrow(
      'has "colour", which it does not know; it knows minDays, regions, most, exceptions, enforcementLevel',
    );
  });

  test("settings refuse names of built-in object properties", () => {
    expect(() => of({ constructor: 1 })).toThrow('has "constructor"');
  });

  test("refuse values of a wrong type that the engine has accepted", () => {
    expect(() => of({ minDays: 0 })).toThrow("minDays");
    expect(() => of({ regions: "ams" })).toThrow("regions");
  });
});
