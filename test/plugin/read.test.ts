// Read over gRPC: a refresh passes state and inputs, a get empty properties, an import only the id.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { toStruct } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";

describe("read", () => {
  let service: TestService;
  let plugin: Plugin;
  let machine: Driver;
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    machine = drive(plugin.client, urnOf("Machine", "web"));
    const args = toStruct({ endpoint: service.url, token: service.token });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await makeApp(service, "app");
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });

  const made = async () => {
    const inputs = await machine.checked({ app: "app", region: "ams", waitForChecks: false, config: { image } });
    return { inputs, ...(await machine.create(inputs)) };
  };
  const destroy = async (id: string) => {
    const path = `/v1/apps/app/machines/${id.split("/")[1] ?? ""}`;
    await send(service, "DELETE", `${path}?force=true`);
    await send(service, "GET", `${path}/wait?state=destroyed`);
  };

  test("a refresh without drift returns its input unchanged, including behaviour inputs", async () => {
    const { id, inputs, state } = await made();
    expect(await machine.read(id, { state, inputs })).toEqual({ id, state, inputs });
  });

  test("a refresh of a missing object returns no id, which the engine treats as a deletion", async () => {
    const { id, inputs, state } = await made();
    await destroy(id);
    const request = new proto.ReadRequest().setId(id).setUrn(machine.urn);
    const response = await plugin.client.read(request.setProperties(toStruct(state)).setInputs(toStruct(inputs)));
    expect(response.toObject()).toMatchObject({ id: "", properties: undefined, inputs: undefined });
  });

  test("an import and a get return the same, with a state", async () => {
    const { id, state } = await made();
    const imported = await machine.read(id);
    expect(imported).toEqual(await machine.read(id, { state: {}, inputs: {} }));
    expect(imported).toMatchObject({
      id,
      state: { machineId: state["machineId"], version: state["version"], state: "started" },
      inputs: { app: "app", region: "ams", name: state["name"], config: { image } },
    });
    for (const name of ["state", "cordoned", "waitForChecks", "forceDestroy", "__context"])
      expect(imported?.inputs).not.toHaveProperty(name);
  });

  test("the error for importing or getting a missing object shows the form of the id", async () => {
    const { id } = await made();
    await destroy(id);
    for (const known of [{}, { state: {}, inputs: {} }]) {
      await expect(machine.read(id, known)).rejects.toThrow(
        `there is no Machine "${id}"; its id has the form <app>/<machineId>`,
      );
      await expect(machine.read("no-app/no-machine", known)).rejects.toThrow(
        /there is no Machine "no-app\/no-machine"/,
      );
    }
    const app = drive(plugin.client, urnOf("App", "none"));
    await expect(app.read("none")).rejects.toThrow('there is no App "none"; its id has the form <name>');
    const volume = drive(plugin.client, urnOf("Volume", "none"));
    await expect(volume.read("app/vol_none")).rejects.toThrow(/there is no Volume .*<app>\/<volumeId>/);
  });

  test("an id of another form is refused with the right form, before anything is sent", async () => {
    const before = service.requests.length;
    for (const id of ["web", "app/", "app/a/b", "app/../x", " /%2e", ""])
      await expect(machine.read(id)).rejects.toThrow(/is no id of this resource; it has the form <app>\/<machineId>/);
    expect(service.requests.length).toBe(before);
  });

  test("an invalid answer of the service is never treated as absence (R8)", async () => {
    const { id, inputs, state } = await made();
    for (const known of [{}, { state, inputs }]) {
      service.fail({ operation: "machines.list", when: "before", status: 401, body: { error: "no" } });
      await expect(machine.read(id, known)).rejects.toThrow(/answered 401/);
    }
  });

  test("drift is in state and inputs, values that the program omits only in the state", async () => {
    const { id, inputs, state } = await made();
    const path = `/v1/apps/app/machines/${id.split("/")[1] ?? ""}`;
    await send(service, "POST", path, { config: { image, env: { A: "drifted" } } });
    await send(service, "POST", `${path}/stop`);
    await send(service, "GET", `${path}/wait?state=stopped`);
    const found = await machine.read(id, { state, inputs });
    expect(found?.inputs).toEqual({ ...inputs, config: { image, env: { A: "drifted" } } });
    expect(found?.state).toMatchObject({ state: "stopped", config: { image, env: { A: "drifted" } } });
    expect(await machine.diff({ id, oldInputs: found?.inputs ?? {}, state: found?.state ?? {}, inputs })).toMatchObject(
      { detailed: { "config.env": "delete" } },
    );
  });
});
