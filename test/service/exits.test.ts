// What an exit event says of the program that has ended: its code, its restarts and its last lines.
import { expect, test } from "vitest";
import type { ManualClock } from "../../service/index.ts";
import { withApp, withStillClock } from "./client.ts";

interface Exit {
  readonly type: string;
  readonly status: string;
  readonly request: {
    readonly restart_count: number;
    readonly exit_event: Readonly<Record<string, unknown>> & { readonly last_lines?: readonly string[] };
  };
}

type App = Awaited<ReturnType<typeof withApp<ManualClock>>>;

/** The exits of a Machine, newest first. */
const exitsOf = async ({ call, machines }: Pick<App, "call" | "machines">, id: string): Promise<Exit[]> =>
  (await call("GET", `${machines}/${id}/events?limit=50`)).body.filter(
    ({ request }: Partial<Exit>) => request?.exit_event !== undefined,
  );

const script = (text: string) => ({ init: { cmd: ["sh", "-c", text] } });

/** What the events say once a Machine with this configuration has ended; undefined if it runs on. */
async function ended(config: object, app?: Pick<App, "call" | "machine" | "machines">) {
  const used = app ?? (await withApp());
  const { id } = await used.machine({ restart: { policy: "no" }, ...config });
  const [exit] = await exitsOf(used, id);
  return exit && { code: exit.request.exit_event["exit_code"], lines: exit.request.exit_event.last_lines };
}

test("an exit event has the last five lines of the program, oldest first", async () => {
  expect(await ended(script("echo cannot read config; exit 3"))).toEqual({ code: 3, lines: ["cannot read config"] });
  expect(await ended(script("echo 1; echo 2 >&2; echo 3; echo 4; echo ''; echo '6 \"six\"'"))).toEqual({
    code: 0,
    lines: ["2", "3", "4", "", '6 "six"'],
  });
  expect(await ended(script("false"))).toEqual({ code: 1, lines: undefined });
});

test("a long line is cut at 500 characters, and no character is divided", async () => {
  const lines = async (text: string) => (await ended({ init: { cmd: ["echo", text] } }))?.lines;
  expect(await lines("x".repeat(500))).toEqual(["x".repeat(500)]);
  expect(await lines("x".repeat(501))).toEqual([`${"x".repeat(499)}…`]);
  expect(await lines("🦆".repeat(500))).toEqual(["🦆".repeat(500)]);
  expect(await lines("🦆".repeat(501))).toEqual([`${"🦆".repeat(499)}…`]);
});

test("values of the App's secrets are masked in the last lines, and short ones are not", async () => {
  const app = await withApp();
  const key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----\n";
  const values = {
    ...{ PASSWORD: "correct horse", LONGER: "correct horse battery", MODE: "on", LONG: "s3cret".repeat(200) },
    ...{ QUOTED: 'say "please"', FILE: Buffer.from(key).toString("base64") },
  };
  await app.call("POST", "/apps/web/secrets", { values });
  const files = [{ guest_path: "/key", secret_name: "FILE" }];
  const lines = async (text: string) => (await ended({ ...script(text), files }, app))?.lines;
  expect(await lines('echo "postgres://me:$PASSWORD@db, mode $MODE"')).toEqual(["postgres://me:[secret]@db, mode on"]);
  expect(await lines("echo $LONGER, $PASSWORD$PASSWORD")).toEqual(["[secret], [secret][secret]"]);
  // It would be cut in the middle of the value.
  expect(await lines(`echo ${"x".repeat(450)} $LONG and more`)).toEqual([`${"x".repeat(450)} [secret] and more`]);
  // As a program writes it in JSON, and as the file has it.
  expect(await lines(`echo '{"a":"say \\"please\\""}'; echo MIIEvQIBADANBgkq`)).toEqual([
    '{"a":"[secret]"}',
    "[secret]",
  ]);
  // A Machine without the App's secrets does not show what they are.
  const { id } = await app.machine(
    { ...script("echo correct horse"), restart: { policy: "no" } },
    { skip_secrets: true },
  );
  expect((await exitsOf(app, id))[0]?.request.exit_event.last_lines).toEqual(["correct horse"]);
});

test("each exit has the lines of its own run, also when the Machine restarts or destroys itself", async () => {
  const app = await withApp();
  const failing = {
    ...script("echo at $FLY_MACHINE_VERSION; exit 1"),
    restart: { policy: "on-failure", max_retries: 2 },
  };
  const { id, version } = await app.machine(failing);
  const { body: updated } = await app.call("POST", `${app.machines}/${id}`, { config: { image: "nginx", ...failing } });
  const runs = (await exitsOf(app, id)).map(({ request }) => request.exit_event.last_lines);
  expect(runs).toEqual([updated.version, version].flatMap((one) => Array.from({ length: 3 }, () => [`at ${one}`])));
  const { id: other } = await app.machine({ ...script("echo done; exit 4"), auto_destroy: true });
  expect(await app.state(other)).toBe("destroyed");
  expect((await exitsOf(app, other))[0]?.request.exit_event).toMatchObject({ exit_code: 4, last_lines: ["done"] });
});

test.each(["exit:3", "oom", "crash"])(
  "MACHINES_SIMULATE=%s says in its last lines what is simulated",
  async (asked) => {
    const found = await ended({ env: { MACHINES_SIMULATE: asked } });
    expect(found?.lines?.at(-1)).toContain(`MACHINES_SIMULATE=${asked}`);
  },
);

