import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InitializationFailed } from "../../provider/core/verbs/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp, makeVolume, send } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1.0.0";
const made = new WeakMap<TestService, Promise<{ other: string; volume: string }>>();
/** Creates an App whose secrets are at version 1. */
const appWithSecret = async (service: TestService, name: string): Promise<string> => {
  const app = await makeApp(service, name);
  await send(service, "POST", `/v1/apps/${app}/secrets/TOKEN`, { value: "1" });
  return app;
};

const around = (service: TestService) => {
  const known =
    made.get(service) ??
    Promise.all([appWithSecret(service, "m-other"), makeApp(service, "m-vols")]).then(async ([other]) => ({
      other,
      volume: await makeVolume(service, "m-other", "fra"),
    }));
  made.set(service, known);
  return known;
};

lifecycle("Machine", {
  given: async (service) => ({
    app: await appWithSecret(service, "m-life"),
    region: "ams",
    config: {
      image,
      env: { A: "1", SNAKE_CASE: "2" },
      guest: { cpus: 2, memoryMb: 512 },
      metadata: { role: "web" },
      services: [
        {
          protocol: "tcp",
          internalPort: 8080,
          autostop: "off",
          ports: [{ port: 80, handlers: ["http"] }],
          checks: [{ type: "tcp", interval: "60s" }],
        },
      ],
      stopConfig: { timeout: "60s" },
    },
    __context: { name: "web" },
  }),
  changes: async (service) => [
    { set: { config: { image: "registry.example.com/web:2.0.0", env: { A: "2" } } }, expect: "update" },
    { set: { cordoned: true }, expect: "update" },
    { set: { cordoned: false }, expect: "update" },
    { set: { state: "stopped" }, expect: "update" },
    { set: { state: "started" }, expect: "update" },
    { set: { state: "suspended" }, expect: "update" },
    { set: { state: "started" }, expect: "update" },
    { set: { minSecretsVersion: 1 }, expect: "update" },
    { set: { minSecretsVersion: undefined }, expect: "no request" },
    { set: { memoryLimitMb: 200 }, expect: "update" },
    { set: { memoryLimitMb: 100_000 }, expect: "refused" },
    { set: { restart: { triggers: { config: "1" } } }, expect: "update" },
    { set: { restart: { triggers: { config: "2" }, signal: "SIGTERM" } }, expect: "update" },
    { set: { restart: { triggers: { config: "2" }, signal: "SIGHUP", timeout: "10s" } }, expect: "no request" },
    { set: { restart: undefined }, expect: "update", diffOnly: true },
    { set: { reload: { triggers: { config: "1" } } }, expect: "update" },
    { set: { reload: { triggers: { config: "1" }, signal: "SIGUSR1" } }, expect: "no request" },
    { set: { reload: undefined }, expect: "update", diffOnly: true },
    { set: { waitForChecks: false }, expect: "no request" },
    { set: { minHealthySeconds: 0 }, expect: "no request" },
    { set: { onUpdateFailure: "rollback" }, expect: "no request" },
    { set: { fallbackRegions: ["fra"] }, expect: "no request" },
    { set: { fallbackRegions: [] }, expect: "no request" },
    { set: { recreate: true }, expect: "no request" },
    { set: { forceDestroy: true }, expect: "no request" },
    { set: { region: "fra" }, expect: "replace" },
    { set: { name: "fixed" }, expect: "replace" },
    { set: { region: "lhr" }, expect: "delete-replace" },
    { set: { app: (await around(service)).other }, expect: "replace" },
    {
      set: { region: "fra", config: { image, mounts: [{ volume: (await around(service)).volume, path: "/data" }] } },
      expect: "delete-replace",
    },
  ],
  writeOnly: ["minSecretsVersion", "memoryLimitMb", "restart", "reload"],
  steady: {
    minSecretsVersion: "the service does not report it",
    restart: "what others do is no trigger of ours",
    reload: "likewise",
  },
  drift: [
    {
      interfere: (service, { app, machineId, config }) =>
        send(service, "POST", `/v1/apps/${String(app)}/machines/${String(machineId)}`, {
          config: { ...(config as Values), env: { OURS: "no" } },
        }),
      shows: { config: expect.objectContaining({ image, env: { OURS: "no" } }) },
    },
    {
      interfere: (service, { app, machineId }) =>
        send(service, "POST", `/v1/apps/${String(app)}/machines/${String(machineId)}/cordon`),
      shows: { cordoned: true },
    },
    {
      interfere: (service, { app, machineId }) =>
        send(service, "PUT", `/v1/apps/${String(app)}/machines/${String(machineId)}/memory`, { limit_mb: 100 }),
      shows: { memoryLimitMb: 100 },
    },
    {
      interfere: async (service, { app, machineId }) => {
        const at = `/v1/apps/${String(app)}/machines/${String(machineId)}`;
        await send(service, "POST", `${at}/stop`);
        await send(service, "GET", `${at}/wait?state=stopped`);
      },
      shows: { state: "stopped" },
    },
  ],
});

