// Some stories of the universe run with every test run; `npm run test:all` plays more, and `npm run test:universe` any number.
import "./sameTurn.ts";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { allOr, isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";
import { everyBug, type Bug } from "./bugs.ts";
import { play } from "./play.ts";
import { replay } from "./replay.ts";
import { describeFound, search } from "./search.ts";
import type { Story } from "./story.ts";

const seed = 20_260_101;

test(
  "whatever happens to members, networks and runs, no stack loses or doubles anything, and all converge",
  { timeout: isThorough ? 24 * wholeTest : wholeTest },
  async () => {
    const sum = { requests: 0, takeovers: 0 };
    const found = await search({
      ...{ runs: isThorough ? 1000 : 8, seed },
      lived: ({ requests, takeovers }) => {
        sum.requests += requests;
        sum.takeovers += takeovers;
      },
    });
    expect(found && describeFound(seed, found, "its file")).toBeUndefined();
    // The stories try what they are for.
    expect(sum.requests).toBeGreaterThan(100);
    expect(sum.takeovers).toBeGreaterThan(8);
  },
);

test.each(allOr<Bug>(everyBug, ["a delete does nothing"]))(
  "the universe finds that %s",
  { timeout: 6 * wholeTest },
  async (bug) => {
    expect(await search({ runs: 1000, seed, bug, shorteningMs: 0 })).toBeDefined();
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

test("the same story is told in the same words", async () => {
  const tell = async (): Promise<string[]> => {
    const lines: string[] = [];
    await play(short, { onTold: (line) => void lines.push(line) });
    return lines;
  };
  const first = await tell();
  expect(first.join("\n")).toMatch(/kill of member \d\.1 for 1 s\n[^]*member \d\.\d answers, epoch 2/);
  expect(await tell()).toEqual(first);
});

test("a replay waits at every step, and the console of the leader answers meanwhile", async () => {
  const input = new PassThrough();
  const lines: string[] = [];
  let answer: { status: number; text: string } | undefined;
  let asked: Promise<void> | undefined;
  const look = async (url: string): Promise<void> => {
    const response = await fetch(url, { headers: { accept: "text/html" } });
    answer = { status: response.status, text: await response.text() };
    for (let i = 0; i < 1000; i++) input.write("\n");
    input.end();
  };
  await replay(short, undefined, {
    input,
    write: (text) => {
      lines.push(text);
      const [, url] = /sign in: (http:\/\/[^/]+)\//.exec(text) ?? [];
      if (url !== undefined) asked ??= look(url);
    },
  });
  await asked;
  expect(answer).toMatchObject({ status: 200, text: expect.stringContaining("<html") as string });
  expect(lines.join("")).toMatch(
    /member \d\.1 answers, epoch 1[^]*create Machine machine0[^]*No invariant is broken\./,
  );
});
