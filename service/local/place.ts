// Where the Machines and Postgres clusters of several members run. A container engine and a server's folder are on one computer, so
// only members there may lead.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../replication/log.ts";
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
}

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
  const stored = await log.addPlace(Buffer.from(JSON.stringify(mine)));
  const first = JSON.parse(Buffer.from(stored).toString()) as Place;
  for (const option of ["runtime", "postgres"] as const)
    if (mine[option] !== first[option])
      throw new Problem(
        `--${option} ${mine[option]}: this service has --${option} ${first[option]}, and all of its members must have the same`,
      );
  if (mine.engine !== first.engine)
    return `this member only follows: the Machines run on the container engine ${first.engine}, and the one here is ${mine.engine}`;
  if (mine.folder !== first.folder)
    return "this member only follows: the Postgres servers have their data in the --data folder of another member";
  return undefined;
}
