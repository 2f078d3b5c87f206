// The command history: requests that changed something, events of Machines and rollouts, as JSON lines.
import { existsSync } from "node:fs";
import { Option, type Command } from "commander";
import { findRunning } from "../local/daemon.ts";
import { reach, streamFrom } from "../local/client.ts";
import { withTokens } from "../local/orgRequests.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { historyFile } from "../history/history.ts";
import { orgsOf } from "./holder.ts";
import { print } from "./print.ts";
import { momentOf } from "./moment.ts";

interface Flags {
  readonly data?: string;
  readonly org?: string;
  readonly app?: string;
  /** Milliseconds since 1970. */
  readonly since?: number;
}

/** Which entries a command wants. */
export type HistoryFlags = Omit<Flags, "data">;

/**
 * Calls back with the entries that options select, as lines of JSON, oldest first for each organization: those of the service if it
 * runs, else those in its file.
 */
export async function eachEntry(folder: string, flags: HistoryFlags, use: (line: string) => void): Promise<void> {
  if (findRunning(folder)) return ofService(folder, flags, use);
  await ofFile(folder, flags, use);
}

async function history(_: Flags, command: Command): Promise<void> {
  const { data, ...flags } = command.optsWithGlobals<Flags>();
  await eachEntry(dataFolder(data), flags, print);
}

/** The entries of a service that runs, which may have some that are in no file yet. */
async function ofService(
  folder: string,
  { org, app, since }: HistoryFlags,
  use: (line: string) => void,
): Promise<void> {
  const query = new URLSearchParams({
    ...(app === undefined ? {} : { app }),
    ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
  });
  const service = reach(folder);
  try {
    const slugs = orgsOf(service.store, { org, app }, folder);
    await withTokens(service, { name: "history", role: "read", lifetimeMs: null }, async ({ tokenOf }) => {
      for (const slug of slugs)
        for await (const line of streamFrom(folder, await tokenOf(slug), `/local/history?${query.toString()}`))
          use(line);
    });
  } finally {
    await service.close();
  }
}

/** The entries in the file of a service that does not run. */
async function ofFile(folder: string, { org, app, since }: HistoryFlags, use: (line: string) => void): Promise<void> {
  const file = historyFile(folder);
  if (!existsSync(file)) throw new Problem(`there is no history at ${file} yet`);
  // Loaded only when it is used.
  const { HistoryStore } = await import("../history/historyStore.ts");
  const { usualBounds } = await import("../history/history.ts");
  const store = new HistoryStore(file, usualBounds);
  try {
    for (let after = 0; ;) {
      const found = store.entries({
        org,
        only: app === undefined ? undefined : { [app]: 0 },
        since,
        after,
        limit: 1000,
      });
      for (const entry of found) use(JSON.stringify(entry));
      const last = found.at(-1);
      if (!last || found.length < 1000) return;
      after = last.seq;
    }
  } finally {
    store.close();
  }
}

/** Adds the command. */
export function addHistory(program: Command): void {
  program
    .command("history")
    .description(
      "print the history as JSON lines: requests that changed something, events of Machines, and rollouts; the service may run",
    )
    .option("--org <slug>", "only of this organization (default: all)")
    .option("--app <name>", "only of this app")
    .addOption(
      new Option("--since <time>", "only later entries: a duration such as 10m, or a time").argParser(momentOf),
    )
    .action(history);
}
