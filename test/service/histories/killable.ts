// A real service in a process, which is killed with `kill -9` and started again on the same data.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Fault } from "../../../service/index.ts";
import { caller, type Call } from "../client.ts";
import { folder, foreground, released } from "../command.ts";
import type { Change } from "./bugs.ts";
import { regionsFile } from "./regions.ts";

/** A service that can be killed. */
export interface Killable {
  /** Sends a request, if need be after the restart. */
  readonly call: Call;
  /** Resolves when the service runs. */
  up(): Promise<void>;
  /** Replaces the planned faults. */
  plan(faults: readonly Fault[]): Promise<void>;
  /** Kills the service, and starts it again, with these faults. */
  kill(faults: readonly Fault[]): void;
}

/** Starts a service whose code is changed while it is loaded. */
export async function startKillable(changes: readonly Change[] = []): Promise<Killable> {
  const data = folder();
  const regions = join(data, "../regions.json");
  writeFileSync(regions, JSON.stringify(regionsFile));
  const args = ["--delays", "none", "--admin", "127.0.0.1:0", "--regions", regions];
  const planted = {
    NODE_OPTIONS: `--import=${pathToFileURL(join(__dirname, "plant.mjs")).href}`,
    MACHINES_CHANGED_CODE: JSON.stringify(changes),
  };
  const begin = () => foreground(data, args, changes.length > 0 ? planted : {});
  let running = await begin();
  let up = Promise.resolve();
  const plan = async (faults: readonly Fault[]): Promise<void> => {
    const headers = { authorization: `Bearer ${readFileSync(join(data, "admin-token"), "utf8").trim()}` };
    const ask = async (method: string, body: string | null, expected: number): Promise<void> => {
      const { status } = await fetch(`${running.admin}/faults`, { method, headers, body });
      if (status !== expected) throw new Error(`${method} /faults ${body} gave ${status}`);
    };
    await ask("DELETE", null, 204);
    for (const fault of faults) await ask("POST", JSON.stringify(fault), 201);
  };
  const restart = async (faults: readonly Fault[]): Promise<void> => {
    await released(data);
    running = await begin();
    await plan(faults);
  };
  return {
    plan,
    up: () => up,
    async call(...request) {
      await up;
      return caller(running.url, running.token)(...request);
    },
    kill(faults) {
      process.kill(running.pid, "SIGKILL");
      up = restart(faults);
    },
  };
}
