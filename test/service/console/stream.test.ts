// The stream of changes that a page of the console holds open.
import { EventEmitter } from "node:events";
import { get, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { expect, test, vi } from "vitest";
import { Changes } from "../../../service/console/changes.ts";
import { sendChanges } from "../../../service/console/events.ts";
import { Pages } from "../../../service/console/pages.ts";
import { ManualClock, type ServiceOptions } from "../../../service/index.ts";
import { addToken, revokeTokens } from "../../../service/store/tokens.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { callerWith, withApp } from "../client.ts";
import { sessionOf, signIn } from "./browser.ts";

type Headers = Readonly<Record<string, string>>;

/** An open stream, or the refusal of one. */
interface Page {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The data of its messages by the name of the event, oldest first. */
  readonly messages: (readonly [event: string, data: any])[]; // oxlint-disable-line typescript/no-explicit-any -- like answers
  /** What was received. */
  readonly text: () => string;
  /** Resolves when the service has ended it, with whether that was in order. */
  readonly end: Promise<boolean>;
  readonly close: () => void;
}

/** Opens a stream and waits for its first message, or for its refusal. */
async function open(url: string, topics: string, headers: Headers): Promise<Page> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const path = `/console/events?topics=${encodeURIComponent(topics)}`;
    get(url + path, { headers, agent: false }, resolve).once("error", reject);
  });
  const messages: Page["messages"] = [];
  let text = "";
  let read = 0;
  response.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    for (let next = text.indexOf("\n\n", read); next >= 0; next = text.indexOf("\n\n", read)) {
      const lines = text.slice(read, next).split("\n");
      const of = (field: string) => lines.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2);
      const [event, data] = [of("event"), of("data")];
      if (event !== undefined) messages.push([event, JSON.parse(data ?? "null")]);
      read = next + 2;
    }
  });
  const end = new Promise<boolean>((resolve) => response.once("close", () => resolve(response.complete)));
  response.on("error", () => {});
  const status = response.statusCode ?? 0;
  const opened: Page = {
    ...{ status, headers: response.headers, messages, text: () => text, end },
    close: () => void response.destroy(),
  };
  afterThisTest(opened.close);
  if (status === 200) await expect.poll(() => messages.length).toBeGreaterThan(0);
  else await end;
  return opened;
}

/** A service with the Apps `web` and `api`, and streams with its first token. */
async function withStreams(options: ServiceOptions & { clock?: ManualClock } = {}) {
  const started = await withApp({ clock: new ManualClock(), ...options });
  await started.call("POST", "/apps", { name: "api", org_slug: "personal" });
  const bearer = { authorization: `Bearer ${started.token}` };
  return { ...started, bearer, open: (topics: string) => open(started.url, topics, bearer) };
}

const changesOf = ({ messages }: Page): string[][] =>
  messages.flatMap(([event, data]) => (event === "changed" ? [data] : []));

/** The topics that a page was told, once there are some. */
async function told(page: Page): Promise<string[]> {
  await expect.poll(() => changesOf(page).length).toBeGreaterThan(0);
  return [...new Set(changesOf(page).flat())].sort();
}

test("it begins with the version and the run of the service, and nothing may keep it", async () => {
  const { open, service } = await withStreams();
  const { status, headers, messages, text } = await open("org");
  expect([status, headers["content-type"], headers["cache-control"]]).toEqual([
    200,
    "text/event-stream; charset=utf-8",
    "no-store",
  ]);
  expect(headers["x-accel-buffering"]).toBe("no");
  expect(text()).toMatch(/^retry: \d+\n/);
  expect(messages).toEqual([["hello", expect.objectContaining({ run: service.run, version: expect.any(String) })]]);
  expect(service.audit.after(0).some(({ path }) => path.startsWith("/console/events"))).toBe(false);
});

