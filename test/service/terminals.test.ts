// The route of terminals: who may open one, what is recorded, and when it ends. Its programs repeat what is typed.
import { get } from "node:http";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { ManualClock, type ServiceOptions } from "../../service/index.ts";
import { connectionLimits } from "../../service/http/connections.ts";
import { Front } from "../../service/http/front.ts";
import { MemberKey } from "../../service/http/memberKey.ts";
import { pageKeyProtocol, terminalProtocol } from "../../service/http/terminalProtocol.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import type { RuntimeHost, TerminalRequest, TerminalSession } from "../../service/runtime/runtime.ts";
import { refuse } from "../../service/refusal.ts";
import { gate } from "../support/gate.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { connectTo, openTerminal, terminalPath } from "../support/terminalClient.ts";
import { ensureOrg, revokeTokens, Tokens } from "../../service/store/tokens.ts";
import { callerWith, withApp } from "./client.ts";

const ended: string[] = [];

/** A program that repeats what is typed, and exits when `exit` is. */
function echo({ words }: TerminalRequest): TerminalSession {
  const [output, input] = [new PassThrough(), new PassThrough()];
  let exit: (code: number | undefined) => void = () => {};
  const exited = new Promise<number | undefined>((resolve) => (exit = resolve));
  input.on("data", (typed: Buffer) => {
    if (typed.toString() === "exit") exit(5);
    else output.write(typed);
  });
  return {
    ...{ output, input, exited },
    resize: (columns, rows) => void output.write(`${columns}x${rows}`),
    async end() {
      ended.push(words.join(" "));
    },
  };
}

/** A service whose Machines have terminals, and a started Machine. */
async function running(
  options: Omit<ServiceOptions, "runtime" | "clock"> = {},
  open = (request: TerminalRequest): Promise<TerminalSession> => Promise.resolve(echo(request)),
) {
  const clock = new ManualClock();
  const runtime = (host: RuntimeHost) =>
    Object.assign(new SimulatedRuntime(host), {
      terminal: (_: unknown, request: TerminalRequest) => open(request),
    });
  const app = await withApp({ ...options, delays: "none", runtime, clock });
  const { id } = await app.machine();
  await expect.poll(() => app.state(id)).toBe("started");
  return { app, clock, id, path: terminalPath(id) };
}

const needsOperate = "unauthorized: this needs the role operate, not read";

test("a client that says what it has read is sent no more than that and a mebibyte", async () => {
  const { app, path } = await running();
  const terminal = await openTerminal(app, path);
  terminal.socket.send(JSON.stringify({ read: 0 }));
  const part = "x".repeat(2 ** 15);
  for (let i = 0; i < 100; i++) terminal.type(part);
  await expect.poll(() => terminal.bytes()).toBeGreaterThan(2 ** 20);
  // An answer of the same connection comes after all that was sent before.
  const answered = once(terminal.socket, "pong");
  terminal.socket.ping();
  await answered;
  expect(terminal.bytes()).toBeLessThan(2 ** 20 + 2 ** 16);
  terminal.socket.send(JSON.stringify({ read: 2 ** 20 }));
  await expect.poll(() => terminal.bytes()).toBeGreaterThan(2 ** 20 + 2 ** 19);
  terminal.socket.send(JSON.stringify({ read: 2 ** 30 }));
});

const token = "fm2_another_token_of_this_test";

test("a terminal sends what the program writes, what is typed, and its size, and says how it ended", async () => {
  const { app, path } = await running();
  const terminal = await openTerminal(app, path, { command: ["echo"] });
  terminal.type("hello");
  await terminal.shows("hello");
  terminal.resize(100, 50);
  await terminal.shows("100x50");
  terminal.type("exit");
  expect(await terminal.ended()).toEqual({ code: 1000, last: { exit: 5 } });
});

test("its beginning and its end are in the audit and in the history, and nothing that was typed", async () => {
  const { app, clock, id, path } = await running();
  const terminal = await openTerminal(app, path, { command: ["psql", "shop"] });
  terminal.type("a secret");
  await terminal.shows("a secret");
  clock.advance(3000);
  terminal.type("exit");
  await terminal.ended();
  const seen = app.service.audit.after(0).filter(({ operation }) => operation === "machines.terminal");
  expect(seen).toMatchObject([
    { status: 101, org: "personal", about: "psql …", path },
    { status: 101, org: "personal", about: "ended: exit code 5", ms: 3000 },
  ]);
  expect(JSON.stringify(app.service.audit.after(0))).not.toContain("a secret");
  const history = await (
    await fetch(`${app.url}/local/history`, { headers: { authorization: `Bearer ${app.token}` } })
  ).text();
  expect(history).toContain("psql …");
  expect(history).toContain("ended: exit code 5");
  expect(history).toContain(id);
  expect(history).not.toContain("a secret");
});

test.each([
  ["a command that starts", () => {}, { status: 101, about: "nohup …" }],
  [
    "a command that cannot be started",
    () => {
      throw refuse(503, "the engine does not answer");
    },
    { status: 503, about: "nohup …" },
  ],
] as const)("%s after its terminal has ended is in the audit too", async (_, start, first) => {
  const [asked, over] = [gate(), gate()];
  const { app, clock, path } = await running({}, async (request) => {
    asked.open();
    await over.opened;
    start();
    return echo(request);
  });
  const { store } = app.service.context;
  callerWith(app, token);
  const terminal = await openTerminal({ url: app.url, token }, path, { command: ["nohup", "a secret"] });
  await asked.opened;
  await store.write(() => revokeTokens(store, new Tokens(store).find(token, clock.now())?.id ?? ""));
  clock.advance(15_000);
  const problem = "the token or the session has expired, or was revoked";
  expect(await terminal.ended()).toEqual({ code: 1008, last: { problem } });
  const seen = () => app.service.audit.after(0).filter(({ operation }) => operation === "machines.terminal");
  expect(seen()).toEqual([]);
  over.open();
  const last = first.status === 101 ? [{ status: 101, about: `ended: ${problem}` }] : [];
  await expect.poll(seen).toMatchObject([first, ...last]);
});

