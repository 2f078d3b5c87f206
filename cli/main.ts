#!/usr/bin/env node
// The executable: what is loaded after the check may need a newer Node.js than the one that it runs on.
import "./requireNode.ts";

async function main(): Promise<void> {
  const { runCommand } = await import("./command.ts");
  process.exitCode = await runCommand(process.argv.slice(2), (stream, text) => void process[stream].write(text));
}

void main();
