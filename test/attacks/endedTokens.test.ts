// Answers that have begun while a token was valid: they end with it.
import { get, type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import type { LogQuery } from "../../service/runtime/runtime.ts";
import { ManualClock } from "../../service/index.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { addToken, revokeTokens } from "../../service/store/tokens.ts";
import { sessionOf, signIn } from "../service/console/browser.ts";
import { withApp } from "../service/client.ts";

/** A service whose one Machine writes what the test says. */
async function withLogs() {
  const readers = new Set<(text: string) => void>();
  async function* logs(_: unknown, { follow }: LogQuery) {
    if (!follow) return;
    for (;;) {
      const text = await new Promise<string>((resolve) => readers.add(resolve));
      yield { time: "2026-01-01T00:00:00Z", machine: "m", stream: "stdout" as const, text };
    }
  }
  const app = await withApp({
    clock: new ManualClock(),
    runtime: (host) => Object.assign(new SimulatedRuntime(host), { logs }),
  });
  await app.machine();
  const write = (text: string): void => {
    for (const resolve of readers) resolve(text);
    readers.clear();
  };
  return { ...app, write };
}

/** Follows the logs of the App. The service answers with the first line. */
function follow(url: string, headers: Readonly<Record<string, string>>) {
  let text = "";
  const ended = new Promise<void>((resolve, reject) => {
    const read = (response: IncomingMessage): void => {
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.once("end", resolve).once("error", reject);
    };
    get(`${url}/local/apps/web/logs?follow=true`, { headers }, read).once("error", reject);
  });
  return { text: () => text, ended };
}

const cases = (["revoked", "expired"] as const).flatMap((way) =>
  (["token", "session"] as const).flatMap((as) => [
    { way, as, at: "the next line", ms: 1000 },
    { way, as, at: "the next check", ms: 15_000 },
  ]),
);

test.each(cases)("F96: logs that a client follows end with $at, once its $as is $way", async ({ way, as, at, ms }) => {
  const app = await withLogs();
  const { store } = app.service.context;
  const expiresAt = way === "expired" ? app.clock.now() + 1000 : null;
  const id = addToken(store, "a-token", { slug: "personal", expiresAt }, app.clock.now());
  const headers =
    as === "session"
      ? { ...sessionOf(await signIn(app.url, { token: "a-token" })), "sec-fetch-site": "same-origin" }
      : { authorization: "Bearer a-token" };
  const reader = follow(app.url, headers);
  await expect.poll(() => (app.write("before"), reader.text())).toContain("before");
  if (way === "revoked") revokeTokens(store, id);
  app.clock.advance(ms);
  if (at === "the next line") app.write("after");
  await reader.ended;
  expect(reader.text()).not.toContain("after");
});