test("tokens that may not run commands open no terminal", async () => {
  const { app, path } = await running();
  callerWith(app, "fm2_only_reads", { role: "read" });
  await app.service.context.store.write(() => ensureOrg(app.service.context.store, "strangers"));
  callerWith(app, "fm2_of_strangers", { slug: "strangers" });
  const by = (one: string) => connectTo({ url: app.url, token: one }, path);
  expect(await by("fm2_only_reads")).toEqual({ status: 403, error: needsOperate });
  const strangers = callerWith(app, "fm2_of_strangers_too", { slug: "strangers" });
  const { status } = await strangers("POST", path.replace(/^\/local(.*)terminal$/, "$1exec"), { command: ["true"] });
  expect(await by("fm2_of_strangers")).toMatchObject({ status });
  expect(await by("fm2_unknown")).toMatchObject({ status: 401 });
  expect(
    await connectTo(app, path, { headers: { authorization: `Bearer ${app.token}`, host: "evil.example" } }),
  ).toMatchObject({
    status: 403,
  });
  expect(
    await connectTo(app, path, { headers: { authorization: `Bearer ${app.token}`, origin: "http://evil.example" } }),
  ).toMatchObject({ status: 403, error: "requests from other origins are not allowed" });
  expect(await connectTo(app, terminalPath("1234"))).toMatchObject({ status: 404 });
  expect(await connectTo(app, path, { protocols: ["other"] })).toMatchObject({ status: 426 });
});

test("a session of the console opens one from its own page with its key, unless it may only read", async () => {
  for (const mode of ["write", "read"] as const) {
    const { app, path } = await running({ console: mode });
    const opened = await fetch(`${app.url}/console/session`, {
      method: "POST",
      body: JSON.stringify({ token: app.token }),
    });
    const { page_key: key } = (await opened.json()) as { page_key: string };
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    const by = (headers: Record<string, string>, protocols: readonly string[]) =>
      connectTo(app, path, { headers: { cookie, ...headers }, protocols });
    const withKey = [terminalProtocol, pageKeyProtocol(key)];
    expect(await by({ origin: app.url }, [terminalProtocol])).toMatchObject({ status: 401 });
    expect(await by({}, withKey)).toMatchObject({ status: 403 });
    expect(await by({ origin: "http://127.0.0.1:1" }, withKey)).toMatchObject({ status: 403 });
    const own = await by({ origin: app.url }, withKey);
    if (mode === "read") expect(own).toEqual({ status: 403, error: needsOperate });
    else expect("socket" in own && own.socket.protocol).toBe(terminalProtocol);
  }
});

test("it ends when its token is revoked, also if nothing is typed, and when its client does not answer", async () => {
  const { app, clock, path } = await running();
  const { store } = app.service.context;
  callerWith(app, token);
  const quiet = await openTerminal({ url: app.url, token }, path, { command: ["quiet"] });
  await expect.poll(() => quiet.said).toEqual([{ opened: true }]);
  await store.write(() => revokeTokens(store, new Tokens(store).find(token, clock.now())?.id ?? ""));
  clock.advance(15_000);
  expect(await quiet.ended()).toEqual({
    code: 1008,
    last: { problem: "the token or the session has expired, or was revoked" },
  });
  expect(ended).toContain("quiet");
  const dead = await openTerminal(app, path, { command: ["dead"] }, { autoPong: false });
  await expect.poll(() => dead.said).toEqual([{ opened: true }]);
  clock.advance(15_000);
  clock.advance(15_000);
  await dead.ended();
  await expect.poll(() => ended).toContain("dead");
});

test("a Machine has ten terminals at once", async () => {
  const { app, path } = await running();
  const open = await Promise.all(Array.from({ length: 10 }, () => openTerminal(app, path)));
  expect(await connectTo(app, path)).toEqual({ status: 429, error: "the machine has 10 open terminals; close one" });
  open[0]?.socket.close();
  await expect.poll(async () => "socket" in (await connectTo(app, path))).toBe(true);
});

test("the simulation has none, and says so", async () => {
  const app = await withApp({ delays: "none" });
  const { id } = await app.machine();
  await expect.poll(() => app.state(id)).toBe("started");
  expect(await connectTo(app, terminalPath(id))).toEqual({
    status: 412,
    error: "failed_precondition: the simulated runtime has no terminals; run one command after the other",
  });
});

test("a standby member forwards it, and its refusals", async () => {
  const { app, path } = await running();
  const front = new Front({
    ...{ limits: connectionLimits(), tls: undefined, key: new MemberKey(Buffer.alloc(32, 1)) },
    answerSelf: () => false,
  });
  front.server.listen(0, "127.0.0.1");
  await once(front.server, "listening");
  afterThisTest(() => front.end());
  front.follow(app.url);
  const address = front.server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const terminal = await openTerminal({ url, token: app.token }, path);
  terminal.type("through both");
  await terminal.shows("through both");
  terminal.type("exit");
  expect(await terminal.ended()).toEqual({ code: 1000, last: { exit: 5 } });
  expect(await connectTo({ url, token: "fm2_unknown" }, path)).toMatchObject({ status: 401 });
});

test("a request that offers another protocol is answered as usual", async () => {
  const { app } = await running();
  const asked = get(`${app.url}/healthz`, { headers: { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c" } });
  const [answer] = await once(asked, "response");
  expect(answer.statusCode).toBe(200);
  answer.resume();
});
