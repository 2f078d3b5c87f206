// The newest version of machines-service on npm, as npm itself finds it, with its registry and its credentials.
import { npmProgram, run } from "./computer.ts";

/** A published version. */
export interface Published {
  readonly version: string;
  /** The versions of Node.js that it runs on, such as `>=22.19.0`. */
  readonly node: string | undefined;
}

/** Why npm did not say it, as a sentence without a full stop. */
export interface Unknown {
  readonly reason: string;
}

// ASSUMED: a check that waits longer than ten seconds for the registry is no help.
const patience = ["--fetch-timeout=10000", "--fetch-retries=0"];

/** Asks npm for the newest version. */
export async function newestPublished(): Promise<Published | Unknown> {
  const args = ["view", "machines-service", "version", "engines.node", "--json", "--no-update-notifier", ...patience];
  const { code, out, err } = await run(npmProgram(), args);
  if (code === 127) return { reason: "There is no npm here, so the newest published version is unknown" };
  if (/\bE404\b/.test(`${out}${err}`)) return { reason: "machines-service is not published in the registry of npm" };
  const failed = { reason: "The registry of npm did not say which version is the newest one" };
  if (code !== 0) return failed;
  try {
    const { version, "engines.node": node } = JSON.parse(out) as Readonly<Record<string, string | undefined>>;
    return version === undefined ? failed : { version, node };
  } catch {
    return failed;
  }
}
