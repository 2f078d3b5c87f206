// Programs that end with the process that started them, however that ends.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { tail } from "./process.mjs";

/**
 * Runs a script of sh. It ends its programs when its input ends, which also happens when this process is killed.
 * @param {string} script
 * @param {string[]} args
 * @param {string} logFile What all of it writes is added to this file.
 * @param {NodeJS.ProcessEnv} env
 */
export function startKeeper(script, args, logFile, env = process.env) {
  const log = fs.openSync(logFile, "a");
  // In a session of its own: ^C in a terminal ends this process first, and then the programs.
  const keeping = spawn("sh", ["-c", script, "sh", ...args], { stdio: ["pipe", log, log], detached: true, env });
  fs.closeSync(log);
  const ended = new Promise((resolve) => {
    for (const event of ["exit", "error"]) keeping.once(event, resolve);
  });
  keeping.stdin.on("error", () => {}); // it has ended; the log says why
  return {
    /** Writes a line of its input. */
    ask: (line) => keeping.stdin.write(`${line}\n`),
    isRunning: () => keeping.exitCode === null,
    /** The last lines of the log, unless the script has removed it. */
    log: () => (fs.existsSync(logFile) ? tail(fs.readFileSync(logFile, "utf8"), 5) : ""),
    /** Ends all of it. */
    remove: async () => {
      keeping.stdin.end();
      await ended;
    },
  };
}
