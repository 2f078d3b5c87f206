// What the program calls a secret is one in everything the plugin answers, wherever it stands and wherever it went.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startPlugin, unfinishedIn, type Plugin } from "../support/plugin.ts";
import { clearText, Output, revealed, secret, toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";
const canary = /canary/;
const contents = (text: string): string => Buffer.from(text).toString("base64");
/** As far as a file's contents show in base64. */
const inFile = contents("canary of a file");

describe("secrets", () => {
  let service: TestService;
  let plugin: Plugin;
  let count = 0;
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: secret(service.token) });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await makeApp(service, "app");
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });

  const fresh = (): Driver => drive(plugin.client, urnOf("Machine", `secret-${++count}`));
  const at = (id: string, rest = "") => `/v1/apps/app/machines/${id.split("/")[1] ?? ""}${rest}`;
  const made = async (config: Properties) => {
    const machine = fresh();
    const inputs = await machine.checked({ app: "app", region: "ams", config: { image, ...config } });
    return { machine, inputs, ...(await machine.create(inputs)) };
  };
  /** Runs a Machine's whole life with a configuration, and looks at everything that comes back. */
  const life = async (config: Properties, shows: (answered: Properties) => void) => {
    const { machine, inputs, id, state } = await made(config);
    shows(inputs);
    shows((await machine.previewCreate(inputs)).state);
    shows(state);
    const found = await machine.read(id, { state, inputs });
    expect(found?.state).toEqual(state);
    expect(found?.inputs).toEqual(inputs);
    const wanted = { app: "app", region: "ams", config: { image, ...config, init: { tty: true } } };
    const next = await machine.checked(wanted, inputs);
    shows(next);
    const change = { id, oldInputs: inputs, state, inputs: next };
    expect((await machine.diff(change)).detailed).toEqual({ "config.init": "add" });
    shows(await machine.previewUpdate(change));
    const after = await machine.update(change);
    shows(after);
    expect(await machine.diff({ ...change, oldInputs: next, state: after })).toMatchObject({ changes: false });
  };

  test("an output that repeats a secret input is one too", async () => {
    const machine = fresh();
    const inputs = await machine.checked({ app: "app", config: { image: secret("registry.example.com/canary:9") } });
    const { id, state } = await machine.create(inputs);
    expect(clearText(state)).not.toMatch(canary);
    expect(clearText((await machine.read(id, { state, inputs }))?.state ?? {})).not.toMatch(canary);
  });

  test.each<[string, Properties]>([
    ["a value of a map", { env: { A: secret("canary"), B: "clear" } }],
    ["a whole map", { env: secret({ A: "canary" }) }],
    [
      "in a list's item",
      {
        files: [
          { guestPath: "/a", rawValue: contents("clear") },
          { guestPath: "/b", rawValue: secret(inFile) },
        ],
      },
    ],
    [
      "a list's item",
      { files: [{ guestPath: "/a", rawValue: contents("clear") }, secret({ guestPath: "/b", rawValue: inFile })] },
    ],
    ["a whole list", { files: secret([{ guestPath: "/b", rawValue: inFile }]) }],
    [
      "deep in lists",
      { services: [{ protocol: "tcp", internalPort: 80, checks: [{ type: "tcp", path: secret("/canary") }] }] },
    ],
    ["a secret in a secret", { env: secret({ A: secret("canary") }) }],
  ])("%s is kept through a whole life", async (_where, config) => {
    await life(config, (answered) => {
      expect(clearText(answered)).not.toMatch(canary);
      expect(clearText(answered)).not.toContain(inFile);
      expect(
        revealed((answered["config"] as Properties)["env"] ?? (answered["config"] as Properties)["files"]),
      ).toEqual(revealed(config["env"] ?? config["files"]));
    });
  });

  test("the configuration as a whole, and a secret the engine sent as an output", async () => {
    const machine = fresh();
    const whole = await machine.checked({ app: "app", config: secret({ image, env: { A: "canary" } }) });
    const { state } = await machine.create(whole);
    for (const answered of [whole, state]) expect(clearText(answered)).not.toMatch(canary);
    const output = new Output("canary", { secret: true, dependencies: ["urn:a", "urn:b"] });
    const plain = new Output("clear", { dependencies: ["urn:c"] });
    const inputs = await machine.checked({ app: "app", config: { image, env: { A: output, B: plain } } });
    expect(inputs["config"]).toEqual({ image, env: { A: output, B: plain } });
    expect(clearText((await fresh().create(inputs)).state)).not.toMatch(canary);
  });

  test("an App's name and network", async () => {
    const app = drive(plugin.client, urnOf("App", "secret"));
    const inputs = await app.checked({ name: "secret-app", network: secret("canary") });
    const { id, state } = await app.create(inputs);
    const found = await app.read(id, { state, inputs });
    for (const answered of [inputs, state, found?.state, found?.inputs])
      expect(answered).toMatchObject({ name: "secret-app", network: secret("canary") });
    const next = await app.checked({ name: "secret-app", network: secret("canary"), forceDestroy: true }, inputs);
    expect(await app.update({ id, oldInputs: inputs, state, inputs: next })).toMatchObject({
      network: secret("canary"),
    });
  });

  test("what a program no longer says, and the state still has, stays one", async () => {
    const app = drive(plugin.client, urnOf("App", "said"));
    const olds = await app.checked({ name: secret("canary-app"), network: "n" });
    const { id, state } = await app.create(olds);
    const next = await app.checked({ network: "n", forceDestroy: true }, olds);
    expect(clearText(next)).not.toMatch(canary);
    expect(clearText(await app.update({ id, oldInputs: olds, state, inputs: next }))).not.toMatch(canary);
  });

  describe("in a list whose items moved", () => {
    const clear = { guestPath: "/clear", rawValue: contents("clear") };
    const hidden = { guestPath: "/hidden", rawValue: secret(inFile) };
    const onTheWire = [
      { guest_path: "/new", raw_value: contents("new") },
      { guest_path: "/hidden", raw_value: inFile },
      { guest_path: "/clear", raw_value: contents("clear") },
    ];

    test("in the program: the marks go with them", async () => {
      const { machine, inputs, id, state } = await made({ files: [clear, hidden] });
      const next = await machine.checked(
        { app: "app", region: "ams", config: { image, files: [hidden, clear] } },
        inputs,
      );
      const after = await machine.update({ id, oldInputs: inputs, state, inputs: next });
      for (const answered of [next, after]) {
        expect(answered["config"]).toEqual({ image, files: [hidden, clear] });
      }
    });

    test("outside of it: a refresh shows none of them in the clear", async () => {
      const { machine, inputs, id, state } = await made({ files: [clear, hidden] });
      await send(service, "POST", at(id), { config: { image, files: onTheWire } });
      const found = await machine.read(id, { state, inputs });
      const read = found?.state["config"] as { files: unknown[] };
      expect(revealed(read.files)).toHaveLength(3);
      for (const answered of [found?.state, found?.inputs]) expect(clearText(answered)).not.toContain(inFile);
    });

    test("what the state alone calls a secret stays one in a refresh", async () => {
      const { machine, inputs, id, state } = await made({ env: { A: secret("canary"), B: "clear" } });
      const found = await machine.read(id, { state, inputs: revealed(inputs) as Properties });
      for (const answered of [found?.state, found?.inputs])
        expect(answered?.["config"]).toEqual({ image, env: { A: secret("canary"), B: "clear" } });
    });

    test("a value that was changed outside is as secret as what it replaced", async () => {
      const { machine, inputs, id, state } = await made({ env: { A: secret("before"), B: "clear" } });
      await send(service, "POST", at(id), { config: { image, env: { A: "canary", B: "drifted" } } });
      const found = await machine.read(id, { state, inputs });
      for (const answered of [found?.state, found?.inputs])
        expect(answered?.["config"]).toEqual({ image, env: { A: secret("canary"), B: "drifted" } });
    });
  });

  test("of before and after are both kept in what an update that failed leaves behind", async () => {
    const { machine, inputs, id, state } = await made({ env: { OLD: secret("canary old") } });
    const env = { NEW: secret("canary new"), MACHINES_SIMULATE: "crash" };
    const next = await machine.checked({ app: "app", region: "ams", config: { image, env } }, inputs);
    const failed = unfinishedIn(
      await machine.update({ id, oldInputs: inputs, state, inputs: next }).catch((error: unknown) => error),
    );
    expect(failed?.id).toBe(id);
    expect(clearText(failed?.state)).not.toMatch(canary);
    expect(failed?.state).toMatchObject({ config: { env: { NEW: secret("canary new") } } });
    // Cut off before anything new was made: what is live is what was before.
    service.fail({ operation: "machines.update", when: "before", status: 503, times: 3 });
    const again = await machine.update({ id, state: failed?.state ?? {}, inputs }).catch((error: unknown) => error);
    const left = unfinishedIn(again);
    expect(left).toBeDefined();
    expect(clearText(left?.state)).not.toMatch(canary);
  });

  test("an import knows none; what the program then calls one is written into the state as one", async () => {
    const { id } = await made({ env: { A: secret("canary") } });
    const machine = fresh();
    const found = await machine.read(id);
    expect(found?.inputs).toMatchObject({ config: { env: { A: "canary" } } });
    const news = { ...found?.inputs, config: { image, env: { A: secret("canary") } } };
    const inputs = await machine.checked(news, found?.inputs);
    const change = { id, oldInputs: found?.inputs ?? {}, state: found?.state ?? {}, inputs };
    expect(await machine.diff(change)).toMatchObject({ changes: true, detailed: { "config.env.A": "update" } });
    const before = service.requests.length;
    const sealed = await machine.update(change);
    expect(clearText(sealed)).not.toMatch(canary);
    // The Machine itself did not change: nothing is sent for it.
    expect(service.requests.slice(before)).toEqual([]);
    expect(await machine.diff({ ...change, oldInputs: inputs, state: sealed })).toMatchObject({ changes: false });
  });

  describe("are quoted by nobody", () => {
    const errorOf = async (work: Promise<unknown>): Promise<string> => {
      const error = await work.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeDefined();
      return `${String(error)} ${JSON.stringify(unfinishedIn(error)?.reasons ?? [])}`;
    };

    test("not by the service's own words in an error", async () => {
      const machine = fresh();
      const inputs = await machine.checked({
        app: "app",
        config: { image, env: { MACHINES_SIMULATE: secret("canary") } },
      });
      expect(await errorOf(machine.create(inputs))).toMatch(
        /400: invalid config.env.MACHINES_SIMULATE, got \[secret\]/,
      );
    });

    test("not by those about an object that is there already", async () => {
      const { machine, inputs, id, state } = await made({ env: { A: secret("canary\nof two lines") } });
      const config = { image: secret("registry.example.com/canary:2"), env: { A: secret("canary\nof two lines") } };
      const next = await machine.checked({ app: "app", region: "ams", config }, inputs);
      service.fail({
        operation: "machines.wait",
        when: "before",
        status: 400,
        body: { error: 'could not pull registry.example.com/canary:2 with A="canary\\nof two lines"' },
      });
      const error = await errorOf(machine.update({ id, oldInputs: inputs, state, inputs: next }));
      expect(error).toMatch(/could not pull \[secret\] with A=/);
      expect(error).not.toMatch(canary);
    });

    test("not by the refusal of a name that is taken", async () => {
      await makeApp(service, "canary-taken");
      const app = drive(plugin.client, urnOf("App", "taken"));
      const inputs = await app.checked({ name: secret("canary-taken") });
      for (const work of [app.previewCreate(inputs), app.create(inputs)])
        expect(await errorOf(work)).not.toMatch(canary);
    });
  });
});
