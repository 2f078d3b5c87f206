// Checks with the state of the resource. Engines send it since they announce it in the handshake; older ones do not.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp } from "../support/around.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

describe("a check with the state", () => {
  let service: TestService;
  let plugin: Plugin;
  let volume: Driver;
  let app: string;
  let olds: Properties;
  let id: string;
  let state: Properties;
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    await configure();
    volume = drive(plugin.client, urnOf("Volume", "data"));
    app = await makeApp(service, "app");
    olds = await volume.checked({ app, sizeGb: 1 });
    ({ id, state } = await volume.create(olds));
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });

  /** Begins another run of the engine. */
  const configure = () => {
    const args = toStruct({ endpoint: service.url, token: service.token });
    return plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
  };
  const moved = async (region: string, more: Properties = {}, oldOutputs: Properties | null = state) => {
    const news = { app, sizeGb: 1, region, ...more };
    const { inputs, failures } = await volume.check(news, { olds, ...(oldOutputs ? { oldOutputs } : {}) });
    return { inputs, reasons: failures.map(({ reason }) => reason) };
  };
  const elsewhere = () => (state["region"] === "fra" ? "ams" : "fra");
  const refusal = /region: changing it replaces the Volume and destroys its data/;

  test("a check with the state refuses to move a volume away from the region that the service chose", async () => {
    expect((await moved(elsewhere())).reasons).toEqual([expect.stringMatching(refusal)]);
    expect((await moved(String(state["region"]))).reasons).toEqual([]);
    expect((await moved(elsewhere(), { allowDataLoss: true })).reasons).toEqual([]);
  });

  test("a check with the state says that a region does not exist instead of how to move there", async () => {
    expect((await moved("amss")).reasons).toEqual([expect.stringMatching(/^region: (?!changing it).*amss/)]);
  });

  test("a check with the state of an older engine leaves the refusal to the diff", async () => {
    for (const sent of [null, {}]) {
      const { inputs, reasons } = await moved(elsewhere(), {}, sent);
      expect(reasons).toEqual([]);
      await expect(volume.diff({ id, oldInputs: olds, state, inputs })).rejects.toThrow(refusal);
    }
  });

  test("a check with the state knows the id of the state before anything is created", async () => {
    const created = async (oldOutputs: Properties | undefined) => {
      await configure();
      await volume.check({ app, sizeGb: 1 }, { olds, ...(oldOutputs ? { oldOutputs } : {}) });
      const other = drive(plugin.client, urnOf("Volume", `other-${String(oldOutputs !== undefined)}`));
      return (await other.create(await other.checked({ app, sizeGb: 1 }))).state["__context"];
    };
    const { stack } = state["__context"] as { stack: string };
    expect(await created(state)).toMatchObject({ stack });
    expect(await created(undefined)).not.toMatchObject({ stack });
  });
});
