// Why a Machine has failed: its cause as a sentence, its last lines, the version that ran well, and its events in words.
import { expect, test } from "vitest";
import { sentenceOf, type MachineEvent } from "../../../service/console/eventText.ts";
import { failureOf, times, versionBefore, type Examined } from "../../../service/console/failure.ts";
import type { Words } from "../../../service/console/types.ts";
import { ManualClock, type ServiceOptions } from "../../../service/index.ts";
import { SimulatedRuntime } from "../../../service/runtime/simulated.ts";
import { withApp } from "../client.ts";
import { page } from "./browser.ts";

/** A text with its times as numbers of seconds. */
const plain = (words: Words): string =>
  words.map((part) => (typeof part === "string" ? part : `@${part.at / 1000}`)).join("");

type Happened = readonly [seconds: number, type: string, status: string, more?: object];

/** The events, newest first, of a story that has the oldest first. */
function eventsOf(story: readonly Happened[]): readonly MachineEvent[] {
  return story
    .map(([seconds, type, status, more = {}], i) => {
      const { source = "flyd", version = "v1", ...request } = more as Readonly<Record<string, unknown>>;
      const details = Object.keys(request).length > 0 ? request : null;
      return { ...{ id: `${i}`, type, status, source, version }, timestamp: seconds * 1000, request: details };
    })
    .toReversed() as unknown as readonly MachineEvent[];
}

const user = { source: "user" };
const exit = (details: object, restart_count = 0, more: object = {}) => ({
  ...more,
  restart_count,
  exit_event: {
    ...{ exit_code: 3, guest_signal: -1, oom_killed: false, requested_stop: false, restarting: false, error: "" },
    ...details,
  },
});
const born: readonly Happened[] = [
  [0, "launch", "created", user],
  [1, "launch", "starting"],
  [2, "start", "started"],
];
/** A Machine that crashes that often, every ten seconds, and is restarted after each crash but the last one. */
const crashes = (n: number, details: object = {}): readonly Happened[] =>
  Array.from({ length: n }, (_, i): readonly Happened[] => [
    [10 * (i + 1), "exit", i === n - 1 ? "failed" : "stopped", exit({ ...details, restarting: i < n - 1 }, i)],
    ...(i === n - 1
      ? []
      : ([
          [10 * (i + 1) + 1, "restart", "starting", { restart_count: i + 1 }],
          [10 * (i + 1) + 2, "start", "started"],
        ] as const)),
  ]).flat();

const examine = (state: string, story: readonly Happened[], more: Partial<Examined> = {}) =>
  failureOf({ state, events: eventsOf(story), checks: [], now: 1000_000, ...more } as Examined);
const causeOf = (...args: Parameters<typeof examine>): string | undefined => {
  const failure = examine(...args);
  return failure && `${failure.kind}: ${plain(failure.cause)}`;
};

test("a Machine that has failed for good says how, how often and since when, and its last words", () => {
  const lines = ["reading …", "cannot read config", "  "];
  const story = [...born, ...crashes(11, { last_lines: lines })];
  expect(causeOf("failed", story)).toBe(
    "failed: Exited with code 3, eleven times since @10; last words: cannot read config.",
  );
  expect(examine("failed", story)?.lines).toEqual(lines);
  expect(causeOf("failed", [...born, ...crashes(1)])).toBe("failed: Exited with code 3 at @10.");
  expect(causeOf("failed", [...born, ...crashes(2, { oom_killed: true })])).toBe(
    "failed: Killed: out of memory, twice since @10.",
  );
  expect(causeOf("failed", [...born, ...crashes(13, { exit_code: 137, guest_signal: 9 })])).toBe(
    "failed: Ended by SIGKILL, 13 times since @10.",
  );
  expect(causeOf("failed", [])).toBe("failed: It has failed, and no event says why.");
});

test("crashes with different causes are counted together, and those of which no event is kept too", () => {
  const mixed: readonly Happened[] = [
    ...born,
    [10, "exit", "stopped", exit({ exit_code: 1, restarting: true })],
    [11, "restart", "starting", { restart_count: 1 }],
    [12, "start", "started"],
    [20, "exit", "failed", exit({}, 1)],
  ];
  expect(causeOf("failed", mixed)).toBe("failed: Exited with code 3; it has ended twice since @10.");
  const cut = crashes(40).slice(30 * 3);
  expect(causeOf("failed", cut)).toBe("failed: Exited with code 3, 40 times, the first time before @310.");
});