test("restart_count counts the restarts since the last start on request, however long they took", async () => {
  const app = await withStillClock();
  const { id } = await app.machine({ ...script("sleep 100; exit 3"), restart: { policy: "on-failure" } });
  const counts = async () => (await exitsOf(app, id)).map(({ request }) => request.restart_count);
  // Only those of the last five minutes count against max_retries.
  for (let second = 0; second < 1210; second++) app.clock.advance(1000);
  expect(await counts()).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  app.clock.advance(2000);
  await app.call("POST", `${app.machines}/${id}/stop`);
  app.clock.advance(2000);
  expect((await exitsOf(app, id))[0]).toMatchObject({
    status: "stopped",
    request: { restart_count: 12, exit_event: { requested_stop: true, restarting: false } },
  });
  await app.call("POST", `${app.machines}/${id}/start`);
  app.clock.advance(101_000);
  expect((await exitsOf(app, id))[0]).toMatchObject({
    status: "stopped",
    request: { restart_count: 0, exit_event: { exit_code: 3, requested_stop: false, restarting: true } },
  });
});

test("the exit of a requested restart says that it was requested and that the Machine restarts", async () => {
  const app = await withApp();
  const { id } = await app.machine();
  await app.call("POST", `${app.machines}/${id}/restart`);
  expect((await exitsOf(app, id))[0]?.request.exit_event).toMatchObject({ requested_stop: true, restarting: true });
});

// --- which simulated programs end ---

test.each<[readonly string[], number]>([
  [["true"], 0],
  [["/bin/false"], 1],
  [["exit", "7"], 7],
  [["echo", "hello"], 0],
  [["sleep", "0"], 0],
  [["sh", "-c", "exit 300"], 44],
  [["/bin/sh", "-c", "false && exit 3; true || exit 4; exit 5"], 5],
  [["bash", "-c", "false || sh -c 'echo inner; exit 6' && echo not; exit"], 6],
  [["/usr/bin/bash", "-lc", "true &&\n\n  exit 8\n"], 8],
])("the simulated program %j ends with code %i, whatever the restart policy", async (cmd, code) => {
  for (const policy of ["no", "on-failure", "always"])
    expect(await ended({ init: { cmd }, restart: { policy } })).toMatchObject({ code });
  expect(await ended({ init: { entrypoint: cmd.slice(0, 1), cmd: cmd.slice(1) } })).toMatchObject({ code });
});

test.each<[readonly string[]]>([
  [["sleep", "infinity"]],
  [["sleep", "inf"]],
  [["node", "server.js"]],
  [["bin/migrate"]],
  [["sh", "-c", "echo starting; exec node server.js"]],
  [["sh", "-c", "echo starting; sleep infinity; exit 1"]],
  [["sh", "-c", "trap 'exit 3' TERM; while true; do sleep 1; done"]],
  [["sh", "-c", "true | false"]],
  [["sh", "-c", "exit 1 &"]],
  [["sh", "-c", "echo $(date)"]],
  [["sh", "-c", "echo 'open"]],
  [["sh"]],
])("the simulated program %j runs on, whatever the restart policy", async (cmd) => {
  const app = await withApp();
  for (const policy of ["no", "on-failure", "always"]) {
    const { id } = await app.machine({ init: { cmd }, restart: { policy } });
    expect([policy, await app.state(id)]).toEqual([policy, "started"]);
  }
});

test("a sandbox that is never restarted and sleeps runs commands", async () => {
  const app = await withStillClock();
  const { id } = await app.machine({ restart: { policy: "no" }, init: { cmd: ["sleep", "infinity"] } });
  app.clock.advance(60_000);
  const { body } = await app.call("GET", `${app.machines}/${id}/wait?state=started&timeout=1`);
  expect(body).toMatchObject({ ok: true, state: "started" });
  const command = ["sh", "-c", "echo out; echo err >&2; exit 5"];
  expect((await app.call("POST", `${app.machines}/${id}/exec`, { command })).body).toMatchObject({
    ...{ stdout: "out\n", stderr: "err\n", exit_code: 5 },
  });
});

test("a simulated program that sleeps ends after that time", async () => {
  const app = await withStillClock();
  const { id } = await app.machine({ restart: { policy: "no" }, ...script("sleep 1m; sleep 0.5 && exit 2") });
  app.clock.advance(60_000);
  expect(await app.state(id)).toBe("started");
  app.clock.advance(2000);
  expect(await app.state(id)).toBe("stopped");
  expect((await exitsOf(app, id))[0]?.request.exit_event["exit_code"]).toBe(2);
});

test("a Machine that destroys itself says that any command of its own ends, unless it is known to run on", async () => {
  const app = await withApp();
  const state = async (init: object) => app.state((await app.machine({ auto_destroy: true, init })).id);
  expect(await state({ cmd: ["bin/migrate"] })).toBe("destroyed");
  expect(await state({ exec: ["sh", "-c", "bin/migrate | tee log"] })).toBe("destroyed");
  expect(await state({ exec: ["sleep", "infinity"] })).toBe("started");
  expect(await state({})).toBe("started");
  expect(await ended({ auto_destroy: true, ...script("bin/migrate && exit 3") }, app)).toMatchObject({ code: 3 });
});