test("a page is told of each change what of its topics it concerns, and nothing else", async () => {
  const { call, open, machine, machines, clock } = await withStreams();
  const [first, second] = [await machine(), await machine()];
  const post = async (path: string, body: unknown = {}) => {
    const { status, body: answer, text } = await call("POST", path, body);
    if (status >= 300) throw new Error(`${path} answered ${status}: ${text}`);
    return answer;
  };
  const makeCluster = { name: "db", org_slug: "personal", region: "ams", plan: "basic" };
  const cluster: string = (await post("/postgres", makeCluster)).data.id;
  clock.advance(60_000);
  const [one, two] = [`machine:web/${first.id}`, `machine:web/${second.id}`];
  const at = `${machines}/${first.id}`;
  const steps: (readonly [what: string, act: () => Promise<unknown>, topics: string[]])[] = [
    ["a Machine is created", () => post("/apps/api/machines", { config: { image: "nginx" } }), ["app:api", "org"]],
    ["it is cordoned", () => post(`${at}/cordon`), ["app:web", one, "org"]],
    ["it stops", () => post(`${at}/stop`), ["app:web", one, "org"]],
    ["it gets metadata", () => post(`${at}/metadata/role`, { value: "x" }), ["app:web", one, "org"]],
    ["it is leased", () => post(`${at}/lease`), ["app:web", one, "org"]],
    [
      "a Machine is updated",
      () => post(`${machines}/${second.id}`, { config: { image: "b" } }),
      ["app:web", two, "org"],
    ],
    ["a volume is created", () => post("/apps/api/volumes", { name: "data" }), ["app:api", "org"]],
    ["a secret is set", () => post("/apps/web/secrets/A", { value: "b" }), ["app:web", "org"]],
    ["a secret key is made", () => post("/apps/api/secretkeys/K/generate", { type: "hs256" }), ["app:api", "org"]],
    ["an address is assigned", () => post("/apps/api/ip_assignments", { type: "v6" }), ["app:api", "org"]],
    [
      "a hostname is added",
      () => post("/apps/api/certificates/acme", { hostname: "a.example.com" }),
      ["app:api", "org"],
    ],
    [
      "a database is made",
      () => post(`/postgres/${cluster}/databases`, { name: "other" }),
      [`cluster:${cluster}`, "org"],
    ],
    [
      "a user is made",
      () => post(`/postgres/${cluster}/users`, { username: "u", role: "reader" }),
      [`cluster:${cluster}`, "org"],
    ],
    ["a backup is made", () => post(`/postgres/${cluster}/backups`, { type: "full" }), [`cluster:${cluster}`, "org"]],
    [
      "an App is attached",
      () => post(`/postgres/${cluster}/attachments`, { app_name: "api" }),
      [`cluster:${cluster}`, "org"],
    ],
    ["an App is created", () => post("/apps", { name: "new", org_slug: "personal" }), ["org"]],
  ];
  for (const [what, act, topics] of steps) {
    const page = await open(`org,app:web,app:api,${one},${two},cluster:${cluster}`);
    await act();
    expect([what, await told(page)]).toEqual([what, topics]);
    page.close();
  }
});

test("changes that no request caused are reported as well", async () => {
  const { open, machine, clock } = await withStreams({ delays: "believable" });
  const { id } = await machine({ checks: { web: { type: "tcp", port: 80 } } });
  for (const ms of [150, 250, 500]) {
    const page = await open(`machine:web/${id},app:api`);
    clock.advance(ms);
    expect([ms, await told(page)]).toEqual([ms, [`machine:web/${id}`]]);
  }
});

test("a deleted App is told to its page and to its organization, and a destroyed Machine to its own", async () => {
  const { open, call, machine, machines } = await withStreams();
  const { id } = await machine();
  const page = await open(`org,app:web,machine:web/${id}`);
  await call("DELETE", `${machines}/${id}?force=true`);
  expect(await told(page)).toEqual(["app:web", `machine:web/${id}`, "org"]);
  const next = await open("org,app:web");
  await call("DELETE", "/apps/web");
  expect(await told(next)).toEqual(["app:web", "org"]);
});

test("pages hear of the requests of their organization, or of their App, and of no other", async () => {
  const started = await withStreams();
  const { call, url, service } = started;
  const { id } = service.context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'api'") ?? {};
  const ofApi = callerWith(started, "of-api", { apps: [id ?? ""] });
  const ofTeam = callerWith(started, "of-team", { slug: "team" });
  const [own, api, team] = [
    await started.open("requests"),
    await open(url, "requests", { authorization: "Bearer of-api" }),
    await open(url, "requests", { authorization: "Bearer of-team" }),
  ];
  const heard = () => [own, api, team].map((page) => changesOf(page).length > 0);
  await call("GET", "/apps/web");
  await expect.poll(heard).toEqual([true, false, false]);
  await ofApi("GET", "/apps/api");
  await expect.poll(heard).toEqual([true, true, false]);
  await ofTeam("GET", "/apps?org_slug=team");
  await expect.poll(heard).toEqual([true, true, true]);
});

