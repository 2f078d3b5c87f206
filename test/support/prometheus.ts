// Prometheus and promtool, as programs that the tests build once.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { prometheusProgram } from "../../tools/setup/prometheus.mjs";
import { freePort } from "./freePort.ts";
import { afterThisTest } from "./leftovers.ts";

/** The program; undefined, said once, where it cannot be built. */
export async function findPrometheus(name: "prometheus" | "promtool"): Promise<string | undefined> {
  const { program, reason } = await prometheusProgram(name, process.env);
  if (program === undefined) leaveOut("alert rules and the dashboard in Prometheus", reason ?? "no program");
  return program;
}

/** A folder of the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "machines-prometheus-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

/** What a program prints, and how it exits. */
export async function outputOf(
  program: string,
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (text += part.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, text };
}

/** A firing or pending alert. */
export interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

/** A running Prometheus. */
export interface TestPrometheus {
  /** The data of an answer of its API. */
  get<T>(path: string): Promise<T>;
  /** The series of an expression. */
  query(expression: string): Promise<readonly { readonly metric: Readonly<Record<string, string>> }[]>;
  alerts(): Promise<readonly Alert[]>;
}

/** Starts Prometheus with a configuration, which gets the paths of the other files in its folder. */
export async function startPrometheus(
  program: string,
  config: (folder: string) => object,
  files: Readonly<Record<string, string>>,
): Promise<TestPrometheus> {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
  const file = join(folder, "prometheus.yml");
  // JSON is YAML, too.
  writeFileSync(file, JSON.stringify(config(folder)));
  const port = await freePort();
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, "data")}`];
  const child = spawn(program, [...args, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (part: Buffer) => (said += part.toString()));
  const ended = once(child, "close");
  afterThisTest(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  await expect
    .poll(async () => {
      if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}: ${said}`);
      return fetch(`${url}/-/ready`).then(
        ({ status }) => status,
        () => undefined,
      );
    })
    .toBe(200);
  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`${url}/api/v1/${path}`);
    const body = (await answer.json()) as { status: string; data: T; error?: string };
    if (body.status !== "success") throw new Error(`${path} gave ${body.error}`);
    return body.data;
  };
  return {
    get,
    query: async (expression) =>
      (await get<{ result: { metric: Record<string, string> }[] }>(`query?query=${encodeURIComponent(expression)}`))
        .result,
    alerts: async () => (await get<{ alerts: Alert[] }>("alerts")).alerts,
  };
}
