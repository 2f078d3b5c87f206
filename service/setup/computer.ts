// The computer that is set up: its programs and files.
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** How a program ended. */
export interface Ended {
  /** Its exit code; 127 if there is no such program. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const mostOutput = 16_000_000;

/** Runs a program to its end. */
export function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((done) => {
    const options = { env: { ...process.env, LC_ALL: "C", ...env }, maxBuffer: mostOutput };
    execFile(program, [...args], options, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : error.code === "ENOENT" ? 127 : 1;
      done({ code, out, err });
    });
  });
}

/** Whether a program is on PATH. */
export const hasProgram = async (name: string): Promise<boolean> =>
  (await run("sh", ["-c", `command -v "$1"`, "sh", name])).code === 0;

/** The npm that belongs to this Node.js, or else that of PATH. */
export function npmProgram(): string {
  const beside = join(dirname(process.execPath), "npm");
  return existsSync(beside) ? beside : "npm";
}

/** The text of a file; undefined if there is none. */
export function textIn(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return undefined;
    throw error;
  }
}

/** Writes a file of the system at once, with its folder. */
export function writeText(file: string, text: string, mode: number): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode, flag: "wx", flush: true });
  // Whatever the umask is.
  chmodSync(draft, mode);
  renameSync(draft, file);
}
