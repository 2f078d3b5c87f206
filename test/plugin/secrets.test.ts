// Values that the program marks secret are secret in every answer of the plugin, at any path.
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
/** The part of a file's contents that is visible in base64. */
const inFile = contents("canary of a file");

describe("secrets", () => {
  let service: TestService;
  let plugin: Plugin;
  let count = 0;
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: secret(service.token), maxUnavailable: "100%" });
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
  /** Runs the whole life of a Machine with a configuration, and checks every answer. */
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

  test("an output that repeats a secret input is secret too", async () => {
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
      "nested in lists",
      { services: [{ protocol: "tcp", internalPort: 80, checks: [{ type: "tcp", path: secret("/canary") }] }] },
    ],
    ["a secret inside a secret", { env: secret({ A: secret("canary") }) }],
  ])("%s stays secret through the whole life", async (_where, config) => {
    await life(config, (answered) => {
      expect(clearText(answered)).not.toMatch(canary);
      expect(clearText(answered)).not.toContain(inFile);
      expect(
        revealed((answered["config"] as Properties)["env"] ?? (answered["config"] as Properties)["files"]),
      ).toEqual(revealed(config["env"] ?? config["files"]));
    });
  });

  test("the whole configuration is secret, and so is a secret that the engine sent as an output", async () => {
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

  test("an App's name and network stay secret", async () => {
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

  test("a secret that the program removed and the state still has stays secret", async () => {
    const app = drive(plugin.client, urnOf("App", "said"));
    const olds = await app.checked({ name: secret("canary-app"), network: "n" });
    const { id, state } = await app.create(olds);
    const next = await app.checked({ network: "n", forceDestroy: true }, olds);
    expect(clearText(next)).not.toMatch(canary);
    expect(clearText(await app.update({ id, oldInputs: olds, state, inputs: next }))).not.toMatch(canary);
  });

  describe("in a list with moved items", () => {
    const clear = { guestPath: "/clear", rawValue: contents("clear") };
    const hidden = { guestPath: "/hidden", rawValue: secret(inFile) };
    const onTheWire = [
      { guest_path: "/new", raw_value: contents("new") },
      { guest_path: "/hidden", raw_value: inFile },
      { guest_path: "/clear", raw_value: contents("clear") },
    ];

    test("the marks of secrets move with the items of a list in the program", async () => {
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

    test("a refresh shows no moved item of a secret list in plain text", async () => {
      const { machine, inputs, id, state } = await made({ files: [clear, hidden] });
      await send(service, "POST", at(id), { config: { image, files: onTheWire } });
      const found = await machine.read(id, { state, inputs });
      const read = found?.state["config"] as { files: unknown[] };
      expect(revealed(read.files)).toHaveLength(3);
      for (const answered of [found?.state, found?.inputs]) expect(clearText(answered)).not.toContain(inFile);
    });

    test("a value that only the state marks secret stays secret in a refresh", async () => {
      const { machine, inputs, id, state } = await made({ env: { A: secret("canary"), B: "clear" } });
      const found = await machine.read(id, { state, inputs: revealed(inputs) as Properties });
      for (const answered of [found?.state, found?.inputs])
        expect(answered?.["config"]).toEqual({ image, env: { A: secret("canary"), B: "clear" } });
    });

    test("a value changed outside is as secret as the previous one", async () => {
      const { machine, inputs, id, state } = await made({ env: { A: secret("before"), B: "clear" } });
      await send(service, "POST", at(id), { config: { image, env: { A: "canary", B: "drifted" } } });
      const found = await machine.read(id, { state, inputs });
      for (const answered of [found?.state, found?.inputs])
        expect(answered?.["config"]).toEqual({ image, env: { A: secret("canary"), B: "drifted" } });
    });
  });

  test("old and new secrets are both kept in the state of a failed update", async () => {
    const { machine, inputs, id, state } = await made({ env: { OLD: secret("canary old") } });
    const env = { NEW: secret("canary new"), MACHINES_SIMULATE: "crash" };
    const next = await machine.checked({ app: "app", region: "ams", config: { image, env } }, inputs);
    const failed = unfinishedIn(
      await machine.update({ id, oldInputs: inputs, state, inputs: next }).catch((error: unknown) => error),
    );
    expect(failed?.id).toBe(id);
    expect(clearText(failed?.state)).not.toMatch(canary);
    expect(failed?.state).toMatchObject({ config: { env: { NEW: secret("canary new") } } });
    // Interrupted before anything was created: the live values are the old ones.
    service.fail({ operation: "machines.update", when: "before", status: 503, times: 3 });
    const again = await machine.update({ id, state: failed?.state ?? {}, inputs }).catch((error: unknown) => error);
    const left = unfinishedIn(again);
    expect(left).toBeDefined();
    expect(clearText(left?.state)).not.toMatch(canary);
  });

  test("an import has no secrets; marks of the program are then saved as a change of the state", async () => {
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

  describe("are never quoted", () => {
    const errorOf = async (work: Promise<unknown>): Promise<string> => {
      const error = await work.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeDefined();
      return `${String(error)} ${JSON.stringify(unfinishedIn(error)?.reasons ?? [])}`;
    };

    test("secrets are never quoted in an error text of the service", async () => {
      const machine = fresh();
      const inputs = await machine.checked({
        app: "app",
        config: { image, env: { MACHINES_SIMULATE: secret("canary") } },
      });
      expect(await errorOf(machine.create(inputs))).toMatch(
        /400: invalid config.env.MACHINES_SIMULATE, got \[secret\]/,
      );
    });

    test("secrets are never quoted in errors about an object that already exists", async () => {
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

    test("F56: secrets are never quoted in a configuration that an SDK has marked as a whole, whose words stay", async () => {
      const machine = fresh();
      const config = secret({
        image: "registry.example.com/web:1",
        env: { PASSWORD: "canary", MODE: "started" },
        services: [{ protocol: "tcp", internalPort: 80, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
      });
      const inputs = await machine.checked({ app: "app", region: "ams", config });
      const body = { error: "registry.example.com/web:1 is not started with PASSWORD=canary: no http at tcp port 80" };
      service.fail({ operation: "machines.create", when: "before", status: 400, body });
      const error = await errorOf(machine.create(inputs));
      expect(error).toContain(
        "registry.example.com/web:1 is not started with PASSWORD=[secret]: no http at tcp port 80",
      );
      expect(error).toContain("(https://github.com/pulumi-machines/pulumi-machines/blob/main/docs/");
      expect(error.match(/\[secret\]/g)).toHaveLength(1);
    });

    test("secrets are never quoted in the refusal of a taken name", async () => {
      await makeApp(service, "canary-taken");
      const app = drive(plugin.client, urnOf("App", "taken"));
      const inputs = await app.checked({ name: secret("canary-taken") });
      for (const work of [app.previewCreate(inputs), app.create(inputs)])
        expect(await errorOf(work)).not.toMatch(canary);
    });
  });
});
