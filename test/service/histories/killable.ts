// A real service in a process, which is killed with `kill -9` and started again on the same data.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Fault } from "../../../service/index.ts";
import { caller } from "../client.ts";
import { folder, foreground, released } from "../command.ts";
import { plantedIn, type Change } from "./bugs.ts";
import { regionsFile } from "./regions.ts";
import type { Disturbed } from "./run.ts";

/** Starts a service whose code is changed while it is loaded. */
export async function startKillable(changes: readonly Change[] = []): Promise<Disturbed> {
  const data = folder();
  const regions = join(data, "../regions.json");
  writeFileSync(regions, JSON.stringify(regionsFile));
  const args = ["--delays", "none", "--admin", "127.0.0.1:0", "--regions", regions];
  const begin = () => foreground(data, args, plantedIn(changes));
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
    ...{ atOnce: 3, disturbances: 1, plan },
    up: () => up,
    settled: () => up,
    async call(...request) {
      await up;
      return caller(running.url, running.token)(...request);
    },
    disturb(faults) {
      process.kill(running.pid, "SIGKILL");
      up = restart(faults);
    },
  };
}
