// Which state a resource belongs to: names are not sufficient, because stacks of two backends may have the same ones (F45).
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerOf } from "../../provider/core/owner.ts";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startEngine, startPlugin, type FakeEngine, type Plugin } from "../support/plugin.ts";
import { toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/web:1" };
/** The provider's URN as `pulumi do` gives it. */
const ofDo = "urn:pulumi:dev::default::pulumi:providers:machines::";

interface Live {
  readonly id: string;
  readonly config: { readonly metadata: Readonly<Record<string, string>> };
}

describe("the state of a resource", () => {
  let service: TestService;
  let engine: FakeEngine;
  /** One computer for all the runs of a test. */
  let home: string;
  const plugins: Plugin[] = [];
  beforeEach(async () => {
    service = await startService();
    engine = await startEngine();
    home = mkdtempSync(join(tmpdir(), "machines-state-"));
    await makeApp(service, "app");
  });
  afterEach(async () => {
    await Promise.all(plugins.splice(0).map((plugin) => plugin.close()));
    engine.close();
    await service.close();
    rmSync(home, { recursive: true });
  });

  /** Another run, in a process of its own; the previous ones have ended. */
  async function nextRun(urn = "urn:pulumi:dev::project::pulumi:providers:machines::default") {
    await Promise.all(plugins.splice(0).map((plugin) => plugin.close()));
    const plugin = await startPlugin({ args: [engine.address], env: { PULUMI_HOME: home } });
    plugins.push(plugin);
    const args = toStruct({ endpoint: service.url, token: service.token });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args).setUrn(urn));
    return (type: string, name: string) => drive(plugin.client, urnOf(type, name));
  }
  type Run = Awaited<ReturnType<typeof nextRun>>;
  const machine = { app: "app", region: "ams", config };
  const made = async (run: Run, type: string, name: string, news: Properties) => {
    const inputs = await run(type, name).checked(news);
    return { inputs, ...(await run(type, name).create(inputs)) };
  };
  const idIn = ({ state }: { state: Properties }) => (state["__context"] as { stack?: string } | undefined)?.stack;
  const tagsOf = async (id: string) => {
    const all = await send<Live[]>(service, "GET", "/v1/apps/app/machines");
    return all.find((one) => `app/${one.id}` === id)?.config.metadata ?? {};
  };
  const warnings = () => engine.logs.filter(({ severity }) => severity === "warning").map(({ message }) => message);
  const notes = () => readdirSync(home, { recursive: true }).filter((name) => String(name).endsWith(".jsonl"));

  test("the state of a resource is identified by an id that all its resources record, and Machines carry as a tag", async () => {
    const first = await nextRun();
    const [volume, web] = [
      await made(first, "Volume", "data", { app: "app", region: "ams" }),
      await made(first, "Machine", "web", machine),
    ];
    const id = idIn(web);
    expect(id).toMatch(/^[0-9a-f]{12}$/);
    expect(idIn(volume)).toBe(id);
    expect(await tagsOf(web.id)).toMatchObject({
      "pulumi-owner": ownerOf(urnOf("Machine", "web")),
      "pulumi-stack": id,
    });
    // The program cannot change it, and a read does not show it as an input.
    const read = await first("Machine", "web").read(web.id, { state: web.state, inputs: web.inputs });
    expect(read).toMatchObject({ state: { __context: { stack: id } } });
    expect(JSON.stringify(read?.inputs)).not.toContain(id);
    expect(JSON.stringify(read?.state["config"])).not.toContain("pulumi-");

    // Existing objects keep the form of a version without ids.
    const { stack: _, ...context } = web.state["__context"] as Record<string, unknown>;
    const older = { ...web.state, __context: context };
    const second = await nextRun();
    const inputs = await second("Machine", "web").checked(machine, web.inputs);
    expect((await second("Machine", "web").diff({ id: web.id, state: older, inputs })).changes).toBe(false);
    const unlike = await made(second, "Machine", "api", machine);
    expect(idIn(unlike)).not.toBe(id);

    const third = await nextRun();
    const same = await third("Volume", "data").checked({ app: "app", region: "ams" }, volume.inputs);
    expect((await third("Volume", "data").diff({ id: volume.id, state: volume.state, inputs: same })).changes).toBe(
      false,
    );
    const worker = await made(third, "Machine", "worker", machine);
    expect(idIn(worker)).toBe(id);
    const next = await third("Machine", "web").checked(
      { ...machine, config: { ...config, env: { A: "1" } } },
      web.inputs,
    );
    const change = { id: web.id, oldInputs: web.inputs, state: older, inputs: next };
    expect(idIn({ state: await third("Machine", "web").update(change) }), "an update notes it").toBe(id);
    expect(await tagsOf(web.id)).toMatchObject({ "pulumi-stack": id });
  });

  test("the state of a resource keeps the inputs of a plan unchanged, because a random id would break the plan", async () => {
    const check = async () => (await nextRun())("Machine", "web").check(machine, { seed: "of the plan" });
    expect(await check()).toEqual(await check());
  });

  test("F45: a resource of the same name in another state does not cause a warning in this one", async () => {
    const ours = await nextRun();
    const volume = await made(ours, "Volume", "data", { app: "app", region: "ams" });
    const web = await made(ours, "Machine", "web", machine);
    await made(await nextRun(), "Machine", "web", machine);
    expect(warnings()).toEqual([]);
    // The state that it was created in, whose engine may not have saved it.
    const again = await nextRun();
    const inputs = await again("Volume", "data").checked({ app: "app", region: "ams" }, volume.inputs);
    await again("Volume", "data").diff({ id: volume.id, state: volume.state, inputs });
    await made(again, "Machine", "web", machine);
    expect(warnings()).toEqual([
      expect.stringContaining(`Machine ${web.id} was created for this resource by an earlier run`),
    ]);
  });

  describe("does not exist with `pulumi do`, whose resources of one type share a URN", () => {
    test("a second create causes no warning, and nothing has an owner", async () => {
      const ids = [];
      for (let count = 0; count < 2; count++) {
        const { id, state } = await made(await nextRun(ofDo), "Machine", "Machine", machine);
        expect(Object.keys(await tagsOf(id))).toEqual(["pulumi-op"]);
        expect(JSON.stringify(state)).not.toContain('"stack"');
        ids.push(id);
      }
      expect(new Set(ids).size).toBe(2);
      expect(warnings()).toEqual([]);
      expect(notes()).toEqual([]);
    });

    test("an interrupted create does not affect the next one, which has other inputs", async () => {
      const cutOff = await nextRun(ofDo);
      service.fail({ operation: "machines.create", when: "after", delayMs: 60_000 });
      const inputs = await cutOff("Machine", "Machine").checked(machine);
      void cutOff("Machine", "Machine")
        .create(inputs)
        .catch(() => undefined);
      const all = () => send<Live[]>(service, "GET", "/v1/apps/app/machines");
      await expect.poll(async () => (await all()).length).toBe(1);
      const [left] = await all();
      plugins[0]?.signal("SIGKILL");
      const { id } = await made(await nextRun(ofDo), "Machine", "Machine", { ...machine, region: "fra" });
      expect((await all()).map((one) => one.id).sort()).toEqual([left?.id, id.slice("app/".length)].sort());
      expect(warnings()).toEqual([]);
    });
  });
});