test("many changes are told in few messages, and the last one is never missed", async () => {
  const { open, call, machine, machines } = await withStreams();
  const { id } = await machine();
  const page = await open(`machine:web/${id}`);
  const begun = performance.now();
  for (let i = 0; i < 300; i++) await call("POST", `${machines}/${id}/metadata/k`, { value: `${i}` });
  const took = performance.now() - begun;
  await told(page);
  expect(changesOf(page).length).toBeLessThanOrEqual(Math.ceil(took / 50) + 1);
  page.messages.length = 0;
  await call("POST", `${machines}/${id}/cordon`);
  expect(await told(page)).toEqual([`machine:web/${id}`]);
});

test.each([
  [
    "nonsense",
    400,
    'invalid topics, got "nonsense", must be org, requests, rollouts, faults, app:NAME, machine:APP/ID or cluster:ID',
  ],
  ["", 400, "invalid topics, got nothing, must be org, requests"],
  [Array(11).fill("org").join(), 400, "invalid topics, got 11, must be at most 10"],
  ["x".repeat(3000), 400, "invalid topics, got"],
])("topics %j are refused with %i", async (topics, status, error) => {
  const { url, bearer, service } = await withStreams();
  const page = await open(url, topics, bearer);
  expect([page.status, JSON.parse(page.text()).error]).toEqual([status, expect.stringContaining(error)]);
  expect(service.context.waits.size).toBe(0);
});

test("a stream without topics, or with something else, is 400", async () => {
  const { url, bearer } = await withStreams();
  const headers = { headers: bearer };
  const statusOf = async (query: string) => (await fetch(`${url}/console/events${query}`, headers)).status;
  expect([await statusOf(""), await statusOf("?topics=org&since=1"), await statusOf("?topics=org&topics=org")]).toEqual(
    [400, 400, 400],
  );
});

test("topics of other organizations, or of other Apps than the token's, tell nothing of them", async () => {
  const started = await withStreams();
  const { url, machine, machines, service, call } = started;
  const { id } = await machine();
  const { id: app } = service.context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'api'") ?? {};
  const makeCluster = { name: "db", org_slug: "personal", region: "ams", plan: "basic" };
  const cluster: string = (await call("POST", "/postgres", makeCluster)).body.data.id;
  const ofApi = callerWith(started, "of-api", { apps: [app ?? ""] });
  const ofTeam = callerWith(started, "of-team", { slug: "team" });
  await ofTeam("POST", "/apps", { name: "theirs", org_slug: "team" });
  const topics = ["app:web", `cluster:${cluster}`, `machine:web/${id}`, "org"];
  const openWith = (token: string) => open(url, topics.join(","), { authorization: `Bearer ${token}` });
  const [own, api, team] = [await openWith(started.token), await openWith("of-api"), await openWith("of-team")];
  await call("POST", `${machines}/${id}/cordon`);
  await call("POST", `/postgres/${cluster}/databases`, { name: "other" });
  await expect.poll(() => new Set(changesOf(own).flat())).toEqual(new Set(topics));
  await ofApi("POST", "/apps/api/machines", { config: { image: "nginx" } });
  expect(await told(api)).toEqual(topics);
  expect(changesOf(team)).toEqual([]);
  await ofTeam("POST", "/apps/theirs/machines", { config: { image: "nginx" } });
  expect(await told(team)).toEqual(topics);
  // What each was told came with its own change, in one message.
  expect([changesOf(api).length, changesOf(team).length]).toEqual([1, 1]);
  expect((await open(url, "org", {})).status).toBe(401);
});

test("a topic whose object does not exist yet is told when it does", async () => {
  const { open, call } = await withStreams();
  const page = await open("app:later");
  await call("POST", "/apps", { name: "later", org_slug: "personal" });
  expect(await told(page)).toEqual(["app:later"]);
});

