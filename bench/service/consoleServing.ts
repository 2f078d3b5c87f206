// The part of npm run bench:service about the console: what its views of many Machines take, how long other clients wait for them,
// and what open pages cost.
import { request } from "node:http";
import { ask } from "./ask.ts";
import type { Local } from "./command.ts";
import { load } from "./load.ts";
import { median, milliseconds, report } from "./run.ts";

/** Changes a Machine of the App `web`. */
async function change({ url, token }: Local, id: string, value: string): Promise<void> {
  const init = { method: "POST", headers: { authorization: `Bearer ${token}` }, body: JSON.stringify({ value }) };
  const answer = await fetch(`${url}/v1/apps/web/machines/${id}/metadata/round`, init);
  if (!answer.ok) throw new Error(`a change answered ${answer.status}`);
}

/** The longest wait of a client that reads a Machine all the time, until `act` is over. */
export async function longestWait(local: Local, id: string, act: () => Promise<unknown>): Promise<number> {
  const over = new AbortController();
  let longest = 0;
  const other = (async () => {
    while (!over.signal.aborted) {
      longest = Math.max(longest, await milliseconds(() => ask(local, `/v1/apps/web/machines/${id}`)));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  await act();
  over.abort();
  await other;
  return longest;
}

const views = [
  ["overview", "overview"],
  ["groups", "apps/web/groups"],
  ["first window", "apps/web/machines"],
  ["window of a search", "apps/web/machines?text=copy-0999"],
  ["window by image", "apps/web/machines?sort=image"],
  ["last window by time", "apps/web/machines?sort=updated&offset=99900"],
  ["search", "search?q=none-such-as-this"],
] as const;

/** Measures the views on a service with many Machines in the App `web`. */
export async function consoleViews(local: Local, id: string, many: number): Promise<void> {
  const alone = await longestWait(local, id, () => new Promise((resolve) => setTimeout(resolve, 1000)));
  for (const [what, path] of views) {
    const times: number[] = [];
    let wait = 0;
    for (let round = 0; round < 5; round++) {
      // An answer is remembered until a change, and one that was expensive for a while longer.
      await change(local, id, String(round));
      let freshIn: number | undefined = 0;
      while (freshIn !== undefined) {
        await new Promise((resolve) => setTimeout(resolve, freshIn));
        let text = "";
        const act = async (): Promise<void> => void (text = await ask(local, `/console/api/${path}`));
        let took = 0;
        const waited = await longestWait(local, id, async () => void (took = await milliseconds(act)));
        freshIn = (JSON.parse(text) as { readonly freshIn?: number }).freshIn;
        if (freshIn !== undefined) continue;
        times.push(took);
        wait = Math.max(wait, waited);
      }
    }
    report(
      `console, ${what}, ${many.toLocaleString("en")} Machines`,
      `${median(times).toFixed(0)} ms; another client waits ${wait.toFixed(0)} ms at most (${alone.toFixed(0)} ms without)`,
      "no wait above 50 ms",
    );
  }
}

/** Opens a page of the console: it reads a window after each message, at most ten times a second. */
async function openPage(local: Local, topics: string, told: () => void): Promise<() => void> {
  const path = `${local.url}/console/events?topics=${encodeURIComponent(topics)}`;
  const sent = request(path, { agent: false, headers: { authorization: `Bearer ${local.token}` } });
  const opened = new Promise<void>((resolve, reject) => {
    sent.once("error", reject).once("response", (answer) => {
      answer
        .on("error", () => {})
        .on("data", (part: Buffer) => {
          const text = part.toString();
          if (text.includes("event: hello")) resolve();
          if (text.includes("event: changed")) told();
        });
    });
  });
  sent.end();
  await opened;
  sent.on("error", () => {});
  return () => void sent.destroy();
}

/** Measures the time from the answer to a change until its message. */
export async function consoleStream(local: Local, id: string): Promise<void> {
  let told = (): void => {};
  const close = await openPage(local, `machine:web/${id}`, () => told());
  const [messages, trips]: [number[], number[]] = [[], []];
  for (let round = 0; round < 50; round++) {
    const heard = new Promise<number>((resolve) => (told = () => resolve(performance.now())));
    await change(local, id, String(round));
    const answered = performance.now();
    messages.push((await heard) - answered);
    trips.push(await milliseconds(() => ask(local, `/v1/apps/web/machines/${id}`)));
    // Messages that follow each other are told together, 50 ms apart.
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  close();
  report(
    "console, message after the answer to a change",
    `${median(messages).toFixed(1)} ms, at most ${Math.max(...messages).toFixed(0)} ms; reading a Machine takes ${median(trips).toFixed(1)} ms`,
    "≤ 10 ms",
  );
}

/** Measures creates per second without pages, and with 50 that read the first window again after each message. */
export async function consolePages(local: Local, body: string, seconds: number, rounds: number): Promise<void> {
  const creates = async (): Promise<number> => {
    const url = `${local.url}/v1/apps/created/machines`;
    const rate = await load({ url, token: local.token, method: "POST", body, connections: 200, seconds });
    if (rate.failures > 0) throw new Error(`${rate.failures} creates failed`);
    return rate.perSecond;
  };
  const [without, with_, reads]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    without.push(await creates());
    let count = 0;
    const pages = await Promise.all(
      Array.from({ length: 50 }, () => {
        let earliest = 0;
        let isReading = false;
        return openPage(local, "org,app:created", () => {
          if (isReading || performance.now() < earliest) return;
          isReading = true;
          const begun = performance.now();
          void (async () => {
            const text = await ask(local, "/console/api/apps/created/machines");
            const { freshIn = 0 } = JSON.parse(text) as { readonly freshIn?: number };
            const now = performance.now();
            earliest = Math.max(begun + Math.max(100, 4 * (now - begun)), now + freshIn);
            isReading = false;
            count++;
          })();
        });
      }),
    );
    with_.push(await creates());
    reads.push(count / seconds);
    for (const close of pages) close();
  }
  const [floor, real] = [median(without), median(with_)];
  report(
    "console, creates with 50 open pages",
    `${real}/s, ${(real / floor).toFixed(2)} of ${floor}/s without; the pages read ${median(reads).toFixed(0)} windows a second`,
    "≥ 0.8 of those without",
  );
}
