// Inside a running Machine: commands, processes, signals, memory (docs/interface.md#commands,
// docs/interface.md#processes-and-signals, docs/interface.md#memory).
import { expect, test } from "vitest";
import type { ManualClock } from "../../../service/index.ts";
import { withApp, withStillClock, type Answer } from "../client.ts";

/** A running Machine, with the requests to it. */
async function setup(config: object = {}, more: object = {}) {
  const app = await withApp();
  const { id } = await app.machine(config, more);
  const one = `${app.machines}/${id}`;
  const exec = async (body: object) => (await app.call("POST", `${one}/exec`, body)).body;
  return {
    ...app,
    id,
    one,
    exec,
    out: async (...command: string[]) => (await exec({ command })).stdout,
    async environment(): Promise<Record<string, string>> {
      const lines: string[] = (await exec({ command: ["env"] })).stdout.trimEnd().split("\n");
      return Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      );
    },
  };
}

// --- exec ---

test.each([
  [["echo", "a", "b c"], "a b c\n", 0],
  [["/bin/echo", "a"], "a\n", 0],
  [["true"], "", 0],
  [["false"], "", 1],
  [["sh", "-c", "exit 3"], "", 3],
  [["sh", "-c", "echo 'one  two' \"three\" four\\ five"], "one  two three four five\n", 0],
  [["/bin/sh", "-c", "echo a"], "a\n", 0],
  [["sleep", "0"], "", 0],
])("exec of %j", async (command, stdout, exit_code) => {
  const { exec } = await setup();
  expect(await exec({ command })).toEqual({ stdout, stderr: "", exit_code, exit_signal: 0 });
});

test("an unknown command is 127, as in a shell, and the request succeeds", async () => {
  const { call, one } = await setup();
  const answer = await call("POST", `${one}/exec`, { command: ["frobnicate", "--all"] });
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ exit_code: 127, stderr: expect.stringContaining("not found") });
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
});

test("cmd is the older form, a single text", async () => {
  const { exec } = await setup();
  expect((await exec({ cmd: "echo 'a b' c" })).stdout).toBe("a b c\n");
});

test("the hostname is the Machine's id by default", async () => {
  const { out, id } = await setup();
  expect(await out("hostname")).toBe(`${id}\n`);
  expect(await (await setup({ dns: { hostname: "db" } })).out("hostname")).toBe("db\n");
});

test("stdin is the command's input", async () => {
  const { exec } = await setup();
  expect((await exec({ command: ["cat"], stdin: "from outside" })).stdout).toBe("from outside");
});

test("the environment has the App, the Machine, its region, version and address, and env", async () => {
  const { environment, call, one, id } = await setup({ env: { A: "1", B: "x=y" } }, { region: "fra" });
  const { version, private_ip } = (await call("GET", one)).body;
  expect(await environment()).toMatchObject({
    FLY_APP_NAME: "web",
    FLY_MACHINE_ID: id,
    FLY_REGION: "fra",
    FLY_MACHINE_VERSION: version,
    FLY_PRIVATE_IP: private_ip,
    FLY_IMAGE_REF: "nginx",
    FLY_VM_MEMORY_MB: "256",
    A: "1",
    B: "x=y",
  });
});

test("a Machine has the App's secrets from its creation or last update, and env takes precedence", async () => {
  const { call, machine, machines, ...app } = await withApp();
  const set = (values: object) => call("POST", "/apps/web/secrets", { values });
  await set({ TOKEN: "first", A: "secret" });
  const { id } = await machine({ env: { A: "env" } });
  const printed = async () => (await call("POST", `${machines}/${id}/exec`, { command: ["env"] })).body.stdout;
  expect(await printed()).toMatch(/^TOKEN=first$/m);
  expect(await printed()).toMatch(/^A=env$/m);
  await set({ TOKEN: "second", LATER: "1" });
  await call("POST", `${machines}/${id}/restart`);
  expect(await app.state(id)).toBe("started");
  expect(await printed()).toMatch(/^TOKEN=first$/m);
  expect(await printed()).not.toContain("LATER");
  await call("POST", `${machines}/${id}`, { config: { image: "nginx" } });
  expect(await printed()).toMatch(/^TOKEN=second$/m);
  await set({ TOKEN: null });
  await call("POST", `${machines}/${id}`, { config: { image: "nginx" } });
  expect(await printed()).not.toContain("TOKEN");
});

