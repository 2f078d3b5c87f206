// What the tests leave out because this computer lacks something. The last lines of a test run say so.
import fs from "node:fs";
import path from "node:path";
import { cache } from "./paths.mjs";

const file = path.join(cache, "left-out.txt");

/** Forgets what an earlier run has left out. */
export const forgetLeftOut = () => fs.rmSync(file, { force: true });

/** Notes that tests are left out, and why. */
export function leaveOut(what, reason) {
  fs.mkdirSync(cache, { recursive: true });
  fs.appendFileSync(file, `Not tested: ${what}, because ${reason}\n`);
}

/** The lines of this run. */
export const leftOut = () => (fs.existsSync(file) ? fs.readFileSync(file, "utf8").trimEnd() : "");
