// Kinds of Machine beside the one that serves: the whole life cycle of each, in both bindings.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { bindings, type Bound } from "../support/binding.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1.0.0";
const base64 = (text: string) => Buffer.from(text).toString("base64");

interface Kind {
  readonly name: string;
  readonly first: Values;
  readonly second: Values;
  /** The state it reaches. */
  readonly state?: readonly string[];
}

/** Names of Machines stand for their ids, which are created before. */
const kinds: readonly Kind[] = [
  {
    name: "a schedule",
    first: { schedule: "hourly", env: { MACHINES_SIMULATE: "exit:0" } },
    second: { schedule: "daily", env: { MACHINES_SIMULATE: "exit:0" } },
    state: ["started", "stopped"],
  },
  { name: "a standby for one Machine", first: { standbys: ["main"] }, second: { standbys: ["main", "app/other"] } },
  {
    name: "a standby for other Machines",
    first: { standbys: ["app/main", "other"] },
    second: { standbys: ["other"] },
  },
  {
    name: "containers",
    first: {
      containers: [
        { name: "main", image, env: { A: "1" }, dependsOn: [{ name: "side", condition: "started" }] },
        { name: "side", image, restart: { policy: "always" }, stop: { signal: "SIGTERM", timeout: "1m" } },
      ],
    },
    second: {
      containers: [
        {
          name: "main",
          image,
          secrets: [{ envVar: "TOKEN" }],
          files: [{ guestPath: "/etc/token", secretName: "TOKEN" }],
          mounts: [{ name: "scratch", path: "/scratch" }],
          healthchecks: [{ name: "up", kind: "liveness", interval: 5, tcp: { port: 80 } }],
        },
      ],
      volumes: [{ name: "scratch", tempDir: { storageType: "memory", sizeMb: 64 } }],
    },
  },
  {
    name: "files from secrets",
    first: { files: [{ guestPath: "/etc/token", secretName: "TOKEN" }] },
    second: {
      files: [
        { guestPath: "/etc/token", secretName: "OTHER", mode: 0o600 },
        { guestPath: "/etc/motd", rawValue: base64("hello") },
      ],
    },
  },
  {
    name: "a Machine that destroys itself",
    first: { autoDestroy: true, restart: { policy: "no" } },
    second: { autoDestroy: true, restart: { policy: "no" }, env: { A: "1" } },
  },
];

