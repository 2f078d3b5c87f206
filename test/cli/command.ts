// What the tests run the pulumi-machines command with: a process of its own.
import { spawn } from "node:child_process";
import { join } from "node:path";
import type { TestService } from "../support/startService.ts";

const main = join(__dirname, "../../cli/main.ts");

/** What a run came to. */
export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** How it is run. */
export interface Run {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs the command to its end; the service is told by the environment. */
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
    // It may end before it has read what it is told.
    child.stdin.on("error", () => undefined).end(stdin);
    child.on("error", reject).on("close", (code) => resolve({ code, out, err }));
  });
}

/** An orphan as `--json` tells it. */
export interface OrphanJson {
  readonly type: string;
  readonly id: string;
  readonly name: string | null;
  readonly createdAt: string | null;
  readonly madeBy: string;
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
  readonly missing: readonly { readonly type: string; readonly id: string; readonly urn: string }[];
  readonly notes: readonly string[];
  readonly failures: readonly string[];
}
