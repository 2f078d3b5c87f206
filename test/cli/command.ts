// Runs the pulumi-machines command for tests, in its own process.
import { spawn } from "node:child_process";
import { join } from "node:path";
import type { TestService } from "../support/startService.ts";

/** The command in its sources. */
export const main = join(__dirname, "../../cli/main.ts");

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
  const child = spawn(process.execPath, ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", main, ...args], {
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
