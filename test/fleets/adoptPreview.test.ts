// A preview shows the steps of a fleet that adopts Machines as the update carries them out.
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, questionsOf } from "../../provider/dynamic/index.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import type { Values } from "../../provider/core/resource.ts";
import { plannedSteps, previewViews } from "../../provider/fleets/preview.ts";
import { makeApp, send } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

interface Live {
  readonly id: string;
  readonly name: string;
}

const image = (tag: string): string => `registry.example.com/web:${tag}`;
/** The run of a preview in which the fleet is new. */
const around = {
  owner: "owner",
  run: { program: { isInState: () => false, inputsInState: () => ({}) }, stateIds: { all: ["stack"] } },
};

let service: TestService;
let count = 0;
beforeAll(async () => (service = await startService()));
afterAll(() => service.close());

/** What a preview of the dynamic binding notes: it asks with the inputs that a question names. */
async function noteOf(inputs: Values): Promise<string | undefined> {
  const settings: Readonly<Record<string, string>> = { endpoint: service.url, token: service.token };
  const get = (key: string) => settings[key.replace("machines:", "")];
  const valueAt = (path: string) =>
    path.split(".").reduce<unknown>((at, name) => (at as Values | undefined)?.[name], inputs);
  const asked = questionsOf("Fleet").map(({ needs, uses = [] }, index) => {
    if (needs.some((need) => inputs[need] === undefined)) return Promise.resolve(null);
    const wanted = Object.fromEntries([...needs, ...uses].map((path) => [path, valueAt(path)]));
    return ask("Fleet", index, wanted, around.owner, get, (message) => expect.fail(message));
  });
  return (await Promise.all(asked)).find((found) => found?.isNote)?.message;
}

test.each([
  ["destroys one that is too much", { ams: 2 }, ["1", "1", "1"], ["destroy third"], ["first", "second"]],
  [
    "updates one with another configuration, and creates what is missing",
    { ams: 2, iad: 1 },
    ["1", "0"],
    ["create web-iad-1", "update second"],
    ["first", "second", "web-iad-1"],
  ],
])("a preview of a fleet that adopts Machines says that it %s", async (_, regions, tags, steps, names) => {
  const app = await makeApp(service, `adopting-${++count}`);
  const machines = `/v1/apps/${app}/machines`;
  const adopt: string[] = [];
  for (const [i, tag] of tags.entries()) {
    const body = { name: ["first", "second", "third"][i], region: "ams", config: { image: image(tag) } };
    adopt.push(`${app}/${(await send<Live>(service, "POST", machines, body)).id}`);
  }
  const fleet = bind("Fleet", service);
  const wanted = { app, name: "web", regions, adopt, config: { image: image("1") } };
  const { inputs } = await fleet.check({}, wanted);
  const shown = (await noteOf(inputs))?.split("\n").slice(1) ?? [];
  expect(shown.flatMap((line) => line.replace(/^ +\d+\. /, "").split(", "))).toEqual(steps);
  const { api } = jumpingClient(service);
  const listed = await api.machines.list({ appName: app });
  const planned = (await plannedSteps(inputs, listed, { api, ...around })) ?? "";
  expect(planned.split(/[;,] /)).toEqual(steps);
  // Without their ids, nothing is known of the steps.
  expect(await previewViews({ ...inputs, adopt: [UNKNOWN] }, [], { api, ...around })).toEqual([]);

  const begun = service.requests.length;
  await fleet.create(inputs);
  const sent = service.requests.slice(begun).map(({ operation }) => operation);
  for (const kind of ["create", "update", "destroy"])
    expect(sent.filter((operation) => operation === `machines.${kind}`)).toHaveLength(
      steps.filter((step) => step.startsWith(`${kind} `)).length,
    );
  expect((await send<Live[]>(service, "GET", machines)).map(({ name }) => name).sort()).toEqual(names);
});