describe.each(bindings)("kinds of Machine, $name binding", ({ start }) => {
  let service: TestService;
  let machine: Bound;
  let close: () => Promise<void>;
  const ids = new Map<string, string>();
  beforeAll(async () => {
    service = await startService();
    ({ bound: machine, close } = await start("Machine", service));
    await makeApp(service, "app");
    for (const name of ["TOKEN", "OTHER"])
      await send(service, "POST", `/v1/apps/app/secrets/${name}`, { value: base64(`value of ${name}`) });
    for (const name of ["main", "other"]) ids.set(name, await makeMachine(service, "app", { name, config: { image } }));
  });
  afterAll(async () => {
    await close();
    await service.close();
  });

  const checked = async (news: Values, olds: Values = {}) => {
    const { inputs, failures } = await machine.check(olds, { app: "app", ...news });
    expect(failures).toEqual([]);
    return inputs;
  };
  const settings = (given: Values): Values => {
    const standbys = (given["standbys"] as readonly string[] | undefined)?.map((name) =>
      name.replace(/\w+$/, (last) => ids.get(last) ?? last),
    );
    return { image, ...given, ...(standbys ? { standbys } : {}) };
  };

  test.each(kinds)(
    "$name is created, read without drift, changed, read again and deleted",
    async ({ first, second, state }) => {
      const inputs = await checked({ config: settings(first) });
      const { id, state: made } = await machine.create(inputs);
      expect(state ?? ["started"]).toContain(made["state"]);
      const found = await machine.read(id, made);
      expect(found?.inputs).toEqual(inputs);
      expect(await machine.diff(id, found?.state ?? {}, inputs)).toBe("same");
      const next = await checked({ config: settings(second) }, inputs);
      expect(await machine.diff(id, made, next)).toBe("update");
      const after = await machine.update(id, found?.state ?? made, next);
      expect(after).toMatchObject({ config: settings(second), machineId: made["machineId"] });
      expect(after["version"]).not.toBe(made["version"]);
      const again = await machine.read(id, after);
      expect(again?.inputs).toEqual(next);
      expect(await machine.diff(id, again?.state ?? {}, next)).toBe("same");
      // An import writes the program's inputs, except that ids of Machines have one spelling.
      const imported = await machine.read(id, {});
      const { inputs: program, failures } = await machine.check({}, { ...imported?.inputs });
      expect(failures).toEqual([]);
      expect(await machine.diff(id, after, program)).toBe("same");
      await machine.delete(id, after);
      const at = `/v1/apps/app/machines/${String(made["machineId"])}`;
      expect(await send<Values>(service, "GET", at)).toMatchObject({ state: "destroyed" });
    },
  );

  test("files contain the secrets they are created from, in the requested version", async () => {
    const files = [{ guestPath: "/etc/token", secretName: "TOKEN" }];
    const inputs = await checked({ config: { image, files } });
    const { id, state } = await machine.create(inputs);
    const shown = async () => {
      const at = `/v1/apps/app/machines/${String(state["machineId"])}/exec`;
      return (await send<{ stdout: string }>(service, "POST", at, { command: ["cat", "/etc/token"] })).stdout;
    };
    expect(await shown()).toBe("value of TOKEN");
    const { version } = await send<{ version: number }>(service, "POST", "/v1/apps/app/secrets/TOKEN", {
      value: base64("rotated"),
    });
    const next = await checked({ config: { image, files }, minSecretsVersion: version }, inputs);
    await machine.update(id, state, next);
    expect(await shown()).toBe("rotated");
  });

  test("a Machine that exited and destroyed itself is complete, or created again if the program requests it", async () => {
    const config = { image, autoDestroy: true, env: { MACHINES_SIMULATE: "exit:0" } };
    for (const recreate of [false, true]) {
      const { id, state } = await machine.create(await checked({ config, recreate }));
      await expect
        .poll(async () => (await machine.read(id, state))?.state["state"] ?? "gone")
        .toBe(recreate ? "gone" : "destroyed");
    }
  });

  test("one whose create got no answer, and that destroyed itself before it was found, is complete and runs once", async () => {
    const name = "once";
    const all = () =>
      send<{ name: string; state: string }[]>(service, "GET", "/v1/apps/app/machines?include_deleted=true");
    service.fail({ operation: "machines.create", when: "after", status: 503 });
    // Nothing shows it until it has ended.
    service.fail({
      operation: "machines.list",
      times: "always",
      rewrite: (body) =>
        (body as { name: string; state: string }[]).filter((one) => one.name !== name || one.state === "destroyed"),
    });
    const config = { image, autoDestroy: true, env: { MACHINES_SIMULATE: "exit:0" } };
    const { state } = await machine.create(await checked({ name, config }));
    service.service.faults.clear();
    expect(state["state"]).toBe("destroyed");
    expect((await all()).filter((one) => one.name === name)).toHaveLength(1);
  });

  test("a change of one that destroyed itself is recorded; with recreate it is created again", async () => {
    const config = { image, autoDestroy: true, env: { MACHINES_SIMULATE: "exit:0" } };
    const inputs = await checked({ config });
    const { id, state } = await machine.create(inputs);
    await expect.poll(async () => (await machine.read(id, state))?.state["state"]).toBe("destroyed");
    const ended = (await machine.read(id, state))?.state ?? {};
    const changed = await checked({ config: { ...config, image: "registry.example.com/web:2.0.0" } }, inputs);
    expect(await machine.diff(id, ended, changed)).toBe("update");
    const noted = await machine.update(id, ended, changed);
    expect(noted).toMatchObject({ state: "destroyed", config: { image: "registry.example.com/web:2.0.0" } });
    expect(await machine.diff(id, noted, changed)).toBe("same");
    const again = await checked({ config, recreate: true }, changed);
    expect(await machine.diff(id, noted, again)).toBe("replace");
    const next = await machine.create((await machine.check({}, { app: "app", config, recreate: true })).inputs);
    await machine.delete(id, noted);
    expect(next.id).not.toBe(id);
  });

  test.each(["started", "suspended"])("one that exits by itself cannot be kept %s", async (state) => {
    for (const ends of [{ autoDestroy: true }, { schedule: "daily" }]) {
      const { failures } = await machine.check({}, { app: "app", state, config: { image, ...ends } });
      const [cause = ""] = Object.keys(ends);
      expect(failures).toEqual([
        `state: a Machine with config.${cause} ends by itself and cannot be kept ${state}; leave it out`,
      ]);
    }
  });

  test("a sandbox, which is never restarted, can be kept started, and has failed once its program ends", async () => {
    const config = { image, restart: { policy: "no" }, init: { cmd: ["sleep", "infinity"] } };
    const inputs = await checked({ config, state: "started" });
    const { id, state } = await machine.create(inputs);
    expect(state).toMatchObject({ state: "started" });
    const ending = await checked(
      { config: { ...config, env: { MACHINES_SIMULATE: "exit:3" } }, state: "started" },
      inputs,
    );
    await expect(machine.update(id, state, ending)).rejects.toThrow(/exited \(code 3\)/);
    // A failed update lets no other Machine of the App be interrupted in its run.
    await machine.nextRun();
  });

  test("a new version ends a memory limit removed from the program, and restores one added again", async () => {
    const config = { image, guest: { cpus: 1, memoryMb: 256 } };
    const limited = await checked({ config, memoryLimitMb: 128 });
    const { id, state } = await machine.create(limited);
    const without = await checked({ config: { ...config, env: { A: "1" } } }, limited);
    const left = await machine.update(id, state, without);
    expect(left["memoryLimitMb"]).toBeUndefined();
    const again = await checked({ config: { ...config, env: { A: "1" } }, memoryLimitMb: 128 }, without);
    expect(await machine.diff(id, left, again)).toBe("update");
    expect(await machine.update(id, left, again)).toMatchObject({ memoryLimitMb: 128 });
    expect((await machine.read(id, left))?.state).toMatchObject({ config: { env: { A: "1" } } });
  });
});
