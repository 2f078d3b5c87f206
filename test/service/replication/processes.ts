// Members of one service as real processes on a PostgreSQL of the test.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, vi } from "vitest";
import { hang } from "../../support/patience.mts";
import { caller } from "../client.ts";
import { folder, foreground } from "../command.ts";

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
}

/** A service whose members share a database. */
export function serviceOn(store: string, ...more: readonly string[]): Service {
  const keyFile = join(dirname(folder()), "key");
  mkdirSync(dirname(keyFile), { recursive: true });
  if (!existsSync(keyFile)) writeFileSync(keyFile, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  const options = ["--store", store, "--key-file", keyFile, "--delays", "none", ...more];
  return {
    ...{ store, keyFile, options },
    async start(data = folder(), ...others) {
      return { ...(await foreground(data, [...options, ...others])), data };
    },
  };
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