test("a stream ends when its token is revoked or expires, with the next change", async () => {
  const { url, service, clock, call, machine, machines } = await withStreams();
  const { store } = service.context;
  const { id } = await machine();
  const revoked = addToken(store, "revoked", { slug: "personal", expiresAt: null }, clock.now());
  addToken(store, "expiring", { slug: "personal", expiresAt: clock.now() + 60_000 }, clock.now());
  const ofSession = sessionOf(await signIn(url, { token: "revoked" }));
  const pages = await Promise.all(
    [{ authorization: "Bearer revoked" }, ofSession, { authorization: "Bearer expiring" }].map((headers) =>
      open(url, "org", headers),
    ),
  );
  const [first, second, third] = pages as [Page, Page, Page];
  revokeTokens(store, revoked);
  clock.advance(1000);
  await call("POST", `${machines}/${id}/cordon`);
  expect([await first.end, await second.end]).toEqual([true, true]);
  expect(changesOf(first)).toEqual([]);
  expect(await told(third)).toEqual(["org"]);
  clock.advance(60_000);
  await call("POST", `${machines}/${id}/uncordon`);
  expect(await third.end).toBe(true);
});

test("a stream on which nothing happens shows that it is alive, and ends when its token was revoked", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  afterThisTest(() => void vi.useRealTimers());
  const { url, service, clock } = await withStreams();
  const { store } = service.context;
  const id = addToken(store, "revoked", { slug: "personal", expiresAt: null }, clock.now());
  const page = await open(url, "org", { authorization: "Bearer revoked" });
  vi.advanceTimersByTime(15_000);
  await expect.poll(() => page.text().endsWith("\n\n:\n\n")).toBe(true);
  revokeTokens(store, id);
  clock.advance(1000);
  vi.advanceTimersByTime(15_000);
  expect(await page.end).toBe(true);
});

test("closing the service ends every stream at once", async () => {
  const { service, open } = await withStreams();
  const pages = [await open("org"), await open("requests")];
  // It gives requests three seconds, then it breaks their connections: never here, where this time does not pass.
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  await service.close();
  expect(await Promise.all(pages.map(({ end }) => end))).toEqual([true, true]);
});

test("at most 50 pages of a token are open at a time; one that is closed makes room", async () => {
  const { open } = await withStreams();
  const pages = await Promise.all(Array.from({ length: 50 }, () => open("org")));
  expect(new Set(pages.map(({ status }) => status))).toEqual(new Set([200]));
  const refused = await open("org");
  expect([refused.status, refused.headers["retry-after"], JSON.parse(refused.text())]).toEqual([
    429,
    "5",
    { error: "too many pages of this token are open, at most 50 may be" },
  ]);
  pages[0]?.close();
  await expect.poll(async () => (await open("org")).status).toBe(200);
});

test("a page that does not read fills no memory, and learns everything when it reads again", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout", "performance"] });
  afterThisTest(() => void vi.useRealTimers());
  const { service } = await withApp();
  const { context } = service;
  const { id: org } = context.store.get<{ id: number }>("SELECT id FROM orgs WHERE slug = 'personal'") ?? { id: 0 };
  const caller = {
    ...{ id: "x", name: null, org, slug: "personal", owner: "x", apps: null, network: null },
    ...{ role: "read" as const, expiresAt: null },
  };
  const changes = new Changes(context);
  let out: Readable | undefined;
  const reply = {
    raw: new EventEmitter(),
    type: () => reply,
    header: () => reply,
    send: (stream: Readable) => ((out = stream), reply),
  };
  const closing = new AbortController();
  sendChanges(reply as unknown as Parameters<typeof sendChanges>[0], {
    ...{ asker: { context, caller }, topics: "faults,app:web", changes, run: "x" },
    ...{ pages: new Pages(), isOperator: false },
    ...{ isValid: () => true, closing: closing.signal },
  });
  const { id } = context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'web'") ?? { id: "" };
  for (let i = 0; i < 10_000; i++) {
    changes.faultsChanged();
    vi.advanceTimersByTime(50);
  }
  expect(out?.readableLength).toBeLessThan(70_000);
  changes.committed(new Set([id]));
  vi.advanceTimersByTime(50);
  expect(String(out?.read())).not.toContain("app:web");
  vi.advanceTimersByTime(15_000);
  expect(String(out?.read())).toMatch(/^event: changed\ndata: \["faults","app:web"\]\n\n/);
  closing.abort();
  expect(changes.size).toBe(0);
});
