// The feed for proxies of their own: what it says, and to whom it says it again.
import { expect, test, vi } from "vitest";
import { ManualClock } from "../../service/index.ts";
import type { FeedLine } from "../../service/proxy/feedLines.ts";
import { feedPath } from "../../service/proxy/feedPaths.ts";
import { Replicas } from "../../service/proxy/replicas.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { proxyToken } from "./ownProxies.ts";
import { withReach } from "./reachable.ts";

type App = Awaited<ReturnType<typeof withReach>>;

/** A connection to the feed; its lines come one by one. */
async function follow({ url }: App, token: string, query = "replica=one") {
  const gone = new AbortController();
  afterThisTest(() => gone.abort());
  const response = await fetch(`${url}${feedPath}?${query}`, {
    headers: { authorization: `Bearer ${token}` },
    signal: gone.signal,
  });
  async function* lines(): AsyncGenerator<FeedLine> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) {
      const texts = (rest + decoder.decode(part as Uint8Array, { stream: true })).split("\n");
      rest = texts.pop() ?? "";
      for (const text of texts) yield JSON.parse(text) as FeedLine;
    }
  }
  const all = lines();
  /** The lines until the next number, and the number. */
  const batch = async (): Promise<{ lines: FeedLine[]; at: number }> => {
    const found: FeedLine[] = [];
    for (;;) {
      const { value, done } = await all.next();
      if (done || value === undefined) throw new Error("the feed has ended");
      if ("at" in value) return { lines: found, at: value.at };
      found.push(value);
    }
  };
  return { batch, leave: () => gone.abort() };
}

const web = { port: 80, handlers: ["http"] };

test("a proxy that comes back gets only what has changed, and everything from another run of the service", async () => {
  const app = await withReach();
  const token = await proxyToken(app);
  const ids = [await app.offer([web]), await app.offer([web])];
  const first = await follow(app, token);
  const whole = await first.batch();
  expect(whole.lines[0]).toEqual({ begin: { run: app.service.run, isWhole: true } });
  const machinesIn = (lines: readonly FeedLine[]) =>
    lines.flatMap((line) => ("machine" in line ? line.machine.id : []));
  expect(machinesIn(whole.lines).sort()).toEqual(ids.toSorted());
  first.leave();
  await app.call("POST", `/apps/web/machines/${ids[0]}/cordon`);
  await app.call("DELETE", `/apps/web/machines/${ids[1]}?force=true`);
  const second = await follow(app, token, `replica=one&run=${app.service.run}&at=${whole.at}`);
  const { lines } = await second.batch();
  expect(lines[0]).toEqual({ begin: { run: app.service.run, isWhole: false } });
  expect(lines.slice(1)).toEqual([{ machine: expect.objectContaining({ id: ids[0], cordoned: 1 }) }, { gone: ids[1] }]);
  const third = await follow(app, token, `replica=two&run=another&at=${whole.at}`);
  const again = await third.batch();
  expect(again.lines[0]).toEqual({ begin: { run: app.service.run, isWhole: true } });
  expect(machinesIn(again.lines)).toEqual([ids[0]]);
});

test("it has nothing of a configuration but what requests need, and says nothing twice", async () => {
  const app = await withReach();
  const token = await proxyToken(app);
  const services = [
    {
      ...{ protocol: "tcp", internal_port: 8080, ports: [web] },
      checks: [{ type: "http", path: "/health", headers: [{ name: "authorization", values: ["hidden-header"] }] }],
    },
  ];
  const config = {
    ...{ image: "nginx", services, env: { PASSWORD: "hidden-env" }, metadata: { owner: "hidden-metadata" } },
    init: { cmd: ["run", "hidden-argument"] },
    files: [{ guest_path: "/a", raw_value: Buffer.from("hidden-file").toString("base64") }],
  };
  const { body } = await app.call("POST", "/apps/web/machines", { config });
  await app.call("POST", "/apps/web/secrets", { values: { TOKEN: "hidden-secret" } });
  const feed = await follow(app, token);
  const { lines } = await feed.batch();
  const text = JSON.stringify(lines);
  expect(text).toContain(body.id);
  expect(text).not.toMatch(/hidden|nginx|health/);
  // Metadata is no part of what requests need, so the next line is about the cordon.
  await app.call("POST", `/apps/web/machines/${body.id}/metadata/owner`, { value: "other" });
  await app.call("POST", `/apps/web/machines/${body.id}/cordon`);
  const changed: FeedLine[] = [];
  await vi.waitFor(async () => {
    changed.push(...(await feed.batch()).lines);
    expect(changed.some((line) => "machine" in line && line.machine.cordoned === 1)).toBe(true);
  });
  const ofMachine = changed.filter((line) => "machine" in line && line.machine.id === body.id);
  // What was read when it was told first is told once more at most.
  expect(ofMachine.length).toBeLessThanOrEqual(2);
});

test.each([
  ["", "replica"],
  [`replica=${"x".repeat(65)}`, "replica"],
  ["replica=one&run=a&at=-1", "at"],
  ["replica=one&more=1", "unknown more"],
])("the query %j is refused by name", async (query, named) => {
  const app = await withReach();
  const headers = { authorization: `Bearer ${await proxyToken(app)}` };
  const answer = await fetch(`${app.url}${feedPath}?${query}`, { headers });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(named)]);
});

test("where requests come by other ways too, Machines are known to be idle only if a proxy has said what it has", () => {
  const clock = new ManualClock();
  const loaded = vi.fn<(machine: string) => void>();
  const beside = new Replicas(clock, true, loaded);
  const alone = new Replicas(clock, false, loaded);
  expect([beside.isKnown, alone.isKnown]).toEqual([false, true]);
  const left = [beside, alone].map((one) => one.connected("a"));
  expect([beside.isKnown, alone.isKnown]).toEqual([false, false]);
  for (const one of [beside, alone]) one.reported("a", { at: 1, busy: ["m"], draining: [], awaited: ["app"] });
  expect([beside.isKnown, alone.isKnown]).toEqual([true, true]);
  expect([beside.isBusy("m"), beside.isBusy("n"), beside.isAwaited("app")]).toEqual([true, false, true]);
  for (const leave of left) leave();
  expect(beside.isKnown).toBe(false);
  clock.advance(59_999);
  expect(beside.isBusy("m")).toBe(true);
  clock.advance(1);
  expect(beside.isBusy("m")).toBe(false);
  expect(loaded.mock.calls.filter(([id]) => id === "m")).toHaveLength(4);
});

test("a proxy that has lost its connection holds the end of a Machine for five seconds at most", async () => {
  const clock = new ManualClock();
  const replicas = new Replicas(clock, false, () => {});
  const left = replicas.connected("a");
  replicas.reported("a", { at: 1, busy: [], draining: [], awaited: [] });
  const drained = vi.fn<() => void>();
  const whole = replicas.drained("m", 2).then(drained);
  left();
  clock.advance(4999);
  await Promise.resolve();
  expect(drained).not.toHaveBeenCalled();
  // It comes back, and knows by then.
  const again = replicas.connected("a");
  clock.advance(10_000);
  await Promise.resolve();
  expect(drained).not.toHaveBeenCalled();
  replicas.reported("a", { at: 2, busy: [], draining: ["m"], awaited: [] });
  await Promise.resolve();
  expect(drained).not.toHaveBeenCalled();
  again();
  clock.advance(5000);
  await whole;
  expect(drained).toHaveBeenCalledOnce();
});
