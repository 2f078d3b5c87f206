// The provider's process: what it prints, and how it exits.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import pluginAttach from "@pulumi/pulumi/proto/plugin_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf } from "../support/driver.ts";
import {
  executable,
  startEngine,
  startPlugin,
  unfinishedIn,
  wireTo,
  type Client,
  type Plugin,
  type Wire,
} from "../support/plugin.ts";
import { secret, toStruct } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";
const forEver = { MACHINES_SIMULATE: "slow:60s" };
const wanted = (env: Readonly<Record<string, unknown>> = {}) => ({ app: "app", region: "ams", config: { image, env } });

describe("process", () => {
  let service: TestService;
  const plugins: Plugin[] = [];
  beforeEach(async () => {
    service = await startService({ clock: new ManualClock() });
    await makeApp(service, "app");
  });
  afterEach(async () => {
    await Promise.all(plugins.splice(0).map((plugin) => plugin.close()));
    await service.close();
  });

  const configure = (client: Client) => {
    const args = toStruct({ endpoint: service.url, token: secret(service.token) });
    return client.configure(new proto.ConfigureRequest().setArgs(args));
  };
  const started = async (...args: string[]): Promise<Plugin> => {
    const plugin = await startPlugin({ args });
    plugins.push(plugin);
    await configure(plugin.client);
    return plugin;
  };
  const outcome = (work: Promise<unknown>): Promise<unknown> => work.catch((reason: unknown) => reason);
  const held = (count = 1) => expect.poll(() => service.service.context.waits.size).toBe(count);
  /** An update that waits while it holds its lease. */
  const waiting = async (client: Client) => {
    const machine = drive(client, urnOf("Machine", "web"));
    const inputs = await machine.checked(wanted());
    const { id, state } = await machine.create(inputs);
    const next = await machine.checked(wanted(forEver), inputs);
    const updating = outcome(machine.update({ id, oldInputs: inputs, state, inputs: next }));
    await held();
    const lease = `/v1/apps/app/machines/${String(state["machineId"])}/lease`;
    await expect(send(service, "GET", lease)).resolves.toBeDefined();
    return { id, updating, lease };
  };

  test.each<[string, string[]]>([
    ["without arguments", []],
    ["with an unreachable engine", ["127.0.0.1:1"]],
    [
      "with all flags that the engine may pass on",
      ["--logtostderr", "-v=9", "--tracing", "http://127.0.0.1:1", "127.0.0.1:1"],
    ],
  ])("standard output has only the port, standard error no secret: %s", async (_what, args) => {
    const plugin = await started(...args);
    const machine = drive(plugin.client, urnOf("Machine", "web"));
    const inputs = await machine.checked(wanted({ A: secret("canary") }));
    const { id, state } = await machine.create(inputs);
    await machine.read(id, { state, inputs });
    const wrong = await machine.checked(wanted({ MACHINES_SIMULATE: secret("canary") }));
    await expect(machine.create(wrong)).rejects.toThrow();
    await expect(machine.check({ confg: secret("canary") })).resolves.toBeDefined();
    service.fail({ operation: "platform.regions", when: "before", status: 400, body: { error: "odd" } });
    await machine.previewCreate(await machine.checked(wanted({ A: secret("canary") })));
    plugin.signal("SIGTERM");
    expect(await plugin.ended).toEqual({ code: 0, signal: null });
    expect(plugin.written.stdout).toBe(`${plugin.port}\n`);
    for (const hidden of [service.token, "canary"]) expect(plugin.written.stderr).not.toContain(hidden);
  });

  test("the engine's address is found after its flags", async () => {
    const engine = await startEngine();
    try {
      const plugin = await started("--logtostderr", "-v=9", "--tracing", "http://127.0.0.1:1", engine.address);
      service.fail({ operation: "apps.get", when: "before", status: 400, body: { error: "odd" } });
      const app = drive(plugin.client, urnOf("App", "asked"));
      await app.previewCreate(await app.checked({ name: "asked" }));
      await expect.poll(() => engine.logs.map(({ urn }) => urn)).toEqual([app.urn]);
      expect(plugin.written.stderr).toBe("");
    } finally {
      engine.close();
    }
  });

  test.each(["handshake", "attach"] as const)(
    "the engine's address can come by %s; the last one applies, as for a provider started manually for several runs",
    async (way) => {
      const [engine, other] = [await startEngine(), await startEngine()];
      try {
        const plugin = await started();
        const announce = (address: string) =>
          way === "attach"
            ? plugin.client.attach(new pluginAttach.PluginAttach().setAddress(address))
            : plugin.client.handshake(new proto.ProviderHandshakeRequest().setEngineAddress(address));
        await announce(other.address);
        await announce(engine.address);
        service.fail({ operation: "apps.get", when: "before", status: 400, body: { error: "odd" } });
        const app = drive(plugin.client, urnOf("App", "asked"));
        await app.previewCreate(await app.checked({ name: "asked" }));
        await expect.poll(() => engine.logs.length).toBe(1);
        expect(other.logs).toEqual([]);
      } finally {
        engine.close();
        other.close();
      }
    },
  );

  test.each(["SIGINT", "SIGTERM"] as const)("%s without work makes it exit at once", async (signal) => {
    const plugin = await started();
    plugin.signal(signal);
    expect(await plugin.ended).toEqual({ code: 0, signal: null });
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "%s during work: the work is answered, its lease released, then it exits",
    async (signal) => {
      const plugin = await started();
      const { id, updating, lease } = await waiting(plugin.client);
      const machine = drive(plugin.client, urnOf("Machine", "second"));
      const creating = outcome(machine.create(await machine.checked(wanted(forEver))));
      await held(2);
      plugin.signal(signal);
      plugin.signal(signal);
      expect(unfinishedIn(await updating)).toMatchObject({ id, state: { config: { env: forEver } } });
      expect(unfinishedIn(await creating)?.id).toMatch(/^app\/[0-9a-f]+$/);
      expect(await plugin.ended).toEqual({ code: 0, signal: null });
      await expect(send(service, "GET", lease)).rejects.toThrow(/404/);
    },
  );

  test("when the engine dies it exits, after the work under way, without anyone listening", async () => {
    // It also ends with this process, in case that is interrupted.
    const engine = spawn(
      process.execPath,
      [
        "-e",
        `require("node:child_process").spawn(${JSON.stringify(executable)}, ["127.0.0.1:1"], { stdio: ["ignore", 1, 2] });
         process.stdin.resume().on("close", () => process.exit());`,
      ],
      { stdio: ["pipe", "pipe", "ignore"] },
    );
    let wire: Wire | undefined;
    try {
      const [line] = (await once(engine.stdout, "data")) as [Buffer];
      const ended = once(engine.stdout.resume(), "close");
      wire = await wireTo(Number(line.toString()));
      await configure(wire.client);
      const { updating, lease } = await waiting(wire.client);
      wire.cut();
      engine.kill("SIGKILL");
      expect(String(await updating)).toMatch(/UNAVAILABLE/);
      // Its standard output stays open as long as any process holds it.
      await ended;
      await expect(send(service, "GET", lease)).rejects.toThrow(/404/);
    } finally {
      wire?.close();
      engine.kill("SIGKILL");
    }
  });

  // The bundle includes only parts of undici.
  test.each([
    ["http://machines.test", "GET http://machines.test/v1/apps/app HTTP/1.1"],
    ["https://machines.test", "CONNECT machines.test:443 HTTP/1.1"],
  ])("a proxy from the environment is used for %s", async (endpoint, asked) => {
    const proxy = createServer((socket) => {
      socket.once("data", (request: Buffer) => {
        requests.push(request.toString("latin1").split("\r\n")[0]);
        socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
      });
    }).listen(0, "127.0.0.1");
    const requests: unknown[] = [];
    await once(proxy, "listening");
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const plugin = await startPlugin({ env: { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: "" } });
    plugins.push(plugin);
    const args = toStruct({ endpoint, token: "t", retries: "0" });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await expect(drive(plugin.client, urnOf("App", "app")).read("app")).rejects.toThrow();
    expect(requests).toEqual([asked]);
    proxy.close();
  });

  test("an endless request delays the exit no longer than the engine waits before it kills", async () => {
    // A service that accepts every request and answers none.
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const plugin = await started();
    const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(toStruct({ endpoint, token: "t" })));
    const asked = once(silent, "connection");
    // A write at the start is awaited; a read would be cancelled.
    const attachment = drive(plugin.client, urnOf("PostgresAttachment", "unanswered"));
    const creating = outcome(attachment.create(await attachment.checked({ cluster: "c", app: "unanswered" })));
    const [socket] = (await asked) as [Socket];
    // As the engine does: cancelled first, then killed.
    await plugin.close();
    expect(await plugin.ended).toEqual({ code: 0, signal: null });
    expect(String(await creating)).toMatch(/UNAVAILABLE/);
    socket.destroy();
    silent.close();
  });
});
