// Starts the floor (bare.ts) in a separate process, like the service.
import { spawn, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../workbench.ts";
import { folder } from "./run.ts";

/** A running floor. */
export interface Bare {
  readonly url: string;
  readonly process: ChildProcess;
}

/** Starts the server that gives this answer to everything. With a `store`, it first writes the answer to POST into that file. */
export async function startBare(answer: string, store?: string): Promise<Bare> {
  const file = join(folder, "answer.json");
  writeFileSync(file, answer);
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
      ...[join(root, "bench/service/bare.ts"), file],
      ...(store === undefined ? [] : [store]),
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const [port] = await new Promise<string[]>((resolve) =>
    createInterface(child.stdout).once("line", (line) => resolve([line])),
  );
  return { url: `http://127.0.0.1:${port}`, process: child };
}
