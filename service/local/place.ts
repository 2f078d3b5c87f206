// Where the Machines and Postgres clusters of several members run. A container engine and a server's folder are on one computer, so
// only members there may lead.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Lost } from "../lifecycle/lost.ts";
import type { Log } from "../replication/log.ts";
import { dataIdOf } from "../store/dataId.ts";
import { writePrivately } from "../store/privateFile.ts";
import type { LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";

/** What all members have in common, and what only some have. */
export interface Place {
  readonly runtime: string;
  readonly postgres: string;
  /** With `--runtime docker`: the engine with the containers. */
  readonly engine?: string;
  /** With `--postgres embedded`: the data folder with the servers' data. */
  readonly folder?: string;
  /** What was lost at the place before. The next leader creates it again. */
  readonly lost?: Lost;
}

/** The bytes that the log keeps. */
export const placeBytes = (place: Place): Uint8Array => Buffer.from(JSON.stringify(place));

/** The place that the log or a member has said. */
export const readPlace = (bytes: Uint8Array): Place => JSON.parse(Buffer.from(bytes).toString()) as Place;

/** Whether only some members may lead. */
export const isSomewhere = ({ engine, folder }: Place): boolean => engine !== undefined || folder !== undefined;

/** Whether a member of one place may lead where the other one is. */
export const isSamePlace = (one: Place, other: Place): boolean =>
  one.engine === other.engine && one.folder === other.folder;

/** The place of this member. */
export async function placeOf({ runtime = "simulated", postgres = "simulated" }: LocalOptions, data: string) {
  const place: Place = {
    ...{ runtime, postgres },
    ...(runtime === "docker" ? { engine: await engineId() } : {}),
    ...(postgres === "embedded" ? { folder: folderId(data) } : {}),
  };
  return place;
}

async function engineId(): Promise<string> {
  const docker = await import("../runtime/docker/index.ts");
  return docker.engineId().catch((error: unknown) => {
    throw error instanceof docker.EngineError ? new Problem(error.message) : error;
  });
}

/** A random identity that is kept beside the servers' data: two members of one computer have different folders. */
function folderId(data: string): string {
  const file = join(data, "folder-id");
  if (!existsSync(file)) writePrivately(file, `${randomBytes(8).toString("hex")}\n`);
  return readFileSync(file, "utf8").trim();
}

/**
 * Compares the place of this member with that of the first one. Returns why this one may only follow; undefined if it may lead.
 * @throws Problem if it can be no member at all.
 */
export async function followsOnly(log: Pick<Log, "addPlace">, mine: Place): Promise<string | undefined> {
  // Of two members that start at once, only one is first.
  const first = readPlace(await log.addPlace(placeBytes(mine)));
  for (const option of ["runtime", "postgres"] as const)
    if (mine[option] !== first[option])
      throw new Problem(
        `--${option} ${mine[option]}: this service has --${option} ${first[option]}, and all of its members must have the same`,
      );
  return elsewhere(first, mine);
}

/** As much of an id as engines show of theirs. */
const short = (engine = "none"): string => engine.slice(0, 12);

/** Why a member may only follow, as a sentence; undefined if it may lead. */
export function elsewhere(first: Place, mine: Place): string | undefined {
  if (mine.engine !== first.engine)
    return `this member only follows: the Machines run on the container engine ${short(first.engine)}, and the one here is ${short(mine.engine)}`;
  if (mine.folder !== first.folder)
    return "this member only follows: the Postgres servers have their data in the --data folder of another member";
  return undefined;
}

/**
 * Ends what still runs at the place of a member, after another one took its place: two of them would act for the same Machines.
 * Nothing that they have is removed. Returns what was ended, as sentences.
 */
export async function endLeft(first: Place, mine: Place, data: string): Promise<string[]> {
  const said: string[] = [];
  if (mine.engine !== first.engine) {
    const { endContainers } = await import("../runtime/docker/index.ts");
    const count = await endContainers(dataIdOf(data, randomBytes));
    if (count > 0) said.push(`containers that were ended here, because their Machines run elsewhere: ${count}`);
  }
  if (mine.folder !== undefined && mine.folder !== first.folder) {
    const { endServers } = await import("../runtime/postgres/index.ts");
    const count = await endServers(data);
    if (count > 0) said.push(`Postgres servers that were ended here, because their clusters run elsewhere: ${count}`);
  }
  return said;
}
