// The logs of an App over HTTP: in the order of time over all Machines, those so far and those that come.
import { get, type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import type { NamedLine } from "../../service/http/logLines.ts";
import { waitMs } from "../../service/http/logOrder.ts";
import { Output, WritingRuntime } from "../support/logs.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { withApp } from "./client.ts";

/** Calls back for each line until the end of the test, which closes the connection. */
function eachLine(response: IncomingMessage, came: (line: NamedLine) => void): void {
  let rest = "";
  response
    .setEncoding("utf8")
    .on("error", () => {})
    .on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) came(JSON.parse(line) as NamedLine);
    });
}

async function withOutput(names: readonly string[]) {
  const output = new Output();
  const clock = new ManualClock();
  const app = await withApp({ clock, delays: "none", runtime: (host) => new WritingRuntime(host, output) });
  const ids: Record<string, string> = {};
  for (const name of names) ids[name] = (await app.machine({}, { name })).id;
  const write = (name: string, at: number | string, text: string): void => output.write(ids[name] ?? "", at, text);
  const headers = { authorization: `Bearer ${app.token}` };
  const at = (query: string): string => `${app.url}/local/apps/web/logs?${query}`;
  const past = async (query: string): Promise<readonly NamedLine[]> =>
    (await (await fetch(at(query), { headers })).text())
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  /** Follows the logs. The lines that came can be awaited. */
  const follow = (query: string): string[] => {
    const came: string[] = [];
    const read = (response: IncomingMessage): void => {
      eachLine(response, ({ name, text }) => came.push(`${name} ${text}`));
    };
    const request = get(at(`follow=true&${query}`), { headers, agent: false }, read).on("error", () => {});
    afterThisTest(() => void request.destroy());
    return came;
  };
  return { ...app, clock, ids, output, write, past, follow };
}

test("the last lines are those over all Machines, by their time, with the names", async () => {
  const { write, past, ids } = await withOutput(["one", "two"]);
  for (let i = 0; i < 5; i++) write("one", 1000 * i, `a${i}`);
  for (let i = 0; i < 5; i++) write("two", 1000 * i + 500, `b${i}`);
  expect((await past("")).map(({ text }) => text).join(" ")).toBe("a0 b0 a1 b1 a2 b2 a3 b3 a4 b4");
  expect(await past("lines=3")).toEqual([
    { machine: ids["two"], name: "two", time: "1970-01-01T00:00:03.500Z", text: "b3" },
    { machine: ids["one"], name: "one", time: "1970-01-01T00:00:04.000Z", text: "a4" },
    { machine: ids["two"], name: "two", time: "1970-01-01T00:00:04.500Z", text: "b4" },
  ]);
  expect((await past(`lines=3&machine=${ids["one"]}`)).map(({ text }) => text)).toEqual(["a2", "a3", "a4"]);
});

test("a request that names no number of lines gets the last 1,000 of all Machines, not everything that they wrote", async () => {
  const names = ["one", "two", "three"];
  const { write, past, follow, output, clock } = await withOutput(names);
  for (let i = 0; i < 4500; i++) write(names[i % 3] ?? "", i, `${i}`);
  const last = Array.from({ length: 1000 }, (_, i) => String(3500 + i));
  expect((await past("")).map(({ text }) => text)).toEqual(last);
  const came = follow("");
  await expect.poll(() => output.readers).toBe(3);
  write("one", 5000, "new");
  await expect.poll(() => (clock.advance(waitMs), came.at(-1))).toBe("one new");
  expect(came.map((line) => line.split(" ").at(-1))).toEqual([...last, "new"]);
});

test("more than 10,000 lines are refused", async () => {
  const { url, token } = await withOutput([]);
  const headers = { authorization: `Bearer ${token}` };
  const statusOf = async (query: string) => {
    const answer = await fetch(`${url}/local/apps/web/logs?${query}`, { headers });
    return [answer.status, await answer.text()];
  };
  expect(await statusOf("lines=10000")).toEqual([200, ""]);
  expect(await statusOf("lines=10001")).toEqual([400, expect.stringMatching(/invalid lines, got .*10001.*10000/)]);
});

test("following begins with the last lines over all Machines, and continues by time", async () => {
  const { write, follow, clock, output } = await withOutput(["one", "two"]);
  for (let i = 0; i < 9; i++) write(i % 3 === 0 ? "two" : "one", `2026-01-01T00:00:00.${i}Z`, `line ${i}`);
  const came = follow("lines=4");
  await expect.poll(() => output.readers).toBe(2);
  await expect
    .poll(() => (clock.advance(waitMs), came))
    .toEqual(["one line 5", "two line 6", "one line 7", "one line 8"]);
  // The engine delivers those of one Machine first, and they were written later.
  write("one", "2026-01-01T00:00:01.2Z", "third");
  write("one", "2026-01-01T00:00:01.25Z", "fourth");
  write("two", "2026-01-01T00:00:01Z", "first");
  write("two", "2026-01-01T00:00:01.123456789Z", "second");
  await expect
    .poll(() => (clock.advance(waitMs), came.slice(4)))
    .toEqual(["two first", "two second", "one third", "one fourth"]);
  // One that comes later than that is shown when it comes.
  write("two", "2026-01-01T00:00:01.1Z", "late");
  await expect.poll(() => (clock.advance(waitMs), came.at(-1))).toBe("two late");
});

test("lines of the moment in which following begins are shown once", async () => {
  const { write, follow, clock, output } = await withOutput(["one", "two"]);
  // An engine is asked by milliseconds, so it shows these again.
  for (const nanoseconds of ["100000001", "100000002", "100000002"])
    write("one", `2026-01-01T00:00:00.${nanoseconds}Z`, "same");
  const came = follow("lines=10");
  await expect.poll(() => output.readers).toBe(2);
  write("one", "2026-01-01T00:00:00.100000002Z", "next");
  write("two", "2026-01-01T00:00:00.2Z", "other");
  await expect
    .poll(() => (clock.advance(waitMs), came))
    .toEqual(["one same", "one same", "one same", "one next", "two other"]);
});

test("without lines to begin with, only new ones are shown, and all of a Machine that is created later", async () => {
  const { write, follow, machine, ids, output, clock } = await withOutput(["one"]);
  write("one", 1000, "before");
  const came = follow("lines=0");
  await expect.poll(() => output.readers).toBe(1);
  write("one", 2000, "new");
  // A Machine that is alone waits for no other, so no time passes.
  await expect.poll(() => came).toEqual(["one new"]);
  ids["two"] = (await machine({}, { name: "two" })).id;
  write("two", 3000, "begins");
  await expect.poll(() => (clock.advance(waitMs), came)).toEqual(["one new", "two begins"]);
});

test("a reader that reads slowly gets every line", async () => {
  const { write, url, token, output } = await withOutput(["one"]);
  const headers = { authorization: `Bearer ${token}` };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/local/apps/web/logs?follow=true&lines=0`, { headers, agent: false }, resolve).once("error", reject);
    void expect
      .poll(() => output.readers)
      .toBe(1)
      .then(() => write("one", 0, "line 0"), reject);
  });
  afterThisTest(() => void response.destroy());
  const count = 30_000;
  for (let i = 1; i < count; i++) write("one", i, `line ${i}`);
  const texts: string[] = [];
  eachLine(response, ({ text }) => texts.push(text));
  await expect.poll(() => texts.length).toBe(count);
  expect(texts).toEqual(Array.from({ length: count }, (_, i) => `line ${i}`));
});
