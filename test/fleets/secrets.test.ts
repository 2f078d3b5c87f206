// A rollback writes no secret of an earlier program into the state in plain text (F33).
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { provider } from "../../provider/dynamic/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { InitializationFailed } from "../../provider/core/verbs/index.ts";
import { makeApp } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startPlugin, unfinishedIn, type Plugin } from "../support/plugin.ts";
import { clearText, revealed, secret, toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = (tag: string): string => `registry.example.com/web:${tag}`;
const crash = { MACHINES_SIMULATE: "crash" };
const canary = /canary/;
/** The configuration with a secret that the program removes later. */
const first = (value: unknown) => ({ image: image("1"), env: { OLD_TOKEN: value } });

let service: TestService;
beforeAll(async () => (service = await startService()));
afterAll(() => service.close());

test("a secret that the program has removed stays secret after a rollback, and when it is read again", async () => {
  const plugin: Plugin = await startPlugin();
  try {
    const args = toStruct({ endpoint: service.url, token: service.token });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    const fleet = drive(plugin.client, urnOf("Fleet", "web"));
    const app = await makeApp(service, "of-the-plugin");
    const wanted = (more: Properties, olds?: Properties) =>
      fleet.checked({ app, name: "web", regions: { ams: 1 }, ...more }, olds);
    let inputs = await wanted({ config: first(secret("canary")) });
    let { id, state } = await fleet.create(inputs);
    const fail = async (more: Properties) => {
      const news = await wanted(more, inputs);
      const failed = await fleet.update({ id, state, inputs: news }).then(() => undefined, unfinishedIn);
      [state, inputs] = [failed?.state ?? {}, news];
    };
    // After this one, only `committed` has the secret.
    await fail({ config: { image: image("2"), env: crash } });
    expect(state).toMatchObject({ rollout: "failed", config: { image: image("2") } });
    await fail({ onFailure: "rollback", config: { image: image("3"), env: crash } });
    expect(revealed(state)).toMatchObject({ rollout: "complete", config: first("canary") });
    const found = await fleet.read(id, { state, inputs });
    expect(revealed(found?.inputs)).toMatchObject({ config: first("canary") });
    for (const answered of [state, found?.state, found?.inputs]) expect(clearText(answered)).not.toMatch(canary);
    // The program's next configuration is shown again.
    const last = { image: image("4"), env: { PLAIN: "clear" } };
    const after = await fleet.update({ id, state, inputs: await wanted({ config: last }, inputs) });
    expect(after["config"]).toEqual(last);
  } finally {
    await plugin.close();
  }
});

test("the dynamic binding, which cannot mark it as secret, stores no removed secret in the configuration", async () => {
  const fleet = bind("Fleet", service);
  const app = await makeApp(service, "of-the-host");
  const wanted = async (config: Values) =>
    (await fleet.check({}, { app, name: "web", regions: { ams: 1 }, onFailure: "rollback", config })).inputs;
  const { id, state } = await fleet.create(await wanted(first("canary")));
  const next = await wanted({ image: image("2"), env: crash });
  const failed: unknown = await fleet.update(id, state, next).catch((error: unknown) => error);
  if (!(failed instanceof InitializationFailed)) throw failed;
  // The host marks `committed`, and in `config` only what is secret in the program's inputs.
  expect(failed.properties).toMatchObject({ rollout: "failed", committed: first("canary"), config: next["config"] });
  expect(JSON.stringify({ ...failed.properties, committed: undefined })).not.toMatch(canary);
  const found = await fleet.read(id, failed.properties);
  expect(JSON.stringify({ ...found?.state, committed: undefined })).not.toMatch(canary);
  // The engine keeps the inputs of the last successful update, and would mark others by these.
  expect(found?.inputs).toBeUndefined();
  // So it finds no difference from the previous program, and the diff has to report one.
  const host = provider("Fleet");
  const settings: Readonly<Record<string, string>> = { endpoint: service.url, token: service.token };
  const get = (key: string) => settings[key.replace("machines:", "")];
  void host.configure?.({ config: { get, require: (key) => get(key) ?? "" } });
  expect(await host.diff?.(id, found?.state ?? {}, await wanted(first("canary")))).toMatchObject({
    changes: true,
  });
  // The way back is open: the Machine has this configuration already.
  const requests = service.requests.length;
  const back = await fleet.update(id, found?.state ?? {}, await wanted(first("canary")));
  expect(back).toMatchObject({ rollout: "complete", config: first("canary") });
  const sent = service.requests.slice(requests).map(({ operation }) => operation);
  expect(sent.filter((operation) => operation !== "machines.list")).toEqual([]);
});
