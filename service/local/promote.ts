// Lets a member lead that only follows, because the container engine or the folder of the Postgres servers was lost.
import { randomBytes } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import type { Lost } from "../lifecycle/lost.ts";
import { readUntil } from "../replication/catchUp.ts";
import { endedMs, type Listed, type Log } from "../replication/log.ts";
import { MemberCopy } from "../store/memberCopy.ts";
import { isSamePlace, isSomewhere, placeBytes, readPlace, type Place } from "./place.ts";
import { Problem } from "./problem.ts";
import { openStore } from "./sharedStore.ts";
import { inDraft, requireIdentity, unrenewed, type StoreAddress } from "./storeTransfer.ts";

/** What is lost when a member is promoted. */
export interface Losses {
  /** Machines that run, and start again. */
  readonly machines: number;
  /** Volumes that begin empty. */
  readonly volumes: number;
  /** Snapshots that are gone. */
  readonly snapshots: number;
  /** Names of clusters that begin empty. */
  readonly clusters: readonly string[];
}

/** A promotion that is possible now. */
export interface Promotion {
  readonly losses: Losses;
  /** Carries it out. */
  readonly promote: () => Promise<void>;
}

/**
 * Finds out what a promotion means, and passes it to `use`.
 * @throws Problem if it is not possible.
 */
export async function withPromotion(
  { url, key }: StoreAddress,
  address: string,
  use: (promotion: Promotion) => Promise<void>,
  notKnown: (addresses: readonly string[]) => Problem,
): Promise<void> {
  const log = await openStore(url, key);
  try {
    await requireIdentity(log);
    const stored = await log.place();
    if (!stored) throw new Problem("--store: no member has begun yet");
    const before = readPlace(stored);
    if (!isSomewhere(before))
      throw new Problem(`with --runtime ${before.runtime} every member may lead, so none needs to be promoted`);
    const members = await log.members();
    const member = members.find((one) => one.address === address);
    if (!member) throw notKnown(members.map((one) => one.address));
    const place = placeOfRunning(member);
    if (isSamePlace(place, before)) throw new Problem(`the member ${address} may lead already`);
    const able = members.filter((one) => one.agoMs < endedMs && one.place && isSamePlace(readPlace(one.place), before));
    if (able.length > 0)
      throw new Problem(
        `${able.map((one) => one.address).join(", ")} may lead, and ${able.length === 1 ? "is" : "are"} running: the Machines and servers there are not lost; stop every member there first`,
      );
    const { epoch = 0, renewal } = (await unrenewed(log)) ?? {};
    const lost: Lost = {
      engine: before.lost?.engine === true || before.engine !== place.engine,
      folder: before.lost?.folder === true || before.folder !== place.folder,
    };
    const promote = async (): Promise<void> => {
      // The lease ends at once: from now on only members at the new place may lead.
      const mine = await log.takeOver(epoch, { id: randomBytes(8).toString("hex"), address: "" }, 0, renewal);
      if (mine === undefined || !(await log.setPlace(mine, placeBytes({ ...place, lost }))))
        throw new Problem("another member was started meanwhile; look at `members`, and try again");
    };
    await use({ losses: await lossesOf(log, lost), promote });
  } finally {
    await log.close();
  }
}

function placeOfRunning({ address, agoMs, place }: Listed): Place {
  if (agoMs >= endedMs) throw new Problem(`the member ${address} does not run; start it first`);
  if (!place) throw new Problem("--key-file: the members have another key");
  return readPlace(place);
}

/** What the store has of the place that is lost. */
async function lossesOf(log: Log, { engine, folder }: Lost): Promise<Losses> {
  return inDraft(tmpdir(), async (file) => {
    const copy = new MemberCopy(file);
    await readUntil(copy, log, (await log.end()).seq);
    copy.close();
    const db = new DatabaseSync(file, { readOnly: true });
    const countOf = (rows: string): number =>
      Number(db.prepare(`SELECT count(*) AS count FROM ${rows}`).get()?.["count"] ?? 0);
    try {
      return {
        machines: engine ? countOf("machines WHERE state IN ('starting', 'started', 'restarting', 'suspending')") : 0,
        volumes: engine ? countOf("volumes WHERE written = 1") : 0,
        snapshots: engine ? countOf("snapshots") : 0,
        clusters: folder
          ? db
              .prepare(
                "SELECT name FROM clusters WHERE status IN ('creating', 'initializing', 'ready') ORDER BY number",
              )
              .all()
              .map(({ name }) => String(name))
          : [],
      };
    } finally {
      db.close();
    }
  });
}
