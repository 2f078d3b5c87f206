// Which processes count as running: a provider outlives its killed engine, also behind the shell that starts dynamic
// providers.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openJournal } from "../../provider/core/journal.ts";
import { family, kill } from "../support/processes.ts";

let home: string;
beforeEach(() => void (home = mkdtempSync(join(tmpdir(), "engines-"))));
afterEach(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }));

const provider = (): string => `
import { openJournal } from ${JSON.stringify(resolve("provider/core/journal.ts"))};
const intents = openJournal(() => undefined, ${JSON.stringify(home)});
const intent = { op: "op", endpoint: "e", place: "p", name: "n" };
await intents.write({ ...intent, owner: "made" });
await intents.write({ ...intent, op: "op2", owner: "settled" });
intents.settle("settled", "id");
console.log("begun");
process.on("SIGUSR2", () => { intents.settle("made", "id"); console.log("settled late"); });
setInterval(() => undefined, 1000);
`;

test.each([
  ["by itself", (script: string) => [process.execPath, [script]]],
  ["by a shell", (script: string) => ["sh", ["-c", `"$0" "$1"; true`, process.execPath, script]]],
] as const)(
  "a provider started %s counts as running while its engine runs, and its notes are open afterwards",
  async (_, run) => {
    const script = join(home, "provider.mts");
    writeFileSync(script, provider());
    const [command, args] = run(script);
    // The engine: it starts the provider, and waits.
    const starting = `require("node:child_process").spawn(${JSON.stringify(command)}, ${JSON.stringify(args)}, { stdio: "inherit" })`;
    const engine = spawn(process.execPath, ["-e", starting], { stdio: ["ignore", "pipe", "ignore"] });
    const processes = (): number[] => family(engine.pid ?? 0);
    let said = "";
    engine.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    await expect.poll(() => said).toContain("begun");
    const started = processes();
    try {
      expect(openJournal(() => undefined, home).find("made")).toBeUndefined();
      kill([engine.pid ?? 0]);
      const found = () => openJournal(() => undefined, home);
      await expect.poll(() => found().find("made")?.op).toBe("op");
      expect(found().delivered("settled")).toMatchObject([{ id: "id" }]);
      // A result that was never returned is not settled.
      process.kill(started[0] ?? 0, "SIGUSR2");
      await expect.poll(() => said).toContain("settled late");
      expect(found().find("made")?.op).toBe("op");
    } finally {
      kill(started);
    }
  },
);
