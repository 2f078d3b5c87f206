// Some stories of the universe run with every test run; `npm run test:all` plays more, and `npm run test:universe` any number. Each runs
// in a process of its own: sameTurn.ts changes modules of Node, which test files share.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inRoot } from "../../tools/lib/paths.mjs";
import { allOr, isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";
import { everyBug, type Bug } from "./bugs.ts";
import type { Story } from "./story.ts";

const seed = "20260101";
const program = inRoot("test/universe/main.ts");

/** Runs the command; `said` gets every piece of its output, and can answer. */
async function universe(
  args: readonly string[],
  said: (text: string, answer: (lines: string) => void) => void = () => {},
) {
  const child = spawn(process.execPath, ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", program, ...args]);
  let output = "";
  const hear = (text: string): void => {
    output += text;
    said(output, (lines) => child.stdin.end(lines));
  };
  child.stdout.setEncoding("utf8").on("data", hear);
  child.stderr.setEncoding("utf8").on("data", hear);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}

test(
  "whatever happens to members, networks and runs, no stack loses or doubles anything, and all converge",
  { timeout: isThorough ? 24 * wholeTest : wholeTest },
  async () => {
    const { code, output } = await universe(["--runs", isThorough ? "1000" : "8", "--seed", seed]);
    expect(code, output).toBe(0);
    // The stories try what they are for.
    const [, requests, leaders] = /(\d+) requests, .* (\d+) leaders/.exec(output.trim().split("\n").at(-1) ?? "") ?? [];
    expect(Number(requests), output).toBeGreaterThan(100);
    expect(Number(leaders), output).toBeGreaterThan(8);
  },
);

test.each(allOr<Bug>(everyBug, ["a delete does nothing"]))(
  "the universe finds that %s",
  { timeout: 6 * wholeTest },
  async (bug) => {
    const { code, output } = await universe(["--bugs", "--bug", bug, "--runs", "1000", "--seed", seed]);
    expect(code, output).toBe(0);
    expect(output).toMatch(new RegExp(`\\| ${bug} \\| \\d+ \\|`));
  },
);

/** One person, who creates a Machine while the leader is killed. */
const short: Story = {
  ...{ members: 2, luck: 1 },
  people: [
    {
      slots: [{ kind: "Machine", pick: 0, life: [0, 0, 0, 0] }],
      phases: [{ verb: "up", pick: 0, trouble: { faults: [], slow: [], death: undefined, others: [] } }],
      parallel: 1,
    },
  ],
  disturbances: [{ what: "kill", at: 1, seconds: 1, member: 5 }],
};

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "universe-"));
  file = join(folder, "story.json");
  writeFileSync(file, JSON.stringify(short));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a story that is repeated logs the same lines", async () => {
  const first = await universe(["--story", file]);
  expect(first.output).toMatch(
    /kill of member \d\.1 for 1 s\n[^]*member \d\.\d answers, epoch 2[^]*No invariant is broken/,
  );
  expect(await universe(["--story", file])).toEqual(first);
});

test("a replay waits at every step, and the console of the leader answers meanwhile", async () => {
  let looked: Promise<string> | undefined;
  const look = async (url: string, answer: (lines: string) => void): Promise<string> => {
    const response = await fetch(url, { headers: { accept: "text/html" } });
    const text = await response.text();
    answer("\n".repeat(1000));
    return `${response.status} ${text}`;
  };
  const { code, output } = await universe(["--story", file, "--console"], (text, answer) => {
    const [, url] = /sign in: (http:\/\/[^/]+)\//.exec(text) ?? [];
    if (url !== undefined) looked ??= look(url, answer);
  });
  expect(code, output).toBe(0);
  expect(await looked).toMatch(/^200 [^]*<html/);
  expect(output).toMatch(/member \d\.1 answers, epoch 1[^]*create Machine machine0[^]*No invariant is broken\./);
});

test("an unknown mistake, and a console without a story, are refused", async () => {
  expect(await universe(["--bug", "none"])).toMatchObject({
    code: 1,
    output: expect.stringContaining("got none") as string,
  });
  expect(await universe(["--console"])).toMatchObject({
    code: 1,
    output: expect.stringContaining("--console needs --story") as string,
  });
});
