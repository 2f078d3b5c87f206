// Replacements, which the plugin sees as separate calls: a check with the old inputs, a check without, a create and a
// delete.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeApp } from "../support/around.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

describe("replacement", () => {
  let service: TestService;
  let plugin: Plugin;
  beforeEach(async () => {
    service = await startService();
    plugin = await started();
    await makeApp(service, "app");
  });
  afterEach(async () => {
    await plugin.close();
    await service.close();
  });

  const started = async (): Promise<Plugin> => {
    const fresh = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: service.token });
    await fresh.client.configure(new proto.ConfigureRequest().setArgs(args));
    return fresh;
  };
  /** Another run of the engine: a process without memory of the previous one. */
  const nextRun = async (): Promise<void> => {
    await plugin.close();
    plugin = await started();
  };
  const of = (type: string, name = "data"): Driver => drive(plugin.client, urnOf(type, name));
  const made = async (type: string, news: Properties) => {
    const inputs = await of(type).checked(news);
    const found = { inputs, ...(await of(type).create(inputs)) };
    await nextRun();
    return found;
  };

  test("a volume whose inputs do not require replacement is neither recreated nor deleted silently (R9)", async () => {
    const news = { app: "app", region: "ams" };
    const { id, inputs, state } = await made("Volume", news);
    await of("Volume").checked(news, inputs);
    // The engine then replaces it, because its provider or its App is replaced.
    const replacement = await of("Volume").checked(news);
    const before = service.requests.length;
    for (const work of [
      of("Volume").previewCreate(replacement),
      of("Volume").create(replacement),
      of("Volume").delete({ id, state, inputs }),
    ])
      await expect(work).rejects.toThrow(
        /is guarded: the program still declares it, and replacing it .* would destroy its data.*undo-replacement.*set allowDataLoss: true/,
      );
    expect(service.requests.length).toBe(before);
  });

  test("an imported volume that is replaced by force is not deleted", async () => {
    const news = { app: "app", region: "ams" };
    const { id } = await made("Volume", news);
    const imported = await of("Volume").read(id);
    if (imported === undefined) throw new Error("the volume is not there");
    await nextRun();
    // With --replace, the engine checks the replacement alone, and asks for no diff.
    await of("Volume").create(await of("Volume").checked(news));
    await expect(of("Volume").delete({ id, state: imported.state })).rejects.toThrow(
      /is guarded: the program still declares it/,
    );
  });

  test("once the program allows the loss, it is replaced", async () => {
    const { id, inputs, state } = await made("Volume", { app: "app", region: "ams" });
    const news = { app: "app", region: "ams", allowDataLoss: true };
    await of("Volume").checked(news, inputs);
    const replacement = await of("Volume").create(await of("Volume").checked(news));
    expect(replacement.id).not.toBe(id);
    await of("Volume").delete({ id, state, inputs });
    expect(await of("Volume").read(id, { state, inputs })).toBeUndefined();
  });

  test("a protected cluster is not replaced by force, and only deleted once its state allows it (R9)", async () => {
    const news = { region: "fra", plan: "basic" };
    const type = "PostgresCluster";
    const { id, inputs, state } = await made(type, news);
    await of(type).checked(news, inputs);
    await expect(of(type).create(await of(type).checked(news))).rejects.toThrow(
      /is guarded: .* would destroy all its databases.*set deletionProtection: false/,
    );
    await nextRun();
    await expect(of(type).delete({ id, state, inputs })).rejects.toThrow(/is protected: .*deletionProtection: false/);
    // The program's current inputs allow its replacement: the old one is deleted, whatever its state says.
    const allowed = { ...news, plan: "launch", deletionProtection: false };
    await of(type).checked(allowed, inputs);
    expect((await of(type).create(await of(type).checked(allowed))).id).not.toBe(id);
    await of(type).delete({ id, state, inputs });
    expect(await of(type).read(id, { state, inputs })).toBeUndefined();
  });

  test("a replacement that the user has undone is deleted, and nothing else of the resource", async () => {
    const news = { app: "app", region: "ams" };
    const original = await made("Volume", news);
    const replacement = await made("Volume", news);
    await of("Volume").checked(news, original.inputs);
    const { id, inputs, state } = replacement;
    await expect(of("Volume").delete({ id, state, inputs })).rejects.toThrow(/is guarded/);
    await of("Volume").delete({ id, state: { ...state, __context: { discard: true } }, inputs });
    expect(await of("Volume").read(id, { state, inputs })).toBeUndefined();
    await expect(of("Volume").delete(original)).rejects.toThrow(/is guarded/);
    expect(await of("Volume").read(original.id, original)).toBeDefined();
  });

  test("an undone cluster replacement is also deleted with the whole stack; a program cannot claim this itself", async () => {
    const news = { region: "fra", plan: "basic" };
    const type = "PostgresCluster";
    const { id, state } = await made(type, news);
    const inputs = await of(type).checked({ ...news, __context: { discard: true } });
    expect(inputs["__context"] ?? {}).not.toHaveProperty("discard");
    await nextRun();
    await of(type).delete({ id, state: { ...state, __context: { discard: true } }, inputs });
    expect(await of(type).read(id, { state, inputs })).toBeUndefined();
  });

  test("a resource removed from the program is deleted as it allows", async () => {
    const { id, inputs, state } = await made("Volume", { app: "app", region: "ams" });
    await of("Volume", "another").checked({ app: "app" });
    await of("Volume").delete({ id, state, inputs });
    expect(await of("Volume").read(id, { state, inputs })).toBeUndefined();
  });

  test("the fixed name of a replaced resource counts as free, because that is deleted first (R4)", async () => {
    const { inputs, state } = await made("App", { name: "fixed", network: "blue" });
    const news = { name: "fixed", network: "green" };
    const next = await of("App").checked(news, inputs);
    expect(await of("App").diff({ oldInputs: inputs, state, inputs: next })).toMatchObject({
      replaces: ["network"],
      deleteBeforeReplace: true,
    });
    const replacement = await of("App").checked(news);
    expect((await of("App").previewCreate(replacement)).id).toBe("fixed");
    // For another resource it is taken.
    await expect(of("App", "other").previewCreate(replacement)).rejects.toThrow(/name: the name "fixed" is taken/);
  });
});