test("skip_secrets omits the App's secrets, in create and in update", async () => {
  const { call, machine, machines } = await withApp();
  await call("POST", "/apps/web/secrets/TOKEN", { value: "canary" });
  const { id } = await machine({}, { skip_secrets: true });
  const printed = async () => (await call("POST", `${machines}/${id}/exec`, { command: ["env"] })).body.stdout;
  expect(await printed()).not.toContain("canary");
  await call("POST", `${machines}/${id}`, { config: { image: "nginx" } });
  expect(await printed()).toContain("TOKEN=canary");
  await call("POST", `${machines}/${id}`, { config: { image: "nginx" }, skip_secrets: true });
  expect(await printed()).not.toContain("canary");
});

test("files contain a raw value or a secret, both base64; other files do not exist", async () => {
  const { call, machine, machines } = await withApp();
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  await call("POST", "/apps/web/secrets/PEM", { value: base64("-----BEGIN-----") });
  const { id } = await machine({
    files: [
      { guest_path: "/etc/app.conf", raw_value: base64("a = 1\n") },
      { guest_path: "/etc/key.pem", secret_name: "PEM" },
      { guest_path: "/etc/none", secret_name: "constructor" },
    ],
  });
  const cat = async (...paths: string[]) =>
    (await call("POST", `${machines}/${id}/exec`, { command: ["cat", ...paths] })).body;
  expect(await cat("/etc/app.conf")).toMatchObject({ stdout: "a = 1\n", exit_code: 0 });
  expect(await cat("/etc/app.conf", "/etc/key.pem")).toMatchObject({ stdout: "a = 1\n-----BEGIN-----", exit_code: 0 });
  expect(await cat("/etc/none")).toMatchObject({ stdout: "", exit_code: 0 });
  expect(await cat("/etc/shadow")).toMatchObject({
    stdout: "",
    exit_code: 1,
    stderr: expect.stringContaining("/etc/shadow"),
  });
});

/** Lets time pass until a long poll is answered, and returns the duration. */
async function held(clock: ManualClock, answer: Promise<Answer>) {
  const began = clock.now();
  for (;;) {
    const turn = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
    const answered = await Promise.race([answer, turn]);
    if (answered) return { ...answered, ms: clock.now() - began };
    clock.advance(100);
  }
}

test("a slow command is answered when it has exited", async () => {
  const { call, clock, machine, machines } = await withStillClock();
  const { id } = await machine();
  clock.advance(1000);
  const answer = await held(clock, call("POST", `${machines}/${id}/exec`, { command: ["sleep", "10"], timeout: 20 }));
  expect(answer).toMatchObject({ status: 200, body: { exit_code: 0 } });
  expect(answer.ms).toBeGreaterThanOrEqual(10_000);
});

test("a command that does not exit in time is 408, after the requested timeout or 60 seconds", async () => {
  const { call, clock, machine, machines } = await withStillClock();
  const { id } = await machine();
  clock.advance(1000);
  for (const [timeout, seconds] of [
    [5, 5],
    [undefined, 60],
    [0, 60],
  ] as const) {
    const answer = await held(clock, call("POST", `${machines}/${id}/exec`, { cmd: "sleep 1000", timeout }));
    expect(answer).toMatchObject({
      status: 408,
      body: { error: `deadline_exceeded: the command did not end within ${seconds} s` },
    });
    expect(answer.ms).toBeGreaterThanOrEqual(seconds * 1000);
  }
});

test.each([
  [{}, "command"],
  [{ command: [] }, "command"],
  [{ cmd: "" }, "command"],
  [{ cmd: "  " }, "command"],
  [{ command: "ls" }, "command"],
  [{ command: [5] }, "command"],
  [{ command: ["ls"], timeout: 61 }, "timeout"],
  [{ command: ["ls"], timeout: -1 }, "timeout"],
  [{ command: ["ls"], timeout: "5" }, "timeout"],
  [{ command: ["ls"], container: "none" }, "container"],
  [{ command: ["ls"], container: "side", machine: true }, "container"],
])("exec of %j is 400 and names the field", async (body, field) => {
  const { call, one } = await setup("container" in body ? { containers: [{ name: "side", image: "busybox" }] } : {});
  const answer = await call("POST", `${one}/exec`, body);
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(field)]);
});

test("a command may run in a container of the Machine", async () => {
  const { exec } = await setup({ containers: [{ name: "side", image: "busybox" }] });
  expect((await exec({ command: ["echo", "a"], container: "side" })).stdout).toBe("a\n");
});

