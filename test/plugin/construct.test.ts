// The component Release over gRPC: the plugin registers it with the engine's monitor, and answers its outputs and the record
// for the next stack.
import { createHash } from "node:crypto";
import aliasProto from "@pulumi/pulumi/proto/alias_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { startMonitor, type FakeMonitor } from "../support/monitor.ts";
import { startEngine, startPlugin, type FakeEngine, type Plugin } from "../support/plugin.ts";
import { fromStruct, Output, Reference, secret, toStruct, unknown, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";
const of = (digit: string): string => `sha256:${digit.repeat(64)}`;
const hashOf = (settings: Readonly<Record<string, string>>): string =>
  createHash("sha256")
    .update(JSON.stringify(Object.entries(settings).sort()))
    .digest("hex");
const settings = { LOG_FORMAT: "json" };
const urn = (type: string, name: string): string => `urn:pulumi:dev::shop::machines:index:${type}::${name}`;

describe("a Release", () => {
  let service: TestService;
  let engine: FakeEngine;
  let plugin: Plugin;
  let monitor: FakeMonitor;
  /** A Machine of the previous stack, and the record that this stack exports. */
  let id = "";
  let from: Properties = {};

  beforeAll(async () => {
    service = await startService();
    engine = await startEngine();
    plugin = await startPlugin({ args: [engine.address] });
    const args = toStruct({ endpoint: service.url, token: service.token, retries: 0 });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await makeApp(service, "app");
    const machine = await makeMachine(service, "app", { region: "ams", config: { image } });
    id = `app/${machine}`;
    const at = `/v1/apps/app/machines/${machine}`;
    await send(service, "GET", `${at}/wait?state=started&timeout=10`);
    const { image_ref: ref } = await send<{ image_ref: { digest: string } }>(service, "GET", at);
    const { digest } = ref;
    from = { image: `${image}@${digest}`, digest, settings, hash: hashOf(settings), stack: "shop/dev", machines: [id] };
  });
  afterAll(async () => {
    await plugin.close();
    engine.close();
    await service.close();
  });
  beforeEach(async () => {
    monitor = await startMonitor();
    return () => monitor.close();
  });

  const request = (inputs: Properties, { dryRun = false, name = "release" } = {}) =>
    new proto.ConstructRequest()
      .setProject("shop")
      .setStack("dev")
      .setType("machines:index:Release")
      .setName(name)
      .setMonitorendpoint(monitor.address)
      .setDryrun(dryRun)
      .setInputs(toStruct(inputs));
  const construct = async (inputs: Properties, options: { dryRun?: boolean; name?: string } = {}) => {
    const response = await plugin.client.construct(request(inputs, options));
    const state = response.getState();
    const found = state ? fromStruct(state, { unknowns: options.dryRun === true }) : {};
    expect(monitor.outputs.get(response.getUrn()), "the state of the engine").toEqual(found);
    const dependencies = Object.fromEntries(
      [...response.getStatedependenciesMap().entries()].map(([output, list]) => [output, list.getUrnsList()]),
    ) as Record<string, string[]>;
    return { urn: response.getUrn(), state: found, dependencies };
  };
  const runBy = async (machines: unknown, { dryRun = false, self = urn("Release", "release") } = {}) => {
    const args = toStruct({ __self__: new Reference(self), machines });
    const response = await plugin.client.call(
      new proto.CallRequest()
        .setTok("machines:index:Release/runBy")
        .setArgs(args)
        .setProject("shop")
        .setStack("dev")
        .setDryrun(dryRun)
        .setMonitorendpoint(monitor.address),
    );
    const result = response.getReturn();
    const release = result ? fromStruct(result, { unknowns: dryRun })["release"] : undefined;
    return { release, dependencies: response.getReturndependenciesMap().get("release")?.getUrnsList() };
  };
  /** A Machine of this stack in the run, with the digest of its image. */
  const runs = (name: string, digest: unknown, machineId: string = id): Reference => {
    const state: Properties = digest === undefined ? {} : { imageRef: { digest } };
    monitor.resources.set(urn("Machine", name), { id: machineId, state });
    return new Reference(urn("Machine", name), machineId);
  };

  describe("that begins in this stack", () => {
    test("a release that begins in this stack has its image and settings, and no digest yet", async () => {
      expect((await construct({ image, settings })).state).toEqual({
        image,
        digest: "",
        settings,
        hash: hashOf(settings),
      });
    });

    test("a release that begins in this stack has unknown outputs in a preview if an input is unknown", async () => {
      const { state } = await construct({ image: unknown(), settings }, { dryRun: true });
      expect(state).toEqual({ image: unknown(), digest: "", settings, hash: hashOf(settings) });
      const other = await construct({ image, settings: { LOG_FORMAT: unknown() } }, { dryRun: true });
      expect(other.state).toEqual({ image, digest: "", settings: unknown(), hash: unknown() });
    });

    test("a release that begins in this stack keeps secrets secret", async () => {
      const { state } = await construct({ image, settings: { LOG_FORMAT: secret("json") } });
      expect(state).toEqual({ image, digest: "", settings: secret(settings), hash: secret(hashOf(settings)) });
    });

    test("a release that begins in this stack depends on what its inputs depend on", async () => {
      const [a, b] = [urn("App", "a"), urn("App", "b")];
      const { state, dependencies } = await construct({
        image: new Output(image, { dependencies: [a] }),
        settings: { LOG_FORMAT: new Output("json", { dependencies: [b] }) },
      });
      expect(state).toMatchObject({ image, settings });
      expect(dependencies).toMatchObject({ image: [a], digest: [], settings: [b], hash: [b] });
    });
  });

  describe("that is adopted", () => {
    const digestOfOther = of("b");
    const pinned = (more: Properties = {}): Properties => ({ ...from, promotedBy: "alice", ...more });

    test("an adopted release has what the previous stack runs, as long as that is healthy", async () => {
      const { image, digest, hash } = from;
      expect((await construct({ from })).state).toEqual({ image, digest, settings, hash });
      await expect(
        construct({ from: { ...from, image: `x@${digestOfOther}`, digest: digestOfOther } }),
      ).rejects.toThrow(
        `shop/dev does not run its release in a healthy state now: ${id} runs ${String(digest)}, not ${digestOfOther}`,
      );
    });

    test("an adopted release is the pinned one without reading the previous stack, unless that is pending", async () => {
      const before = service.requests.length;
      const { state } = await construct({ from: { nothing: true }, pinned: pinned() });
      expect(state).toMatchObject({ digest: from["digest"], promotedBy: "alice" });
      expect(service.requests.length).toBe(before);
      await expect(
        construct({ from, pinned: pinned({ pending: true, hash: hashOf({}), settings: {} }) }),
      ).rejects.toThrow("pinned differs from the release that shop/dev runs");
    });

    test("an adopted release is unknown in a preview while it is not known which one it is", async () => {
      const nothing = { image: unknown(), digest: unknown(), settings: unknown(), hash: unknown() };
      const before = service.requests.length;
      expect((await construct({ from: unknown() }, { dryRun: true })).state).toEqual(nothing);
      expect((await construct({ from, pinned: unknown() }, { dryRun: true })).state).toMatchObject({
        ...nothing,
        promotedBy: unknown(),
      });
      const source = { token: secret(unknown()) };
      expect((await construct({ from, source }, { dryRun: true })).state).toEqual(nothing);
      expect(service.requests.length).toBe(before);
      await expect
        .poll(() => engine.logs.filter(({ severity }) => severity === "warning"))
        .toEqual([
          expect.objectContaining({
            urn: urn("Release", "release"),
            message: expect.stringContaining("source is not known yet") as string,
          }),
        ]);
    });

    test("an adopted release is read with the token of the source, which makes nothing secret and is not shown", async () => {
      const { state } = await construct({ from, source: { token: secret(service.token) } });
      expect(state["digest"]).toBe(from["digest"]);
      const refused = construct({ from, source: { token: secret("a-token-of-nobody") } });
      await expect(refused).rejects.toThrow(/cannot be read: .*401/);
      await expect(refused).rejects.not.toThrow("a-token-of-nobody");
      await expect(construct({ from, source: { token: "" } })).rejects.toThrow("source has no token");
    });

    test("an adopted release is secret if the record is", async () => {
      const { digest } = from;
      expect((await construct({ from: secret(from) })).state).toMatchObject({ digest: secret(digest) });
      // What is pinned alone decides.
      expect((await construct({ from: secret(from), pinned: pinned() })).state).toMatchObject({ digest });
    });
  });

  describe("is registered", () => {
    test("a Release is registered with the options of the program, without its inputs", async () => {
      const alias = new aliasProto.Alias().setUrn(urn("Release", "old"));
      const asked = request({ from, source: { token: secret(service.token) } })
        .setParent("urn:pulumi:dev::shop::my:index:Component::parent")
        .setProtect(true)
        .setRetainondelete(true)
        .setAliasesList([alias])
        .setDependenciesList([urn("App", "app")]);
      asked.getProvidersMap().set("machines", "urn:pulumi:dev::shop::pulumi:providers:machines::mine::1234");
      await plugin.client.construct(asked);
      const [made] = monitor.registered;
      expect(made?.toObject()).toMatchObject({
        type: "machines:index:Release",
        name: "release",
        parent: "urn:pulumi:dev::shop::my:index:Component::parent",
        custom: false,
        remote: false,
        protect: true,
        retainondelete: true,
        aliasesList: [{ urn: urn("Release", "old") }],
        dependenciesList: [urn("App", "app")],
        providersMap: [["machines", "urn:pulumi:dev::shop::pulumi:providers:machines::mine::1234"]],
        object: { fieldsMap: [] },
      });
    });

    test("a Release is registered beside others at the same time", async () => {
      monitor.close();
      const arrived: (() => void)[] = [];
      // Each registration waits for all of them.
      monitor = await startMonitor(
        () =>
          new Promise((resolve) => {
            arrived.push(resolve);
            if (arrived.length === 3) for (const go of arrived) go();
          }),
      );
      const names = ["one", "two", "three"];
      const made = await Promise.all(names.map((name) => construct({ image: `${image}.${name}` }, { name })));
      expect(made.map(({ state }) => state["image"])).toEqual(names.map((name) => `${image}.${name}`));
      expect(made.map(({ urn }) => urn)).toEqual(names.map((name) => urn("Release", name)));
    });
  });

  test("a Release is refused with inputs that cannot be used, before it is registered", async () => {
    for (const [inputs, message] of [
      [{ imgae: image }, "imgae: there is no such property; did you mean image?"],
      [{ image: 5 }, "image: got 5; must be a string"],
      [{ image, settings: { A: 5 } }, "settings.A: got 5"],
      [
        { image, source: { token: "x", endpiont: "y" } },
        "source.endpiont: there is no such property; did you mean endpoint?",
      ],
    ] as const)
      await expect(construct(inputs), message).rejects.toThrow(message);
    expect(monitor.registered).toEqual([]);
    for (const [inputs, message] of [
      [{}, "takes either image, in the first stack, or from"],
      [{ image, from }, "takes either image, in the first stack, or from"],
      [{ from, settings }, "settings come from the adopted release"],
      [{ from: null }, "from does not exist yet"],
    ] as const)
      await expect(construct(inputs), message).rejects.toThrow(`the release cannot be used: ${message}`);
    await expect(plugin.client.construct(request({}).setType("machines:index:Relaese"))).rejects.toThrow(
      'there is no component "machines:index:Relaese" in this version; did you mean Release?',
    );
  });

  describe("has a record of what runs it", () => {
    test("with the digest that the Machines report, in the stack where it begins", async () => {
      await construct({ image, settings });
      const web = runs("web", of("a"));
      expect(await runBy([web])).toEqual({
        release: {
          image: `${image}@${of("a")}`,
          digest: of("a"),
          settings,
          hash: hashOf(settings),
          stack: "shop/dev",
          machines: [id],
        },
        dependencies: [urn("Release", "release"), urn("Machine", "web")],
      });
    });

    test("the record of a Release may be of fleets whose canaries wait", async () => {
      await construct({ image });
      const fleet = new Reference(urn("Fleet", "fleet"), "app/fleet");
      const machines = [
        { id: "app/1", digest: of("a"), version: "01" },
        { id: "app/2", digest: of("b"), version: "02" },
      ];
      const set = (rollout: string) =>
        monitor.resources.set(urn("Fleet", "fleet"), { id: "app/fleet", state: { machines, rollout } });
      set("canary");
      expect((await runBy([fleet])).release).toMatchObject({ digest: of("b"), machines: ["app/1", "app/2"] });
      set("complete");
      await expect(runBy([fleet])).rejects.toThrow(
        `Release release: the release cannot be used: its Machines do not run one image: app/1 runs ${of("a")}, app/2 runs ${of("b")}`,
      );
    });

    test("the record of a Release is unknown in a preview while an image or an id is", async () => {
      await construct({ image }, { dryRun: true });
      for (const machine of [runs("web", unknown()), runs("web", undefined), runs("web", of("a"), "")])
        expect((await runBy([machine], { dryRun: true })).release).toEqual(unknown());
      expect((await runBy(unknown(), { dryRun: true })).release).toEqual(unknown());
      expect((await runBy([unknown()], { dryRun: true })).release).toEqual(unknown());
      expect((await runBy([runs("web", of("a"))], { dryRun: true })).release).toMatchObject({ digest: of("a") });
      // A fleet without Machines that wait for traffic.
      const machines = [{ id: "app/1", digest: of("a"), version: "01" }];
      const fleet = (state: Properties) => monitor.resources.set(urn("Fleet", "fleet"), { id: "app/fleet", state });
      const reference = new Reference(urn("Fleet", "fleet"), "app/fleet");
      fleet({ machines, rollout: "complete" });
      expect((await runBy([reference], { dryRun: true })).release).toMatchObject({ digest: of("a") });
      fleet({ rollout: "complete" });
      expect((await runBy([reference], { dryRun: true })).release).toEqual(unknown());
      await construct({ image: unknown() }, { dryRun: true });
      expect((await runBy([runs("web", of("a"))], { dryRun: true })).release).toEqual(unknown());
    });

    test("the record of a Release is secret if a setting is", async () => {
      await construct({ image, settings: { LOG_FORMAT: secret("json") } });
      expect((await runBy([runs("web", of("a"))])).release).toEqual(secret(expect.objectContaining({ settings })));
    });

    test("the record of a Release is made only if the Machines run it", async () => {
      await construct({ from });
      await expect(runBy([runs("web", of("b"))])).rejects.toThrow(
        `its Machines do not run one image: ${id} runs ${of("b")}; wanted is ${String(from["digest"])}`,
      );
      await expect(runBy([])).rejects.toThrow("runBy needs the Machines that run the release");
    });

    test("the record of a Release is made only of Machines and fleets", async () => {
      await construct({ image });
      await expect(runBy([id])).rejects.toThrow("machines[0]: got a string; it must be a Machine or a Fleet itself");
      monitor.resources.set(urn("App", "app"), { id: "app", state: {} });
      await expect(runBy([runs("web", of("a")), new Reference(urn("App", "app"), "app")])).rejects.toThrow(
        "machines[1]: got a App; it must be a Machine or a Fleet itself",
      );
      await expect(runBy("web")).rejects.toThrow("machines: got ");
    });
  });

  test("a Release has no other method", async () => {
    const call = new proto.CallRequest().setTok("machines:index:Release/runBye").setArgs(toStruct({}));
    await expect(plugin.client.call(call.setMonitorendpoint(monitor.address))).rejects.toThrow(
      'there is no method "machines:index:Release/runBye" in this version; did you mean runBy?',
    );
  });
});