test("an image that cannot be fetched is the cause, and so is another failure to prepare", () => {
  const story = (error: string): readonly Happened[] => [
    [0, "launch", "created", user],
    [1, "exit", "failed", exit({ exit_code: 127, error })],
  ];
  expect(causeOf("failed", story("the image cannot be fetched: manifest unknown."))).toBe(
    "failed: Its image could not be fetched: manifest unknown.",
  );
  expect(causeOf("failed", story("the disk is full"))).toBe("failed: It could not be prepared: the disk is full.");
  const ran = exit({ exit_code: 127, error: "exec: no such image of a file" });
  expect(causeOf("failed", [...born, [3, "exit", "failed", ran]])).toBe(
    "failed: Ended: exec: no such image of a file at @3.",
  );
});

test("a Machine that crashes again and again says so while it is tried, and for five minutes after", () => {
  const looping = [...born, ...crashes(3).slice(0, -1)];
  const waiting = looping.slice(0, -2);
  const text = "looping: Exited with code 3, twice since @10.";
  expect([causeOf("stopped", waiting), causeOf("started", looping, { now: 100_000 })]).toEqual([text, text]);
  expect(causeOf("started", looping, { now: 320_000 })).toBe(undefined);
  // One crash is no loop.
  const once = [...born, ...crashes(2).slice(0, -1)];
  expect(causeOf("started", once, { now: 13_000 })).toBe(undefined);
});

test("what someone requested, and what went well, is no failure", () => {
  expect(causeOf("started", born)).toBe(undefined);
  const stop: readonly Happened[] = [
    [30, "stop", "stopping", user],
    [31, "exit", "stopped", exit({ requested_stop: true, exit_code: 137 })],
  ];
  expect(causeOf("stopped", [...born, ...crashes(1), ...stop])).toBe(undefined);
  expect(causeOf("stopped", [...born, [30, "exit", "stopped", exit({ exit_code: 0 })]])).toBe(undefined);
  expect(causeOf("stopped", [...born, [30, "exit", "stopped", exit({})]])).toBe("ended: Exited with code 3 at @30.");
  // A new version begins anew.
  const updated: readonly Happened[] = [
    [40, "update", "replacing", { ...user, version: "v2" }],
    [41, "update", "starting", { version: "v2" }],
  ];
  expect(causeOf("starting", [...born, ...crashes(5), ...updated])).toBe(undefined);
});

test("a check that is critical is the cause of a Machine that runs", () => {
  const check = (name: string, status = "critical") => ({ name, status, output: "connection refused", at: 31_000 });
  const checks = [check("other", "passing"), check("http-8080")];
  expect(causeOf("started", born, { checks })).toBe(
    "critical: Its check http-8080 has been critical since @31: connection refused.",
  );
  expect(causeOf("started", born, { checks: [...checks, check("b")] })).toContain(" Another check is also critical.");
  expect(causeOf("started", born, { checks: [...checks, check("b"), check("c")] })).toContain(
    " 2 others are also critical.",
  );
  expect(causeOf("stopped", born, { checks })).toBe(undefined);
});

test("numbers of times are words up to twelve", () => {
  expect([1, 2, 3, 12, 13, 1234].map(times)).toEqual([
    ...["once", "twice", "three times", "twelve times", "13 times", "1,234 times"],
  ]);
});

test("the version before is the newest one that was started and did not crash", () => {
  const versions = ["v4", "v3", "v2", "v1"].map((version) => ({ version, image: version }));
  const events = eventsOf([
    [1, "start", "started", { version: "v2" }],
    [2, "start", "started", { version: "v3" }],
    [3, "exit", "stopped", exit({}, 0, { version: "v3" })],
    [4, "start", "started", { version: "v4" }],
  ]);
  expect(versionBefore(versions, "v4", events)).toEqual({ version: "v2", image: "v2", ranWell: true });
  expect(versionBefore(versions, "v3", events)).toMatchObject({ version: "v2", ranWell: true });
  expect(versionBefore(versions, "v2", events)).toMatchObject({ version: "v1", ranWell: false });
  expect(versionBefore(versions, "v1", events)).toBe(undefined);
  expect(versionBefore(versions.slice(0, 2), "v4", events)).toBe(undefined);
});