test("requests that need a running Machine are 412 if it is stopped, and 404 if there is none", async () => {
  const { call, one, machines } = await setup({}, { skip_launch: true });
  for (const [method, path, body] of [
    ["POST", "/exec", { command: ["true"] }],
    ["GET", "/ps"],
    ["POST", "/signal", { signal: "SIGHUP" }],
    ["GET", "/memory"],
    ["PUT", "/memory", { limit_mb: 256 }],
    ["POST", "/memory/reclaim", { amount_mb: 1 }],
  ] as const) {
    expect([path, (await call(method, one + path, body)).status]).toEqual([path, 412]);
    expect([path, (await call(method, `${machines}/00000000000000${path}`, body)).status]).toEqual([path, 404]);
  }
});

// --- ps ---

test("processes show what the Machine runs and which ports it listens on", async () => {
  const { call, one } = await setup({
    init: { entrypoint: ["/bin/server"], cmd: ["--port", "8080"] },
    services: [{ protocol: "tcp", internal_port: 8080 }],
  });
  const { status, body } = await call("GET", `${one}/ps`);
  expect(status).toBe(200);
  for (const process of body)
    expect(process).toEqual({
      pid: expect.any(Number),
      command: expect.any(String),
      directory: expect.any(String),
      cpu: expect.any(Number),
      rss: expect.any(Number),
      rtime: expect.any(Number),
      stime: expect.any(Number),
      listen_sockets: expect.any(Array),
    });
  expect(body.at(-1)).toMatchObject({
    command: "/bin/server --port 8080",
    listen_sockets: [{ proto: "tcp", address: "0.0.0.0:8080" }],
  });
});

test("processes are sorted by a field in either direction, by default by pid", async () => {
  const { call, one } = await setup();
  const column = async (query: string, field: string) =>
    (await call("GET", `${one}/ps${query}`)).body.map((process: Record<string, unknown>) => process[field]);
  for (const field of ["pid", "rss", "cpu", "rtime", "stime"]) {
    const up: number[] = await column(`?sort_by=${field}&order=asc`, field);
    expect(up).toEqual([...up].sort((a, b) => a - b));
    const down: number[] = await column(`?sort_by=${field}&order=desc`, field);
    expect(down).toEqual([...down].sort((a, b) => b - a));
  }
  const pids: number[] = await column("", "pid");
  expect(pids.length).toBeGreaterThan(1);
  expect(pids).toEqual([...pids].sort((a, b) => a - b));
  expect(await column("?order=desc", "pid")).toEqual([...pids].reverse());
  expect(await column("?sort_by=command", "command")).toEqual([...(await column("", "command"))].sort());
});

test.each(["sort_by=bogus", "order=up", "sort_by=__proto__"])("ps with %s is 400", async (query) => {
  const { call, one } = await setup();
  expect((await call("GET", `${one}/ps?${query}`)).status).toBe(400);
});

// --- signals ---

const ending = ["SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGKILL", "SIGQUIT", "SIGSEGV", "SIGTERM", "SIGTRAP"];
const going = ["SIGALRM", "SIGHUP", "SIGPIPE", "SIGUSR1", "SIGUSR2"];

test.each([...ending.map((name) => [name, "stopped"]), ...going.map((name) => [name, "started"])])(
  "after %s the Machine is %s under a policy that never restarts",
  async (signal, state) => {
    const app = await setup({ restart: { policy: "no" } });
    expect(await app.call("POST", `${app.one}/signal`, { signal })).toMatchObject({ status: 200, body: { ok: true } });
    await expect.poll(() => app.state(app.id)).toBe(state);
  },
);

test("a number selects a signal, and the exit event shows it", async () => {
  const { call, one } = await setup({ restart: { policy: "no" } });
  expect((await call("POST", `${one}/signal`, { signal: 9 })).status).toBe(200);
  const latest = async () => (await call("GET", `${one}/events?limit=1`)).body[0];
  await expect.poll(latest).toMatchObject({
    type: "exit",
    status: "stopped",
    source: "flyd",
    request: { exit_event: { exit_code: 137, guest_signal: 9, requested_stop: false, oom_killed: false } },
  });
});

test.each([
  ["on-failure", "started", 1],
  ["always", "started", 1],
  ["no", "stopped", 0],
])(
  "a process that was ended by a signal counts as a failure for the policy %s: then %s",
  async (policy, state, restarts) => {
    const app = await withStillClock();
    const { id } = await app.machine({ restart: { policy } });
    const one = `${app.machines}/${id}`;
    app.clock.advance(1000);
    await app.call("POST", `${one}/signal`, { signal: "SIGKILL" });
    expect(await app.state(id)).toBe("stopped");
    app.clock.advance(3000);
    expect(await app.state(id)).toBe(state);
    const events = (await app.call("GET", `${one}/events`)).body;
    expect(events.filter(({ type }: { type: string }) => type === "restart")).toHaveLength(restarts);
  },
);

