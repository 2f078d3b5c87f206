// Members of one service as real processes on a PostgreSQL of the test.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, vi } from "vitest";
import type { Stored } from "../../../service/history/entry.ts";
import { storeFile } from "../../../service/store/database.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { hang } from "../../support/patience.mts";
import { caller } from "../client.ts";
import { folder, foreground } from "../command.ts";
import { contentsOf } from "./copies.ts";

/** What `/readyz` of a member says. */
export interface Standing {
  readonly role: "leader" | "standby";
  readonly epoch: number;
  readonly leader: string | null;
}

/** A running member. */
export type Member = Awaited<ReturnType<typeof foreground>> & { readonly data: string };

/** The members of one service. */
export interface Service {
  readonly store: string;
  readonly keyFile: string;
  /** The options that every member has. */
  readonly options: readonly string[];
  /** Starts a member, in a folder that it may have had before. */
  start(data?: string, ...more: string[]): Promise<Member>;
  /** Starts one with other variables of its environment. */
  startWith(env: NodeJS.ProcessEnv, data?: string, ...more: string[]): Promise<Member>;
}

/** A service whose members share a database. */
export function serviceOn(store: string, ...more: readonly string[]): Service {
  const keyFile = join(dirname(folder()), "key");
  mkdirSync(dirname(keyFile), { recursive: true });
  if (!existsSync(keyFile)) writeFileSync(keyFile, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  const options = ["--store", store, "--key-file", keyFile, "--delays", "none", ...more];
  const startWith = async (env: NodeJS.ProcessEnv, data = folder(), ...others: string[]): Promise<Member> => ({
    ...(await foreground(data, [...options, ...others], env)),
    data,
  });
  return { ...{ store, keyFile, options, startWith }, start: (...args) => startWith({}, ...args) };
}

/** What a member says about itself; undefined if it does not answer. */
export async function standing({ url }: Pick<Member, "url">): Promise<Standing | undefined> {
  const answer = await fetch(`${url}/readyz`).catch(() => undefined);
  return answer && ((await answer.json()) as Standing);
}

/** Waits until one of these members leads. */
export async function leaderOf<M extends Pick<Member, "url">>(members: readonly M[]): Promise<M> {
  let found: M | undefined;
  const look = async (): Promise<void> => {
    for (const one of members) if ((await standing(one))?.role === "leader") found = one;
    expect(found).toBeDefined();
  };
  await vi.waitFor(look, { timeout: hang, interval: 20 });
  return found as M;
}

/** Sends requests to a member. */
export const callOf = ({ url, data }: Member) => caller(url, readFileSync(join(data, "token"), "utf8").trim());

/** The history that a member shows. */
export async function historyOf({ url, data }: Pick<Member, "url" | "data">): Promise<Stored[]> {
  const authorization = `Bearer ${readFileSync(join(data, "token"), "utf8").trim()}`;
  const answer = await fetch(`${url}/local/history`, { headers: { authorization } });
  const lines = (await answer.text()).split("\n");
  return lines.filter(Boolean).map((line) => JSON.parse(line) as Stored);
}

/** The names of all Apps, as a member says. */
export async function namesAt(member: Member): Promise<string[]> {
  const names: string[] = [];
  // A fast computer creates more than one page has.
  for (let cursor = ""; ;) {
    const { body } = await callOf(member)("GET", `/apps?org_slug=personal${cursor}`);
    const { apps, next_cursor: next } = body as { apps: { name: string }[]; next_cursor?: string };
    names.push(...apps.map(({ name }) => name));
    if (next === undefined) return names;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
}

/** Clients that create Apps all the time. */
export interface Creating {
  /** The names of those that were acknowledged so far. */
  readonly acknowledged: readonly string[];
  /** Waits until as many more were acknowledged, which were sent after this. */
  more(count: number): Promise<void>;
  /** Ends it, and waits for the last answers. */
  end(): Promise<void>;
}

/** Creates Apps with several clients at once: each asks the members one after the other, and repeats what had no answer. */
export function create(prefix: string, members: () => readonly Member[]): Creating {
  const acknowledged: string[] = [];
  const over = new AbortController();
  afterThisTest(() => over.abort());
  let sent = 0;
  const client = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const name = `${prefix}-${sent++}`;
      for (let isDone = false, i = sent; !isDone && !over.signal.aborted; i++) {
        const all = members();
        const ask = callOf(all[i % all.length] as Member);
        const answer = await ask("POST", "/apps", { name, org_slug: "personal" }).catch(() => undefined);
        // The first attempt may have been accepted.
        isDone = answer !== undefined && [201, 422].includes(answer.status);
        if (isDone) acknowledged.push(name);
        else await sleep(20);
      }
    }
  };
  const clients = Promise.all([client(), client(), client()]);
  return {
    acknowledged,
    async more(count) {
      // Each client may have one that was sent earlier.
      const enough = acknowledged.length + 3 + count;
      await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(enough), { timeout: hang, interval: 5 });
    },
    async end() {
      over.abort();
      await clients;
    },
  };
}

/** Every row of every table in the copy of a member. */
export function copyOf({ data }: Pick<Member, "data">): ReturnType<typeof contentsOf> {
  const db = new DatabaseSync(storeFile(data), { readOnly: true });
  try {
    return contentsOf(db);
  } finally {
    db.close();
  }
}

/** Waits until all copies have the same entries, and requires that they are equal. Nothing changes meanwhile. */
export async function expectEqualCopies(members: readonly Member[]): Promise<void> {
  const positions = () => new Set(members.map((one) => String(copyOf(one)["copy_position"])));
  await vi.waitFor(() => expect(positions().size).toBe(1), { timeout: hang, interval: 20 });
  const [first, ...others] = members.map(copyOf);
  for (const one of others) expect(one).toEqual(first);
}
