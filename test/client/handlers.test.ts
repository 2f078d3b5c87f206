// Each request handler on its own: what it does around the next handler.
import { describe, expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { noteOutcomes } from "../../provider/client/circuitBreaker.ts";
import { readConfig } from "../../provider/client/config.ts";
import type { ClientParts, Handler, Request } from "../../provider/client/handler.ts";
import { forgetLists, noteSeen } from "../../provider/client/sessionUpdates.ts";
import { withParsing } from "../../provider/client/parse.ts";
import { withRateLimit } from "../../provider/client/rateLimiter.ts";
import { withRetries } from "../../provider/client/retry.ts";
import { send } from "../../provider/client/send.ts";
import { newConnection, newSession } from "../../provider/client/session.ts";
import { retryStaleReads } from "../../provider/client/staleReads.ts";
import type { Answer, Outcome, Sent } from "../../provider/client/transport.ts";
import { jumpingClock } from "../support/jumpingClient.ts";

const config = readConfig((key) => ({ endpoint: "http://localhost:1", token: "t" })[key], {});
const key = { appName: "shop", machineId: "m1" };

function requestOf(operation: Operation, more: Partial<Request> = {}): Request {
  return {
    ...{ operation, args: key, path: "/v1/x", url: "http://localhost:1/v1/x", headers: {}, body: undefined },
    ...{ deadline: { at: Number.POSITIVE_INFINITY, allowed: "1m" }, token: "t", attempt: 0, position: 0 },
    countRequest: () => undefined,
    ...more,
  };
}
const read = requestOf(contract.machines.get);
const change = requestOf(contract.machines.update);
const create = requestOf(contract.machines.create);

const answer = (status: number, body: unknown = {}, headers: Record<string, string> = {}): Answer => ({
  ...{ kind: "answer", status, headers, text: JSON.stringify(body) },
});
const lost = (lasting = false): Outcome => ({
  ...{ kind: "lost", cause: new Error("reset"), lasting, proxied: false },
});

/** The next handler: returns the given results in order, then repeats the last one, and counts its calls. */
function next<T>(...results: readonly T[]): Handler<T> & { readonly requests: Request[] } {
  const requests: Request[] = [];
  const handle: Handler<T> = (request) => {
    requests.push(request);
    return Promise.resolve(results[Math.min(requests.length, results.length) - 1] as T);
  };
  return Object.assign(handle, { requests });
}

describe("send", () => {
  const sending = (outcome: Outcome = answer(200)) => {
    const sent: Sent[] = [];
    const order: string[] = [];
    const transport: ClientParts["transport"] = Object.assign(
      (one: Sent) => {
        sent.push(one);
        order.push("sent");
        return Promise.resolve(outcome);
      },
      { close: () => Promise.resolve() },
    );
    const clock = jumpingClock();
    const connect = () => Promise.resolve({ url: "", token: "t" });
    const handle = send({ config, clock, transport, connect, onRequest: () => order.push("reported") });
    return { handle, sent, order, clock };
  };

  test("send counts a request before it is sent, and reports it afterwards", async () => {
    const { handle, order } = sending();
    await handle({ ...read, countRequest: () => order.push("counted") });
    expect(order).toEqual(["counted", "sent", "reported"]);
  });

  test("nothing is sent after the deadline or after a cancellation", async () => {
    const { handle, sent, clock } = sending();
    await expect(handle({ ...read, deadline: { at: clock.now(), allowed: "5s" } })).rejects.toThrow(
      /the time limit of 5s ended before GET/,
    );
    const signal = AbortSignal.abort(new Error("cancelled"));
    await expect(handle({ ...read, deadline: { ...read.deadline, signal } })).rejects.toThrow("cancelled");
    expect(sent).toEqual([]);
  });

  test("cancels only reads that are under way", async () => {
    const { handle, sent } = sending();
    const { signal } = new AbortController();
    await handle({ ...read, deadline: { ...read.deadline, signal } });
    await handle({ ...change, deadline: { ...change.deadline, signal } });
    expect(sent.map((one) => one.signal)).toEqual([signal, undefined]);
  });

  test("send gives a long poll more time than the service holds it", async () => {
    const { handle, sent } = sending();
    await handle(requestOf(contract.machines.wait));
    expect(sent[0]).toMatchObject({ held: true, timeout: 75_000 });
  });
});

describe("the rate limiter", () => {
  test("the rate limiter queues requests only after a 429, and refuses those that cannot be sent in time", async () => {
    const clock = jumpingClock();
    const { rateLimiter } = newSession(newConnection(clock));
    const handle = withRateLimit(rateLimiter, clock, next<Outcome>(answer(200)));
    await handle(change);
    expect(clock.slept).toEqual([]);
    rateLimiter.limit(change, 3000);
    await handle(change);
    expect(clock.slept).toEqual([3000]);
    rateLimiter.limit(change, 3000);
    const deadline = { at: clock.now() + 1000, allowed: "1s" };
    await expect(handle({ ...change, deadline })).rejects.toThrow(
      /rate limit for machines.update m1.*Nothing was sent/,
    );
  });
});

describe("the circuit breaker", () => {
  test("the circuit breaker counts failures that indicate a problem of the service, and resets after a success", async () => {
    const clock = jumpingClock();
    const { circuitBreaker } = newSession(newConnection(clock));
    const failing = noteOutcomes(circuitBreaker, next<Outcome>(answer(503)));
    for (let i = 0; i < 10; i++) await failing(read);
    const deadline = { at: clock.now() + 1000, allowed: "1s" };
    expect(await circuitBreaker.mayRepeat({}, 10, deadline)).toBe(false);
    await noteOutcomes(circuitBreaker, next<Outcome>(answer(404)))(read);
    expect(await circuitBreaker.mayRepeat({}, 10, deadline)).toBe(true);
    const held = noteOutcomes(circuitBreaker, next<Outcome>(lost()));
    for (let i = 0; i < 10; i++) await held(requestOf(contract.machines.wait));
    expect(await circuitBreaker.mayRepeat({}, 10, deadline)).toBe(true);
  });
});

describe("retries", () => {
  const retrying = (...outcomes: readonly Outcome[]) => {
    const clock = jumpingClock();
    const inner = next(...outcomes);
    return { inner, clock, handle: withRetries({ config, clock }, newSession(newConnection(clock)), inner) };
  };

  test("a read is sent again after a failure, and a create is not", async () => {
    const reading = retrying(lost(), answer(503), answer(200));
    expect(await reading.handle(read)).toMatchObject({ status: 200 });
    expect(reading.inner.requests.map(({ attempt }) => attempt)).toEqual([0, 1, 2]);
    const creating = retrying(lost(), answer(200));
    await expect(creating.handle(create)).rejects.toMatchObject({ code: "ambiguous" });
    expect(creating.inner.requests).toHaveLength(1);
  });

  test("a create is sent again after a 503 that says that nothing was changed", async () => {
    const gone = answer(503, { error: "unavailable: the engine does not answer; nothing was changed" });
    const creating = retrying(gone, answer(200));
    expect(await creating.handle(create)).toMatchObject({ status: 200 });
    await expect(retrying(gone).handle(create)).rejects.toThrow(/The service failed; try again later\.$/);
    await expect(retrying(answer(503)).handle(create)).rejects.toMatchObject({ code: "ambiguous" });
  });

  test("a 429 is retried for any request, at the time that the service names", async () => {
    const { handle, inner, clock } = retrying(answer(429, {}, { "retry-after": "7" }), answer(200));
    const limits = newSession(newConnection(clock));
    const through = withRetries({ config, clock }, limits, withRateLimit(limits.rateLimiter, clock, inner));
    await through(create);
    expect(inner.requests).toHaveLength(2);
    expect(clock.slept).toEqual([7000]);
    await handle(create);
  });

  test("nothing is retried without enough time", async () => {
    const { handle, inner, clock } = retrying(answer(503, {}, { "retry-after": "60" }));
    const deadline = { at: clock.now() + 5000, allowed: "5s" };
    await expect(handle({ ...read, deadline })).rejects.toMatchObject({ status: 503 });
    expect(inner.requests).toHaveLength(1);
  });
});

describe("list cache and existence", () => {
  test("a change clears the cached lists of its App before and after it; a read does not", async () => {
    const session = newSession(newConnection(jumpingClock()));
    const list = { asked: 0, served: 0, list: Promise.resolve([]) };
    const fill = () => ["machines/shop", "machines/other"].forEach((name) => session.lists.set(name, list));
    fill();
    await forgetLists(session, next(answer(200)))(read);
    expect([...session.lists.keys()]).toHaveLength(2);
    const seenByNext: string[][] = [];
    const changed = forgetLists<Answer>(session, () => {
      seenByNext.push([...session.lists.keys()]);
      fill();
      return Promise.reject(new Error("lost"));
    });
    await expect(changed(change)).rejects.toThrow("lost");
    expect(seenByNext).toEqual([["machines/other"]]);
    expect([...session.lists.keys()]).toEqual(["machines/other"]);
  });

  test("a successful answer proves that its App exists; the deletion of the App does not", async () => {
    const session = newSession(newConnection(jumpingClock()));
    await noteSeen(session, next(answer(200)))(requestOf(contract.apps.delete));
    expect([...session.seen]).toEqual([]);
    await noteSeen(session, next(answer(200)))(read);
    expect([...session.seen]).toEqual(["shop"]);
  });
});

describe("parsing", () => {
  const machine = { id: "m1", state: "started" };
  const page: Answer = { ...answer(200), text: "<html>" };

  test("an unreadable read is retried once; an unreadable change is not (F24)", async () => {
    const reading = next(page, answer(200, machine));
    expect(await withParsing(config, reading)(read)).toMatchObject({ id: "m1" });
    const changing = next(page, answer(200, machine));
    await expect(withParsing(config, changing)(change)).rejects.toThrow(/not JSON/);
    expect([reading.requests.length, changing.requests.length]).toEqual([2, 1]);
    await expect(withParsing(config, next(page))(read)).rejects.toThrow(/not JSON/);
  });
});

describe("stale reads", () => {
  const [older, newer] = ["01AAAAAAAAAAAAAAAAAAAAAAAA", "01BBBBBBBBBBBBBBBBBBBBBBBB"];
  const machine = (version: string) => ({ id: "m1", version });

  test("a read older than a write is retried, for at most five seconds (F15)", async () => {
    const clock = jumpingClock();
    const { staleReads } = newSession(newConnection(clock));
    await retryStaleReads(staleReads, clock, next<unknown>(machine(newer)))(change);
    const late = next<unknown>(machine(older), machine(older), machine(newer));
    expect(await retryStaleReads(staleReads, clock, late)(read)).toEqual(machine(newer));
    expect(late.requests).toHaveLength(3);
    await expect(retryStaleReads(staleReads, clock, next<unknown>(machine(older)))(read)).rejects.toThrow(
      /not the later one/,
    );
  });

  test("a version requested explicitly is never stale", async () => {
    const clock = jumpingClock();
    const { staleReads } = newSession(newConnection(clock));
    staleReads.note("m1", newer);
    const named = { ...read, args: { ...key, version: older } };
    expect(await retryStaleReads(staleReads, clock, next<unknown>(machine(older)))(named)).toEqual(machine(older));
  });
});
