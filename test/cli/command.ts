// Runs the pulumi-machines command for tests: in its own process, or in the test's.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../cli/command.ts";
import { cliMain } from "../support/built.ts";
import type { TestService } from "../support/startService.ts";

/** The result of a run. */
export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Options of a run. */
export interface Run {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs the command until it exits; the environment tells it which service to use. */
export function command(
  service: Pick<TestService, "url" | "token">,
  args: readonly string[],
  { stdin = "", env = {}, cwd }: Run = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [cliMain, ...args], {
    env: { ...process.env, MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  return new Promise((resolve, reject) => {
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
    // It may exit before it has read its standard input.
    child.stdin.on("error", () => undefined).end(stdin);
    child.on("error", reject).on("close", (code) => resolve({ code, out, err }));
  });
}

/**
 * Runs the command in this process, which takes a fraction of the time. Its own process has what it prints to a terminal,
 * how it reads its standard input, and that it ends.
 */
export async function commandHere(
  { url, token }: Pick<TestService, "url" | "token">,
  args: readonly string[],
  { stdin, env = {}, cwd }: Run = {},
): Promise<Ran> {
  const written = { stdout: "", stderr: "" };
  const input = mkdtempSync(join(tmpdir(), "machines-input-"));
  const file = join(input, "state.json");
  if (stdin !== undefined) writeFileSync(file, stdin);
  const before = { env: { ...process.env }, cwd: process.cwd() };
  try {
    // As in a pipe: without colours, also where the tests run on a terminal.
    Object.assign(process.env, { NO_COLOR: "1", MACHINES_ENDPOINT: url, MACHINES_TOKEN: token, ...env });
    if (cwd !== undefined) process.chdir(cwd);
    const words = args.map((word, i) => (word === "-" && args[i - 1] === "--state" ? file : word));
    const code = await runCommand(words, (stream, text) => (written[stream] += text));
    return { code, out: written.stdout, err: written.stderr };
  } finally {
    process.chdir(before.cwd);
    for (const name of Object.keys(process.env)) if (!(name in before.env)) delete process.env[name];
    Object.assign(process.env, before.env);
    rmSync(input, { recursive: true });
  }
}

/** An orphan as `--json` prints it. */
export interface OrphanJson {
  readonly type: string;
  readonly id: string;
  readonly name: string | null;
  readonly createdAt: string | null;
  readonly madeBy: string;
  readonly belongsTo: string | null;
  readonly urn: string | null;
  readonly inState: readonly string[];
  readonly remark: string | null;
  readonly import: string | null;
  readonly look: string;
  readonly delete: string | null;
  readonly provider: string | null;
}

/** The report as `--json` prints it. */
export interface ReportJson {
  readonly stack: string | null;
  readonly project: string | null;
  readonly places: readonly {
    readonly endpoint: string;
    readonly organization: string;
    readonly provider: string | null;
  }[];
  readonly orphans: readonly OrphanJson[];
  readonly heldElsewhere: readonly {
    readonly type: string;
    readonly id: string;
    readonly stack: string;
    readonly endpoint: string | null;
  }[];
  readonly missing: readonly { readonly type: string; readonly id: string; readonly urn: string }[];
  readonly notes: readonly string[];
  readonly failures: readonly string[];
}
