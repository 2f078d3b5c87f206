// What the functions return about Machines, and waitForMachine.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { callings, type Calling } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";

describe.each(callings)("functions about Machines, $name binding", ({ name, start }) => {
  let service: TestService;
  let calling: Calling;
  let [web, sleeper, gone] = ["", "", ""];
  const at = (machine: string) => ({ app: "shop", machine });
  const answerOf = async (called: string, args: Record<string, unknown>) => (await calling.call(called, args)).answer;

  beforeAll(async () => {
    service = await startService();
    calling = await start(service);
    await makeApp(service, "shop");
    web = await makeMachine(service, "shop", {
      name: "web",
      region: "ams",
      config: {
        image,
        env: { SNAKE_CASE: "kept" },
        guest: { cpus: 2, memory_mb: 512 },
        mounts: [],
        metadata: { role: "web", "pulumi-op": "ours", fly_process_group: "app" },
      },
    });
    sleeper = await makeMachine(service, "shop", { region: "fra", skip_launch: true, config: { image } });
    gone = await makeMachine(service, "shop", { region: "fra", config: { image } });
    await send(service, "GET", `/v1/apps/shop/machines/${web}/wait?state=started`);
    await send(service, "DELETE", `/v1/apps/shop/machines/${gone}?force=true`);
  });
  afterAll(async () => {
    await calling.close();
    await service.close();
  });

  test("getMachine finds a Machine by its id or its bare id, and returns the names of Machine inputs", async () => {
    const { answer, isSecret } = await calling.call("getMachine", at(`shop/${web}`));
    expect(answer).toMatchObject({ id: `shop/${web}`, machineId: web, app: "shop", name: "web", state: "started" });
    expect(answer["config"]).toMatchObject({
      image,
      env: { SNAKE_CASE: "kept" },
      guest: { cpus: 2, memoryMb: 512 },
      metadata: { role: "web" },
    });
    expect(answer["version"]).toMatch(/^[0-9A-Z]{26}$/);
    expect(answer["imageRef"]).toMatchObject({ repository: "web", tag: "1" });
    expect(isSecret).toBe(false);
    expect(answer).toEqual(await answerOf("getMachine", at(web)));
    // Only the role, without the tags of the provider or the platform.
    expect(Object.keys((answer["config"] as { metadata: object }).metadata)).toEqual(["role"]);
  });

  test("no function returns the nonce of a Machine's lease", async () => {
    const made = await makeMachine(service, "shop", { region: "lhr", lease_ttl: 600, config: { image } });
    const lease = await send<{ data: { nonce?: string } }>(service, "GET", `/v1/apps/shop/machines/${made}/lease`);
    const answers = await Promise.all([
      answerOf("getMachine", at(made)),
      answerOf("getMachines", { app: "shop" }),
      answerOf("getMachineLease", at(made)),
    ]);
    expect(answers[2]).toMatchObject({ held: true });
    expect(JSON.stringify(answers)).not.toContain("nonce");
    if (lease.data.nonce !== undefined) expect(JSON.stringify(answers)).not.toContain(lease.data.nonce);
    await send(service, "DELETE", `/v1/apps/shop/machines/${made}?force=true`).catch(() => undefined);
  });

  test("getMachines filters by region, state and metadata, and lists destroyed Machines on request", async () => {
    const ids = async (filters: Record<string, unknown>) => {
      const { machines } = (await answerOf("getMachines", { app: "shop", ...filters })) as {
        machines: { machineId: string }[];
      };
      return machines.map(({ machineId }) => machineId);
    };
    expect(await ids({ region: "ams" })).toEqual([web]);
    expect(await ids({ region: "fra" })).toEqual([sleeper]);
    expect((await ids({ region: "fra", includeDeleted: true })).sort()).toEqual([sleeper, gone].sort());
    expect(await ids({ region: "fra", states: ["created", "stopped"] })).toEqual([sleeper]);
    expect(await ids({ region: "fra", states: ["started"] })).toEqual([]);
    expect(await ids({ states: [], metadata: { role: "web" } })).toEqual([web]);
    await expect(calling.call("getMachines", { app: "shop", states: ["failed"] })).rejects.toThrow(/states\[0\]: got/);
  });

  test("getMachineEvents lists the newest first, up to the limit", async () => {
    const { events } = (await answerOf("getMachineEvents", at(web))) as {
      events: { type: string; timestamp: number }[];
    };
    expect(events.map(({ type }) => type)).toEqual(["start", "launch", "launch"]);
    expect(events.map(({ timestamp }) => timestamp)).toEqual(
      events.map(({ timestamp }) => timestamp).toSorted((a, b) => b - a),
    );
    expect(await answerOf("getMachineEvents", { ...at(web), limit: 1 })).toEqual({ events: events.slice(0, 1) });
    await expect(calling.call("getMachineEvents", { ...at(web), limit: 51 })).rejects.toThrow(/limit: got 51/);
  });

  test("getMachineVersions lists every configuration with the names of Machine inputs", async () => {
    const made = await makeMachine(service, "shop", { region: "lhr", config: { image, env: { A_B: "1" } } });
    await send(service, "POST", `/v1/apps/shop/machines/${made}`, { config: { image, env: { A_B: "2" } } });
    const { versions } = (await answerOf("getMachineVersions", at(made))) as {
      versions: { version: string; config: { env: object } }[];
    };
    expect(versions.map(({ config }) => config.env)).toEqual([{ A_B: "2" }, { A_B: "1" }]);
    expect(versions[0]?.version).toBe((await answerOf("getMachine", at(made)))["version"]);
  });

  test("getMachineProcesses lists running processes in the requested order", async () => {
    const pids = async (sorting: object) => {
      const { processes } = (await answerOf("getMachineProcesses", { ...at(web), ...sorting })) as {
        processes: { pid: number; command: string }[];
      };
      return processes.map(({ pid }) => pid);
    };
    const up = await pids({ sortBy: "pid", order: "asc" });
    expect(up.length).toBeGreaterThan(1);
    expect(await pids({ sortBy: "pid", order: "desc" })).toEqual(up.toReversed());
    await expect(pids({ sortBy: "name" })).rejects.toThrow(/sortBy: got "name"/);
    await expect(answerOf("getMachineProcesses", at(sleeper))).rejects.toThrow(/machines.processes answered 412/);
  });

  test("getMachineMemory shows the limit that was set", async () => {
    await send(service, "PUT", `/v1/apps/shop/machines/${web}/memory`, { limit_mb: 300 });
    expect(await answerOf("getMachineMemory", at(web))).toEqual({ limitMb: 300, availableMb: 212 });
  });

  test("getMachineMetadata returns others' keys, without the provider's own tags", async () => {
    expect(await answerOf("getMachineMetadata", at(web))).toEqual({
      metadata: { role: "web", fly_process_group: "app" },
    });
  });

  test("getMachineLease returns no holder, a holder, or that there is no Machine", async () => {
    expect(await answerOf("getMachineLease", at(web))).toEqual({ held: false });
    const path = `/v1/apps/shop/machines/${web}/lease`;
    const { data } = await send<{ data: { nonce: string; expires_at: number } }>(service, "POST", path, {
      ttl: 60,
      description: "deploying",
    });
    const { answer, isSecret } = await calling.call("getMachineLease", at(web));
    expect(answer).toMatchObject({
      held: true,
      description: "deploying",
      expiresAt: new Date(data.expires_at * 1000).toISOString(),
    });
    expect([isSecret, JSON.stringify(answer).includes(data.nonce)]).toEqual([false, false]);
    await send(service, "DELETE", path, undefined, { "svc-machine-lease-nonce": data.nonce });
    await expect(calling.call("getMachineLease", at("0000000000000a"))).rejects.toThrow(/404: .*machine not found/);
  });

  test("waitForMachine returns the first of the states that is reached, and its version", async () => {
    const live = await answerOf("getMachine", at(web));
    const reached = { state: "started", version: live["version"] };
    expect(await answerOf("waitForMachine", at(web))).toEqual(reached);
    const args = { ...at(web), states: ["stopped", "started"], version: live["version"] };
    expect(await answerOf("waitForMachine", args)).toEqual(reached);
  });

  test("waitForMachine waits for a later state", async () => {
    const made = await makeMachine(service, "shop", { region: "lhr", skip_launch: true, config: { image } });
    const waiting = answerOf("waitForMachine", at(made));
    await expect.poll(() => service.service.context.waits.size).toBe(1);
    await send(service, "POST", `/v1/apps/shop/machines/${made}/start`);
    expect(await waiting).toMatchObject({ state: "started" });
  });

  test("waitForMachine needs an existing App to report a Machine destroyed, also in a preview", async () => {
    const states = ["destroyed"];
    await expect(calling.call("waitForMachine", { app: "nope", machine: "1", states })).rejects.toThrow(/answered 404/);
    const args = { app: "shop", machine: "0123456789abcd", states };
    expect((await calling.call("waitForMachine", args)).answer).toEqual({ state: "destroyed" });
    const previewed = await calling.call("waitForMachine", args, { isPreview: true });
    expect(previewed.isKnown ? previewed.answer : { state: "destroyed" }).toEqual({ state: "destroyed" });
  });

  test("waitForMachine times out with the Machine's current state", async () => {
    const args = { ...at(sleeper), states: ["started"], timeoutSeconds: 1 };
    await expect(calling.call("waitForMachine", args)).rejects.toThrow(
      new RegExp(`Machine ${sleeper} was not started within 1s. It is (created|stopped)`),
    );
    await expect(calling.call("waitForMachine", { ...at(web), states: [] })).rejects.toThrow(/states: must hold a/);
  });

  test("in a preview waitForMachine does not wait; functions that only read return known values", async () => {
    const before = service.requests.length;
    const args = { ...at(web), states: ["stopped"] };
    const { answer, isKnown } = await calling.call("waitForMachine", args, { isPreview: true });
    const asked = service.requests.slice(before).map(({ operation }) => operation);
    // The engine rejects unknown values from a plugin's function.
    if (name === "dynamic") expect([isKnown, asked]).toEqual([false, []]);
    else expect([answer["state"], asked]).toEqual(["started", ["machines.get"]]);
    expect((await calling.call("getMachine", at(web), { isPreview: true })).isKnown).toBe(true);
  });

  test.each([
    "getMachine",
    "getMachineEvents",
    "getMachineVersions",
    "getMachineProcesses",
    "getMachineMemory",
    "getMachineMetadata",
    "getMachineLease",
    "waitForMachine",
  ])("%s in an App that does not exist returns the service's 404", async (called) => {
    const call = calling.call(called, { app: "nowhere", machine: web });
    await expect(call).rejects.toThrow(/answered 404: .*app not found/i);
  });

  test("getMachines in an App that does not exist returns the service's 404", async () => {
    await expect(calling.call("getMachines", { app: "nowhere" })).rejects.toThrow(/machines.list answered 404/);
  });
});