test("each event is a sentence", () => {
  const story: readonly Happened[] = [
    ...born,
    [14, "exit", "stopped", exit({ restarting: true }, 3)],
    [15, "restart", "starting", { restart_count: 4 }],
    [16, "start", "started"],
    [20, "cordon", "started", user],
    [196, "exit", "failed", exit({ oom_killed: true }, 4)],
    [200, "start", "starting", user],
    [201, "start", "started"],
    [202, "restart", "restarting", user],
    [203, "restart", "starting", exit({ requested_stop: true })],
    [204, "start", "started"],
    [205, "stop", "stopping", user],
    [206, "exit", "stopped", exit({ requested_stop: true })],
    [207, "update", "replacing", { ...user, version: "v2" }],
    [208, "exit", "failed", exit({ exit_code: 127, error: "no such image" }, 0, { version: "v2" })],
    [209, "surprise_party", "failed"],
  ];
  const events = eventsOf(story);
  expect(events.map((event, i) => sentenceOf(event, events.slice(i + 1))).toReversed()).toEqual([
    "Created",
    "Prepared, starting",
    "Started",
    "Exited with code 3 after 12 s, restarting (attempt 4)",
    "Restarting (attempt 4)",
    "Started",
    "Taken out of traffic",
    "Killed: out of memory after 3 min, given up after 4 restarts",
    "Start requested",
    "Started",
    "Restart requested",
    "Stopped for a restart",
    "Started",
    "Stop requested",
    "Stopped on request",
    "Updated to version v2",
    "Its image could not be fetched: no such image",
    "Surprise party: failed",
  ]);
});

/** A service with an App and a session of its console, whose clock stands still. */
async function withConsole(options: ServiceOptions = {}) {
  const clock = new ManualClock();
  const started = await withApp({ delays: "believable", ...options, clock });
  const visit = await page(started);
  const view = async (path: string) => {
    const { status, body, text } = await visit("GET", `/console/api/apps/web/machines/${path}`);
    if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`);
    return body;
  };
  return { ...started, clock, view };
}

const failing = { MACHINES_SIMULATE: "exit:3" };

test("a Machine that fails after an update shows its cause, its last lines and the version that ran well", async () => {
  const { call, machine, machines, view, clock } = await withConsole();
  const good = await machine({ image: "nginx:1" });
  const becomes = (state: string) =>
    expect
      .poll(() => {
        clock.advance(500);
        return view(good.id);
      })
      .toMatchObject({ machine: { state } });
  await becomes("started");
  expect(await view(good.id)).toMatchObject({ failure: null });
  await call("POST", `${machines}/${good.id}`, { config: { image: "nginx:2", env: failing } });
  await becomes("failed");
  const { failure, events, machine: shown } = await view(good.id);
  expect(failure).toMatchObject({
    kind: "failed",
    lines: [expect.stringContaining("started"), expect.stringContaining("it ends with code 3")],
    before: { version: good.version, image: "nginx:1", ranWell: true },
  });
  expect(plain(failure.cause)).toMatch(
    /^Exited with code 3, eleven times since @\d+\S*; last words: it ends with code 3, /,
  );
  expect(events[0].text).toMatch(/^Exited with code 3 after \d+ s, given up after 10 restarts$/);
  expect(events.map(({ text }: { text: string }) => text)).toContain(`Updated to version ${shown.version}`);
});

test("a critical check is in the events, and is the cause", async () => {
  const { machine, view, clock } = await withConsole();
  const { id } = await machine({
    env: { MACHINES_SIMULATE: "checks:critical" },
    checks: { alive: { type: "tcp", port: 80 } },
  });
  await expect
    .poll(() => {
      clock.advance(500);
      return view(id);
    })
    .toMatchObject({ failure: { kind: "critical" } });
  const { failure, events } = await view(id);
  expect(plain(failure.cause)).toMatch(/^Its check alive has been critical since @\S+: connection refused\.$/);
  expect(events[0]).toMatchObject({ type: "check", text: "Check alive is critical: connection refused" });
});

test("the last lines come from the logs of the runtime, with the secrets of the App masked", async () => {
  class Logging extends SimulatedRuntime {
    async *logs() {
      for (const text of ["connecting", "the password is canary-secret-value", "refused"])
        yield { machine: "", time: "2026-01-01T00:00:00Z", text };
    }
  }
  const started = await withConsole({ runtime: (host) => new Logging(host) });
  const { call, machine, view, clock } = started;
  await call("POST", "/apps/web/secrets/PASSWORD", { value: "canary-secret-value" });
  const { id } = await machine({ env: failing, restart: { policy: "no" } });
  await expect
    .poll(() => {
      clock.advance(500);
      return view(id);
    })
    .toMatchObject({ failure: { kind: "ended" }, canLog: true });
  expect(await view(`${id}/lines`)).toEqual({ lines: ["connecting", "the password is [secret]", "refused"] });
  const simulated = await withConsole();
  const other = await simulated.machine();
  expect(await simulated.view(`${other.id}/lines`)).toEqual({ lines: [] });
});
