// For programs that killAtEach.ts kills: ends the process with SIGKILL just before or just after the nth statement.
// Arguments: data folder, n, before|after.
const [, count = "0", when = "before"] = process.argv.slice(2);
const fatal = Number(count);
let statements = 0;

/** Runs a statement, and kills the process if it is the nth. */
export function counted<T>(act: () => T): T {
  statements++;
  if (when === "before" && statements === fatal) process.kill(process.pid, "SIGKILL");
  const result = act();
  if (statements === fatal) process.kill(process.pid, "SIGKILL");
  return result;
}

/** Statements so far. */
export const countedSoFar = (): number => statements;