describe("Machine", () => {
  let service: TestService;
  let machine: Bound;
  beforeAll(async () => {
    service = await startService({ keepBodies: true });
    machine = bind("Machine", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  const at = (state: Values, rest = "") => `/v1/apps/app/machines/${String(state["machineId"])}${rest}`;
  const checked = async (inputs: Values, olds: Values = {}) => {
    const { inputs: next, failures } = await machine.check(olds, { app: "app", ...inputs });
    expect(failures).toEqual([]);
    return next;
  };
  const make = async (inputs: Values) => {
    const next = await checked(inputs);
    return { inputs: next, ...(await machine.create(next)) };
  };
  const live = (state: Values) =>
    send<Record<string, Record<string, unknown>> & { state: string; version: string }>(service, "GET", at(state));
  const failure = async (work: Promise<unknown>): Promise<InitializationFailed> => {
    const error: unknown = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(InitializationFailed);
    return error as InitializationFailed;
  };

  test("a change of only metadata creates no new version and keeps others' keys", async () => {
    const { id, inputs, state } = await make({ config: { image, metadata: { ours: "1", gone: "x" } } });
    await send(service, "POST", at(state, "/metadata/theirs"), { value: "kept" });
    const next = await checked({ ...inputs, config: { image, metadata: { ours: "2" } } }, inputs);
    const after = await machine.update(id, state, next);
    expect(after["version"]).toBe(state["version"]);
    expect((await live(state))["config"]?.["metadata"]).toMatchObject({ ours: "2", theirs: "kept" });
    expect((await live(state))["config"]?.["metadata"]).not.toHaveProperty("gone");
    const again = await checked(
      { ...next, config: { image: "registry.example.com/web:3", metadata: { ours: "2" } } },
      next,
    );
    const updated = await machine.update(id, after, again);
    expect(updated["version"]).not.toBe(state["version"]);
    // The tag of its creation belongs to the provider: it stays on the Machine and is no output.
    expect((await live(state))["config"]?.["metadata"]).toEqual({
      ours: "2",
      theirs: "kept",
      "pulumi-op": expect.stringMatching(/^[0-9a-f]{32}$/) as unknown,
    });
    expect(updated["config"]).toEqual({ image: "registry.example.com/web:3", metadata: { ours: "2" } });
  });

  test("with minSecretsVersion a rotated secret reaches the Machine, and the new version is waited for", async () => {
    const rotate = async (value: string) =>
      (await send<{ version: number }>(service, "POST", "/v1/apps/app/secrets/ROTATED", { value })).version;
    const seen = async (state: Values) =>
      (await send<{ stdout: string }>(service, "POST", at(state, "/exec"), { command: ["env"] })).stdout;
    const config = { image };
    const before = service.bodies.length;
    const { id, inputs, state } = await make({ config, minSecretsVersion: await rotate("first") });
    expect(service.bodies.slice(before).map(({ body }) => body)).toContainEqual(
      expect.objectContaining({ min_secrets_version: inputs["minSecretsVersion"] }),
    );
    expect(await seen(state)).toContain("ROTATED=first");
    // The greatest of several: each resource that writes secrets has a version of its own.
    const first = inputs["minSecretsVersion"];
    expect((await checked({ ...inputs, minSecretsVersion: [first, 0] }, inputs))["minSecretsVersion"]).toBe(first);
    const next = await checked({ ...inputs, minSecretsVersion: [first, await rotate("second"), 0] }, inputs);
    expect(next["minSecretsVersion"]).toBeGreaterThan(Number(first));
    expect(await machine.diff(id, state, next)).toBe("update");
    const after = await machine.update(id, state, next);
    expect(after).toMatchObject({ state: "started", minSecretsVersion: next["minSecretsVersion"] });
    expect(after["version"]).not.toBe(state["version"]);
    expect((await live(state)).config).toEqual((await live(after)).config);
    expect(await seen(state)).toContain("ROTATED=second");
    expect((await machine.read(id, after))?.state).toEqual(after);
    // Omitting it requests nothing.
    const { minSecretsVersion: _, ...without } = next;
    const later = await machine.update(id, after, await checked(without, next));
    expect(later).toMatchObject({ version: after["version"] });
    expect(later).not.toHaveProperty("minSecretsVersion");
  });

  test("the memory limit is kept from creation through new versions, while the Machine runs", async () => {
    const limit = async (state: Values) =>
      (await send<{ limit_mb: number }>(service, "GET", at(state, "/memory"))).limit_mb;
    const guest = { memoryMb: 512, maxMemoryMb: 1024 };
    const { id, inputs, state } = await make({ config: { image, guest }, memoryLimitMb: 768 });
    expect(await limit(state)).toBe(768);
    // A new version starts with its guest's memory.
    const moved = await checked({ ...inputs, config: { image, guest, env: { A: "1" } } }, inputs);
    const after = await machine.update(id, state, moved);
    expect(await limit(state)).toBe(768);
    const next = await checked({ ...moved, memoryLimitMb: 300 }, moved);
    const lower = await machine.update(id, after, next);
    expect(lower).toMatchObject({ version: after["version"], memoryLimitMb: 300 });
    expect(await limit(state)).toBe(300);
    // A stopped Machine reports no limit: that is no drift, and the limit applies again once it runs.
    const stopped = await checked({ ...next, state: "stopped", memoryLimitMb: 400 }, next);
    const still = await machine.update(id, lower, stopped);
    expect((await machine.read(id, still))?.state).toEqual(still);
    const again = await checked({ ...stopped, state: "started" }, stopped);
    const running = await machine.update(id, still, again);
    expect(await limit(state)).toBe(400);
    // If omitted, the limit is neither compared nor read.
    const { memoryLimitMb: _, ...rest } = again;
    const without = await checked(rest, again);
    expect(await machine.diff(id, running, without)).toBe("same");
    const { id: plain, state: unlimited } = await make({ config: { image } });
    const before = service.requests.length;
    await bind("Machine", service, { requestTimeoutSeconds: "24" }).read(plain, unlimited);
    expect(service.requests.slice(before).map(({ operation }) => operation)).toEqual(["machines.list"]);
  });

  test("the update is refused until the secrets are written, and the next update tries again", async () => {
    const { id, inputs, state } = await make({ config: { image, metadata: { a: "1" } } });
    const next = await checked({ ...inputs, minSecretsVersion: 10_000 }, inputs);
    await expect(machine.update(id, state, next)).rejects.toThrow(/412.*secrets/);
    // After a failed update the state shows whether it was applied.
    service.fail({ operation: "machines.update", when: "before", status: 503, times: 3, body: { error: "not now" } });
    const known = await checked({ ...inputs, minSecretsVersion: 0 }, inputs);
    const lost = await failure(machine.update(id, state, known));
    expect(lost.properties).not.toHaveProperty("minSecretsVersion");
    service.fail({ operation: "machines.wait", when: "before", status: 422, body: { error: "not now" } });
    const applied = await failure(machine.update(id, lost.properties, known));
    expect(applied.properties).toMatchObject({ minSecretsVersion: 0 });
    const after = await machine.update(id, applied.properties, known);
    expect(after["version"]).toBe(applied.properties["version"]);
  });

  test("an outside change is shown exactly as drift, and an update repairs it (R6)", async () => {
    const { id, inputs, state } = await make({ config: { image, env: { A: "1" } } });
    await send(service, "POST", at(state), {
      config: { image, env: { A: "9" }, services: [{ protocol: "tcp", internal_port: 9 }] },
    });
    await send(service, "GET", at(state, "/wait?state=started"));
    const found = await machine.read(id, state);
    expect(found?.inputs?.["config"]).toEqual({
      image,
      env: { A: "9" },
      services: [{ protocol: "tcp", internalPort: 9 }],
    });
    expect(await machine.diff(id, found?.state ?? {}, inputs)).toBe("update");
    await machine.update(id, found?.state ?? {}, inputs);
    expect((await live(state))["config"]).toEqual({ image, env: { A: "1" } });
  });

  test("an update that would overwrite another client's change is refused and names it (F12)", async () => {
    const { id, inputs, state } = await make({ config: { image } });
    const { version } = await send<{ version: string }>(service, "POST", at(state), {
      config: { image, env: { THEIRS: "1" } },
    });
    const next = await checked({ ...inputs, config: { image: "registry.example.com/web:4" } }, inputs);
    await expect(machine.update(id, state, next)).rejects.toThrow(
      /was changed outside of this program \(config.env; .*pulumi refresh/,
    );
    expect((await live(state)).version).toBe(version);
    // Only unmanaged fields were changed, so the update continues.
    const { id: id2, inputs: inputs2, state: state2 } = await make({ config: { image } });
    await send(service, "POST", at(state2), { config: { image, metadata: { theirs: "1" } } });
    const after = await machine.update(
      id2,
      state2,
      await checked({ ...inputs2, config: { image: "registry.example.com/web:4" } }, inputs2),
    );
    expect(after["version"]).not.toBe(state2["version"]);
    expect((await live(state2))["config"]?.["metadata"]).toEqual({ theirs: "1" });
  });

  test("the power state is kept if state is omitted (R10); a failed Machine is started", async () => {
    const { id, inputs, state } = await make({ config: { image } });
    await send(service, "POST", at(state, "/stop"));
    await send(service, "GET", at(state, `/wait?state=stopped&version=${String(state["version"])}`));
    const found = await machine.read(id, state);
    expect(await machine.diff(id, found?.state ?? {}, inputs)).toBe("same");
    const next = await checked({ ...inputs, config: { image: "registry.example.com/web:5" } }, inputs);
    const after = await machine.update(id, found?.state ?? {}, next);
    expect(after["state"]).toBe("stopped");
    expect((await live(state)).state).toBe("stopped");
  });

  test("state: stopped at creation never starts it", async () => {
    const { state } = await make({ config: { image }, state: "stopped" });
    expect(state["state"]).toBe("stopped");
    const events = await send<{ type: string }[]>(service, "GET", at(state, "/events"));
    expect(events.some(({ type }) => type === "start")).toBe(false);
  });

  test("a Machine that crashes at its creation keeps its id, and a working image repairs it in place (F10)", async () => {
    const inputs = await checked({ config: { image, env: { MACHINES_SIMULATE: "crash" } } });
    const since = service.service.audit.last;
    const failed = await failure(machine.create(inputs));
    const waits = service.service.audit.after(since).filter(({ operation }) => operation === "machines.wait");
    expect(waits.length, "not waited for until the deadline").toBeLessThan(3);
    expect(failed.message).toMatch(/is (failed|stopped) and not started: its main process exited \(code 1/);
    expect(failed.properties["machineId"]).toBe(failed.id.split("/")[1]);
    const next = await checked({ ...inputs, config: { image } }, inputs);
    const after = await machine.update(failed.id, failed.properties, next);
    expect(after).toMatchObject({ state: "started", machineId: failed.properties["machineId"] });
  });

  test("after a crash at an update the state has the live configuration", async () => {
    const { id, inputs, state } = await make({ config: { image } });
    const bad = await checked({ ...inputs, config: { image, env: { MACHINES_SIMULATE: "crash" } } }, inputs);
    const failed = await failure(machine.update(id, state, bad));
    expect(failed.id).toBe(id);
    expect(failed.properties["version"]).not.toBe(state["version"]);
    const after = await machine.update(id, failed.properties, await checked({ ...bad, config: { image } }, bad));
    expect(after["state"]).toBe("started");
  });

  test("a job is waited for until it exits: exit code 0 is success, any other is a failure", async () => {
    const job = { image, restart: { policy: "no" } };
    const { state } = await make({ config: { ...job, env: { MACHINES_SIMULATE: "exit:0" } } });
    expect(["started", "stopped"]).toContain(state["state"]);
    const failed = await failure(
      machine.create(await checked({ config: { ...job, env: { MACHINES_SIMULATE: "exit:3" } } })),
    );
    expect(failed.message).toMatch(/code 3/);
  });

  test("checks that never pass end at the deadline, and the error names the check; waitForChecks: false does not wait", async () => {
    const config = {
      image,
      env: { MACHINES_SIMULATE: "checks:critical" },
      checks: { alive: { type: "tcp", port: 8080 } },
    };
    const inputs = await checked({ config, __context: { timeouts: { create: "2s" } } });
    const failed = await failure(machine.create(inputs));
    expect(failed.message).toMatch(/checks of Machine .* did not pass within 2s: .*alive is (critical|warning)/);
    // The next up waits for them again, and succeeds once waitForChecks is false.
    const later = await checked({ ...inputs, __context: { timeouts: { update: "2s" } } }, inputs);
    await expect(machine.update(failed.id, failed.properties, later)).rejects.toThrow(/did not pass within 2s/);
    const { id, inputs: calm, state } = await make({ config, waitForChecks: false });
    expect(state["state"]).toBe("started");
    // A change of metadata does not wait for checks that fail for another reason.
    const tagged = await checked({ ...calm, waitForChecks: true, config: { ...config, metadata: { a: "1" } } }, calm);
    expect((await machine.update(id, state, tagged))["version"]).toBe(state["version"]);
  });

  test("another client's lease is waited for and never stolen; the error names its holder (F06)", async () => {
    const { id, inputs, state } = await make({ config: { image } });
    const { data } = await send<{ data: { nonce: string } }>(service, "POST", at(state, "/lease"), {
      ttl: 600,
      description: "their deploy",
    });
    const next = await checked(
      { ...inputs, config: { image: "registry.example.com/web:6" }, __context: { timeouts: { update: "2s" } } },
      inputs,
    );
    await expect(machine.update(id, state, next)).rejects.toThrow(
      /was not released within 2s: .*currently held by .*expires at .*Nothing was changed/,
    );
    expect((await live(state)).version).toBe(state["version"]);
    const updating = machine.update(id, state, await checked({ ...next, __context: {} }, inputs));
    await expect
      .poll(() => service.requests.filter(({ status, path }) => status === 409 && path.endsWith("/lease")).length)
      .toBeGreaterThan(1);
    await send(service, "DELETE", at(state, "/lease"), undefined, { "svc-machine-lease-nonce": data.nonce });
    expect((await updating)["version"]).not.toBe(state["version"]);
    await expect(send(service, "GET", at(state, "/lease"))).rejects.toThrow(/404/);
  });

  describe("a stale read (F15)", () => {
    const image2 = "registry.example.com/web:8";

    test("an update that reads an old version reads again, and its state has the new one", async () => {
      const { id, inputs, state } = await make({ config: { image } });
      const next = await checked({ ...inputs, config: { image: image2 } }, inputs);
      // The first read is from before the update; later ones remain stale for a while.
      service.fail({ operation: "machines.get", when: "after", stale: 1, nth: 2, times: 3 });
      const after = await machine.update(id, state, next);
      expect(after["version"]).toBe((await live(state)).version);
      expect(after["config"]).toEqual({ image: image2 });
    });

    test("a refresh with a stale list reads the Machine itself", async () => {
      const { id, inputs, state } = await make({ config: { image } });
      const after = await machine.update(id, state, await checked({ ...inputs, config: { image: image2 } }, inputs));
      service.fail({ operation: "machines.list", when: "after", stale: 1 });
      expect((await machine.read(id, after))?.state).toEqual(after);
    });

    test("a stale read that remains stale fails, and nothing is forgotten", async () => {
      const { id, inputs, state } = await make({ config: { image } });
      const after = await machine.update(id, state, await checked({ ...inputs, config: { image: image2 } }, inputs));
      service.fail({ operation: "machines.list", when: "after", stale: 1, times: "always" });
      service.fail({ operation: "machines.get", when: "after", stale: 1, times: "always" });
      await expect(machine.read(id, after)).rejects.toThrow(
        /shows version .* and not the later one that this run has written/,
      );
      service.service.faults.clear();
    });
  });

  describe("a lease lost during an update (F07)", () => {
    const nextImage = { config: { image: "registry.example.com/web:7" } };
    const steal = (operation: string) => service.fail({ operation, when: "before", stealLease: { ttl: 1 } });

    test("before any write: it is acquired again, and the update continues", async () => {
      const { id, inputs, state } = await make({ config: { image } });
      steal("machines.update");
      const after = await machine.update(id, state, await checked({ ...inputs, ...nextImage }, inputs));
      expect((await live(state)).version).toBe(after["version"]);
      expect((await live(state))["config"]).toMatchObject(nextImage.config);
      await expect(send(service, "GET", at(state, "/lease"))).rejects.toThrow(/404/);
    });

    test("after the new version was created: the remaining steps are done", async () => {
      const { id, inputs, state } = await make({ config: { image } });
      const next = await checked({ ...inputs, ...nextImage, cordoned: true }, inputs);
      steal("machines.cordon");
      const updates = () => service.requests.filter(({ operation }) => operation === "machines.update").length;
      const before = updates();
      await machine.update(id, state, next);
      expect(await live(state)).toMatchObject({ config: nextImage.config, cordoned: true, state: "started" });
      expect(updates()).toBe(before + 1);
    });

    test("while another client changed the Machine: its change is not overwritten, and the current state is reported", async () => {
      const { id, inputs, state } = await make({ config: { image } });
      steal("machines.update");
      const theirs = { config: { image: "registry.example.com/theirs:1", env: { THEIRS: "1" } } };
      const updating = machine.update(id, state, await checked({ ...inputs, ...nextImage }, inputs));
      const refused = () =>
        service.requests.some(
          ({ operation, status, path }) => operation === "machines.update" && status === 409 && path === at(state),
        );
      await expect.poll(refused).toBe(true);
      // The other client's requests come first.
      service.fail({
        ...{ operation: "machines.acquireLease", when: "before", status: 409, times: "always" },
        body: { error: "lease currently held by them" },
      });
      const wrote = () =>
        send(service, "POST", at(state), theirs).then(
          () => true,
          () => false,
        );
      await expect.poll(wrote).toBe(true);
      service.service.faults.clear();
      const failed = await failure(updating);
      expect(failed.message).toMatch(/was changed outside of this program \(config.image, config.env/);
      expect((await live(state))["config"]).toEqual(theirs.config);
      // The state has the current values: the next up repairs it.
      expect(failed.properties["config"]).toMatchObject({ env: { THEIRS: "1" } });
    });

    test("a lease that is lost during a deletion does not prevent the deletion", async () => {
      const { id, state } = await make({ config: { image } });
      steal("machines.stop");
      await machine.delete(id, state);
      expect((await live(state)).state).toBe("destroyed");
    });

    test("repeatedly: the error says what is uncertain", async () => {
      const { id, inputs, state } = await make({ config: { image } });
      service.fail({ operation: "machines.update", when: "before", stealLease: { ttl: 1 }, times: 3 });
      await expect(machine.update(id, state, await checked({ ...inputs, ...nextImage }, inputs))).rejects.toThrow(
        /lease currently held by/,
      );
      expect((await live(state)).version).toBe(state["version"]);
    });
  });

  test("a refresh of many Machines costs one list, and one that the list omits is confirmed (F14)", async () => {
    const fresh = bind("Machine", service, { requestTimeoutSeconds: "20" });
    const all = await Promise.all(["a", "b", "c"].map((name) => make({ name: `many-${name}`, config: { image } })));
    const before = service.requests.length;
    const found = await Promise.all(all.map(({ id, state }) => fresh.read(id, state)));
    expect(found.every((one) => one !== undefined)).toBe(true);
    expect(service.requests.slice(before).map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /v1/apps/app/machines",
    ]);
  });

  test("unmodelled fields are sent from extra, shown as drift, and never dropped silently (R6)", async () => {
    const lenient = await startService({ strict: false });
    try {
      await makeApp(lenient, "app");
      const bound = bind("Machine", lenient);
      const services = [
        { protocol: "tcp", internalPort: 80 },
        { protocol: "tcp", internalPort: 81 },
        { protocol: "tcp", internalPort: 82 },
      ];
      const extra = { new_field: { deep: [1] }, services: [{}, { new_thing: true }], stop_config: { new_one: "x" } };
      const { inputs } = await bound.check({}, { app: "app", config: { image, services, extra } });
      const { id, state } = await bound.create(inputs);
      const { config } = await send<{ config: Record<string, unknown> }>(lenient, "GET", at(state));
      expect(config).toMatchObject({
        new_field: { deep: [1] },
        services: [{}, { internal_port: 81, new_thing: true }, {}],
        stop_config: { new_one: "x" },
      });
      expect((await bound.read(id, state))?.state).toEqual(state);
      await send(lenient, "POST", at(state), { config: { ...config, added_outside: 1 } });
      // A new run, because within one run reads are served from its earlier list.
      const next = bind("Machine", lenient, { requestTimeoutSeconds: "21" });
      const found = await next.read(id, state);
      expect(found?.inputs?.["config"]).toMatchObject({ extra: { ...extra, added_outside: 1 } });
      expect(await next.diff(id, found?.state ?? {}, inputs)).toBe("update");
    } finally {
      await lenient.close();
    }
  });

  test("adding the Machine's current region to the program changes nothing", async () => {
    const { id, inputs, state } = await make({ config: { image } });
    const region = String(state["region"]);
    expect(region).toMatch(/^[a-z]{3}$/);
    expect(await machine.diff(id, state, await checked({ ...inputs, region }, inputs))).toBe("same");
    expect(
      await machine.diff(id, state, await checked({ ...inputs, region: region === "ams" ? "fra" : "ams" }, inputs)),
    ).not.toBe("same");
  });

  test("unfinished steps remain to be done after a refresh", async () => {
    const config = { image, env: { MACHINES_SIMULATE: "crash" } };
    const inputs = await checked({ config });
    const failed = await failure(machine.create(inputs));
    const found = await machine.read(failed.id, failed.properties);
    expect(await machine.diff(failed.id, found?.state ?? {}, found?.inputs ?? inputs)).toBe("update");
  });

  test("a metadata key whose removal failed is removed by the next update", async () => {
    const { id, inputs, state } = await make({ config: { image, metadata: { keep: "1", gone: "x" } } });
    const next = await checked({ ...inputs, config: { image, metadata: { keep: "1" } } }, inputs);
    service.fail({ operation: "machines.patchMetadata", when: "before", status: 400, body: { error: "not now" } });
    const failed = await failure(machine.update(id, state, next));
    await machine.update(id, failed.properties, next);
    expect((await live(state))["config"]?.["metadata"]).not.toHaveProperty("gone");
  });

  test("one Machine with settings that we would refuse does not break reads of others", async () => {
    const { id, state } = await make({ config: { image } });
    service.fail({
      operation: "machines.list",
      when: "after",
      rewrite: (body) => [
        { id: "odd", state: "started", incomplete_config: { env: {} } },
        { id: "odder", state: "started", config: { image: "", schedule: "yearly" } },
        ...(body as unknown[]),
      ],
    });
    const next = bind("Machine", service, { requestTimeoutSeconds: "22" });
    expect((await next.read(id, state))?.state).toEqual(state);
  });

  test("a Machine that the previous lease holder started is stopped before it is destroyed", async () => {
    const { id, state } = await make({ config: { image }, state: "stopped" });
    const { data } = await send<{ data: { nonce: string } }>(service, "POST", at(state, "/lease"), { ttl: 600 });
    const nonce = { "svc-machine-lease-nonce": data.nonce };
    const before = service.requests.length;
    const deleting = machine.delete(id, state);
    const refused = () => service.requests.slice(before).some(({ status }) => status === 409);
    await expect.poll(refused).toBe(true);
    await send(service, "POST", at(state, "/start"), undefined, nonce);
    await send(service, "DELETE", at(state, "/lease"), undefined, nonce);
    await deleting;
    expect(await send<{ state: string }>(service, "GET", at(state))).toMatchObject({ state: "destroyed" });
  });

  test("a job that destroyed itself is not created again; up can recover from a failed one", async () => {
    const job = { image, autoDestroy: true };
    const { id, state } = await make({ config: { ...job, env: { MACHINES_SIMULATE: "exit:0" } } });
    const found = await machine.read(id, state);
    expect(found?.state).toMatchObject({ state: "destroyed" });
    // Unless the program requests it.
    expect(await machine.read(id, { ...found?.state, recreate: true })).toBeUndefined();
    service.fail(
      { operation: "machines.list", when: "after", rewrite: () => [] },
      { operation: "machines.get", when: "before", status: 404, body: { error: "machine not found" } },
    );
    expect((await bind("Machine", service, { requestTimeoutSeconds: "23" }).read(id, state))?.state).toMatchObject({
      state: "destroyed",
    });
    const failing = await checked({ config: { ...job, env: { MACHINES_SIMULATE: "exit:3" } } });
    await expect(machine.create(failing)).rejects.not.toBeInstanceOf(InitializationFailed);
  });

  test("the error for updating a Machine destroyed outside says what to do", async () => {
    const { id, inputs, state } = await make({ config: { image } });
    await send(service, "DELETE", `${at(state)}?force=true`);
    const next = await checked({ ...inputs, config: { image: "registry.example.com/web:7" } }, inputs);
    await expect(machine.update(id, state, next)).rejects.toThrow(
      /was destroyed outside of this program: run pulumi refresh/,
    );
  });

  test("a Machine that another client destroys or replaces meanwhile is still deleted (F20)", async () => {
    const slow = await startService({ delays: "believable" });
    try {
      await makeApp(slow, "app");
      const bound = bind("Machine", slow);
      for (const [method, rest, body] of [
        ["DELETE", "?force=true", undefined],
        ["POST", "", { config: { image: "registry.example.com/web:9" } }],
      ] as const) {
        const { inputs } = await bound.check({}, { app: "app", config: { image } });
        const { id, state } = await bound.create(inputs);
        await send(slow, method, at(state) + rest, body);
        await bound.delete(id, state);
        expect(await send<{ state: string }>(slow, "GET", at(state))).toMatchObject({ state: "destroyed" });
      }
    } finally {
      await slow.close();
    }
  });

  test("a Machine destroyed outside is gone, with proof (F11)", async () => {
    const { id, state } = await make({ config: { image } });
    await send(service, "DELETE", `${at(state)}?force=true`);
    await send(service, "GET", at(state, "/wait?state=destroyed"));
    expect(await machine.read(id, state)).toBeUndefined();
    await machine.delete(id, state);
  });
});
