// The features that plugin and engine negotiate first, and those that this plugin lacks.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";
import struct from "google-protobuf/google/protobuf/struct_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp } from "../support/around.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { toStruct } from "../support/properties.ts";
import { startService } from "../support/startService.ts";

const schemaFile = join(__dirname, "../../provider/dist/schema.json");

describe("handshake", () => {
  let plugin: Plugin;
  beforeAll(async () => (plugin = await startPlugin()));
  afterAll(() => plugin.close());

  test("secrets, outputs and autonaming are accepted; references arrive as ids, byte strings not at all", async () => {
    const response = await plugin.client.handshake(
      new proto.ProviderHandshakeRequest().setEngineAddress("127.0.0.1:1"),
    );
    expect(response.toObject()).toMatchObject({
      acceptSecrets: true,
      acceptOutputs: true,
      supportsAutonamingConfiguration: true,
      acceptResources: false,
      acceptsByteString: false,
      acceptsOutputsInInvoke: false,
    });
  });

  test("an answer depends on its arguments, if the engine takes outputs in answers", async () => {
    const service = await startService();
    const fresh = await startPlugin();
    try {
      const request = new proto.ProviderHandshakeRequest().setEngineAddress("127.0.0.1:1");
      const answer = await fresh.client.handshake(request.setAcceptsOutputsInInvoke(true));
      expect(answer.getAcceptsOutputsInInvoke()).toBe(true);
      const configuration = toStruct({ endpoint: service.url, token: service.token });
      await fresh.client.configure(new proto.ConfigureRequest().setArgs(configuration));
      await makeApp(service, "answers");
      const urn = urnOf("App", "answers");
      const signature = "4dabf18193072939515e22adb298388d";
      const output = { [signature]: "d0e6a833031e9bbcd3f4e8bde6ca49a4", value: "answers", dependencies: [urn] };
      const ask = async (name: unknown): Promise<unknown> => {
        const args = struct.Struct.fromJavaScript({ name } as never);
        const asked = new proto.InvokeRequest().setTok("machines:index:getApp").setArgs(args);
        return (await fresh.client.invoke(asked)).getReturn()?.toJavaScript();
      };
      expect(await ask(output)).toMatchObject({ name: output, appId: { ...output, value: expect.any(String) } });
      expect(await ask("answers")).toMatchObject({ name: "answers", appId: expect.any(String) });
      expect(await ask({ ...output, secret: true })).toMatchObject({ name: { ...output, secret: true } });
    } finally {
      await fresh.close();
      await service.close();
    }
  });

  test("an engine without a handshake gets the same answers from configure, including for previews", async () => {
    const args = toStruct({ endpoint: "http://127.0.0.1:1", token: "t" });
    const response = await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    expect(response.toObject()).toMatchObject({
      acceptsecrets: true,
      acceptoutputs: true,
      supportspreview: true,
      supportsAutonamingConfiguration: true,
      acceptresources: false,
    });
  });

  test("the schema is returned for version 0, other versions are refused", async () => {
    const response = await plugin.client.getSchema(new proto.GetSchemaRequest().setVersion(0));
    expect(response.getSchema()).toBe(readFileSync(schemaFile, "utf8"));
    await expect(plugin.client.getSchema(new proto.GetSchemaRequest().setVersion(1))).rejects.toThrow(
      /there is no version 1 of the package schema; ask for 0/,
    );
  });

  test("the plugin's version matches the schema's", async () => {
    const { version } = JSON.parse(readFileSync(schemaFile, "utf8")) as { version: string };
    expect((await plugin.client.getPluginInfo(new empty.Empty())).getVersion()).toBe(version);
  });

  test("an unknown function is named, with a suggestion", async () => {
    await expect(plugin.client.invoke(new proto.InvokeRequest().setTok("machines:index:getRegion"))).rejects.toThrow(
      /there is no function "machines:index:getRegion" in this version; did you mean machines:index:getRegions\?/,
    );
  });

  test("an unknown type is named, with a suggestion", async () => {
    for (const [type, message] of [
      ["Machin", /no resource type "machines:index:Machin" in this version; did you mean machines:index:Machine\?/],
      ["machines:index/machine:Machine", /no resource type "machines:index\/machine:Machine"/],
      ["constructor", /no resource type "machines:index:constructor"/],
    ] as const) {
      const resource = drive(plugin.client, urnOf(type, "x"));
      await expect(resource.create({})).rejects.toThrow(message);
      await expect(resource.check({})).rejects.toThrow(message);
    }
  });

  test("the type of a child is the last type in its URN", async () => {
    const child = drive(plugin.client, "urn:pulumi:dev::project::my:index:Site$machines:index:Volume::a::b");
    expect((await child.check({ app: "web" })).inputs).toMatchObject({ name: "a_b" });
  });

  test.each(["getMapping", "getMappings", "parameterize"] as const)(
    "%s is not implemented, and returns the status that the engine understands",
    async (method) => {
      const { client } = plugin;
      const calls = {
        getMapping: () => client.getMapping(new proto.GetMappingRequest()),
        getMappings: () => client.getMappings(new proto.GetMappingsRequest()),
        parameterize: () => client.parameterize(new proto.ParameterizeRequest()),
      };
      await expect(calls[method]()).rejects.toMatchObject({ code: grpc.status.UNIMPLEMENTED });
    },
  );
});
