// Two runs of the engine in one process of the plugin: the second one knows nothing that only the first one may know.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp } from "../support/around.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { toStruct } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

describe("a process that serves two runs", () => {
  let service: TestService;
  let plugin: Plugin;
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });
  const begin = (): Promise<unknown> =>
    plugin.client.configure(
      new proto.ConfigureRequest().setArgs(toStruct({ endpoint: service.url, token: service.token })),
    );
  const app = () => drive(plugin.client, urnOf("App", "shop"));
  const volume = () => drive(plugin.client, urnOf("Volume", "data"));

  test("a process that serves two runs proves again that an App is deleted which the earlier run has deleted (R8)", async () => {
    await makeApp(service, "shop");
    const lost = { state: { app: "shop", volumeId: "vol_1", name: "data" } };
    await begin();
    await app().delete({ id: "shop", state: { name: "shop" } });
    // What was in an App is gone with it.
    expect(await volume().read("shop/vol_1", lost)).toBeUndefined();
    await begin();
    await expect(volume().read("shop/vol_1", lost)).rejects.toThrow(/neither App shop nor any other App of this run/);
  });
});
