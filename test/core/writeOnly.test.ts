// How a program may give a value that is never stored, and what check keeps of it.
import { describe, expect, test } from "vitest";
import { checkInputs } from "../../provider/core/check.ts";
import { CONTEXT, type Resource, type Values } from "../../provider/core/resource.ts";
import { Run } from "../../provider/core/run/run.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { predictCreate, predictUpdate } from "../../provider/core/predict.ts";
import { resources } from "../../provider/registry.ts";
import { noIntents } from "../support/jumpingClient.ts";

const place = { app: "shop", name: "TOKEN" };
const owner = { [CONTEXT]: { owner: "owner-token", name: "token" } };
const { Secret: secret } = resources as { readonly Secret: Resource };

const checked = (olds: Values, news: Values) => {
  const run = new Run(() => noIntents);
  const given = { ...place, ...news, ...owner };
  run.program.declare(secret, olds, given);
  const { inputs, problems } = checkInputs(secret, olds, given, { randomHex: () => "", run });
  const { [CONTEXT]: _, ...stored } = inputs;
  return { run, stored, problems };
};
const stored = (of: Values): Values => ({ ...place, ...of });

describe("a value that is never stored", () => {
  test("a value that is never stored is removed by check, which adds its version, and the run has it", () => {
    const found = checked({}, { valueWo: "c4n4ry-wo" });
    expect(found.stored).toEqual(stored({ valueVersion: 0 }));
    expect(found.run.program.writeOnlyOf("owner-token")).toEqual({ valueWo: "c4n4ry-wo" });
    expect(found.run.writeOnlySecrets()).toEqual([{ value: "c4n4ry-wo", isCertain: true }]);
  });

  test("a value that is never stored is kept by check without an owner, because nothing is stored then", () => {
    const run = new Run(() => noIntents);
    const { inputs } = checkInputs(secret, {}, { ...place, valueWo: "c4n4ry-wo" }, { randomHex: () => "", run });
    expect(inputs).toEqual(stored({ valueWo: "c4n4ry-wo", valueVersion: 0 }));
    expect(predictCreate(secret, inputs).state).not.toHaveProperty("valueWo");
    expect(predictUpdate(secret, inputs, inputs)).not.toHaveProperty("valueWo");
  });

  test.each<[string, Values, Values, RegExp]>([
    ["both values", {}, { value: "a", valueWo: "b" }, /^valueWo: cannot be given together with value; leave one/],
    ["no value", {}, {}, /^value: is required, unless there is a valueWo$/],
    ["no value instead of a stored one", stored({ value: "a" }), {}, /^value: is required, unless/],
    [
      "a version of a stored value",
      {},
      { value: "a", valueVersion: 1 },
      /^valueVersion: is the version of valueWo, which/,
    ],
    ["a version alone", {}, { valueVersion: 1 }, /^valueVersion: is new, so valueWo must be written, .* ignoreChanges/],
    ["a raised version alone", stored({ valueVersion: 1 }), { valueVersion: 2 }, /^valueVersion: is new, so valueWo/],
    ["a version after an import", stored({}), { valueVersion: 1 }, /^valueVersion: is new, so valueWo must be written/],
    ["a version below 0", {}, { valueWo: "a", valueVersion: -1 }, /^valueVersion: got -1; /],
    ["a version that is no integer", {}, { valueWo: "a", valueVersion: 1.5 }, /^valueVersion: got 1.5; /],
    ["a value of the wrong type", {}, { valueWo: 4711 }, /^valueWo: got a number; /],
  ])("%s is refused", (_, olds, news, says) => {
    const { problems } = checked(olds, news);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(says);
  });

  test.each<[string, Values, Values, Values]>([
    ["a null is left out", {}, { value: null, valueWo: "a" }, { valueVersion: 0 }],
    ["an empty value", {}, { valueWo: "" }, { valueVersion: 0 }],
    ["an unknown value", {}, { valueWo: UNKNOWN }, { valueVersion: 0 }],
    ["an unknown version", {}, { valueWo: "a", valueVersion: UNKNOWN }, { valueVersion: UNKNOWN }],
    ["an unknown value that may turn out to be missing", {}, { value: UNKNOWN, valueWo: "a" }, { value: UNKNOWN }],
    ["one instead of a stored one", stored({ value: "a" }), { valueWo: "b" }, { valueVersion: 0 }],
    ["a stored one instead of it", stored({ valueVersion: 3 }), { value: "a" }, { value: "a" }],
    ["an import", stored({}), {}, {}],
    ["what ignoreChanges has removed, with its version", stored({ valueVersion: 3 }), {}, { valueVersion: 3 }],
    ["what ignoreChanges has removed", stored({ valueVersion: 3 }), { valueVersion: 3 }, { valueVersion: 3 }],
  ])("%s is accepted", (_, olds, news, expected) => {
    const found = checked(olds, news);
    expect(found.problems).toEqual([]);
    expect(found.stored).toEqual(stored(expected));
  });
});