test("a Machine with auto_destroy also destroys itself after a signal", async () => {
  const app = await setup({ auto_destroy: true });
  await app.call("POST", `${app.one}/signal`, { signal: "SIGTERM" });
  await expect.poll(() => app.state(app.id)).toBe("destroyed");
});

test("a deaf process reacts only to SIGKILL", async () => {
  const app = await setup({ image: "nginx:simulate-deaf", restart: { policy: "no" } });
  await app.call("POST", `${app.one}/signal`, { signal: "SIGTERM" });
  expect(await app.state(app.id)).toBe("started");
  await app.call("POST", `${app.one}/signal`, { signal: "SIGKILL" });
  expect(await app.state(app.id)).toBe("stopped");
});

test.each([undefined, {}, { signal: "SIGWINCH" }, { signal: 99 }, { signal: "9" }, { signal: null }, []])(
  "the signal %j is 400",
  async (body) => {
    const { call, one } = await setup();
    expect((await call("POST", `${one}/signal`, body)).status).toBe(400);
  },
);

test("a lease does not block commands, processes, signals and memory", async () => {
  const { call, one } = await setup();
  await call("POST", `${one}/lease`);
  for (const [method, path, body] of [
    ["POST", "/exec", { command: ["true"] }],
    ["GET", "/ps"],
    ["POST", "/signal", { signal: "SIGHUP" }],
    ["PUT", "/memory", { limit_mb: 256 }],
  ] as const)
    expect([path, (await call(method, one + path, body)).status]).toEqual([path, 200]);
});

// --- memory ---

test("the memory limit is the configuration's until it is changed, up to the configured maximum", async () => {
  const { call, one } = await setup({ guest: { cpus: 1, memory_mb: 512, max_memory_mb: 1024 } });
  const get = async () => (await call("GET", `${one}/memory`)).body;
  expect(await get()).toEqual({ limit_mb: 512, available_mb: 512 });
  const set = (limit_mb: unknown) => call("PUT", `${one}/memory`, { limit_mb });
  expect(await set(1024)).toMatchObject({ status: 200, body: { limit_mb: 1024, available_mb: 0 } });
  expect(await get()).toEqual({ limit_mb: 1024, available_mb: 0 });
  expect(await set(128)).toMatchObject({ status: 200, body: { limit_mb: 128, available_mb: 896 } });
  for (const limit of [0, -1, 1025, 1.5, "512", undefined])
    expect([limit, (await set(limit)).status]).toEqual([limit, 400]);
  expect(await get()).toEqual({ limit_mb: 128, available_mb: 896 });
});

test("without a configured maximum the limit cannot exceed the memory", async () => {
  const { call, one } = await setup({ guest: { cpus: 2 } });
  expect((await call("PUT", `${one}/memory`, { limit_mb: 513 })).status).toBe(400);
  expect((await call("PUT", `${one}/memory`, { limit_mb: 512 })).status).toBe(200);
});

test("the limit is not part of the configuration: it creates no version, and ends with the version", async () => {
  const { call, one } = await setup();
  const { version } = (await call("GET", one)).body;
  await call("PUT", `${one}/memory`, { limit_mb: 100 });
  expect((await call("GET", one)).body).toMatchObject({ version, config: { image: "nginx" } });
  await call("POST", one, { config: { image: "nginx" } });
  expect((await call("GET", `${one}/memory`)).body.limit_mb).toBe(256);
});

test("reclaiming takes at most the free memory", async () => {
  const { call, one } = await setup({ guest: { cpus: 1, memory_mb: 1024 } });
  const reclaim = async (amount_mb: unknown) => (await call("POST", `${one}/memory/reclaim`, { amount_mb })).body;
  expect(await reclaim(100)).toEqual({ actual_mb: 100 });
  const { actual_mb } = await reclaim(5000);
  expect(actual_mb).toBeGreaterThan(100);
  expect(actual_mb).toBeLessThan(1024);
  await call("PUT", `${one}/memory`, { limit_mb: 1 });
  expect(await reclaim(10)).toEqual({ actual_mb: 0 });
  for (const amount of [0, -1, "1", undefined])
    expect((await call("POST", `${one}/memory/reclaim`, { amount_mb: amount })).status).toBe(400);
});
