// The command ssh: a terminal in a Machine.
import type { Command } from "commander";
import { reach } from "../local/client.ts";
import { findRunning } from "../local/daemon.ts";
import { dataFolder } from "../local/options.ts";
import { withTokens } from "../local/orgRequests.ts";
import { Problem } from "../local/problem.ts";
import { holderOf } from "./holder.ts";
import { machineNamed, startedMachine } from "./machine.ts";

interface Flags {
  readonly data?: string;
}

/** What follows `--`, which commander does not tell from the rest. */
function wordsIn(argv: readonly string[]): readonly string[] {
  const at = argv.indexOf("--");
  return at < 0 ? [] : argv.slice(at + 1);
}

async function ssh(_app: string, _machine: string | undefined, _words: string[], _: Flags, command: Command) {
  const folder = dataFolder(command.optsWithGlobals<Flags>().data);
  const words = wordsIn(process.argv);
  const [app = "", named, ...rest] = command.args.slice(0, command.args.length - words.length);
  if (app === "") throw new Problem("name an App before --");
  if (rest.length > 0)
    throw new Problem(`a command follows \`--\`: machines-service ssh ${app} ${named} -- ${rest.join(" ")}`);
  const running = findRunning(folder);
  if (!running) throw new Problem(`machines-service is not running (data ${folder})`);
  const service = reach(folder);
  try {
    const { store } = service;
    const { slug, app: id = "" } = holderOf(store, { app }, folder);
    const machine = named === undefined ? startedMachine(store, { app, id }) : machineNamed(store, { app, id }, named);
    const path = `/local/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(machine)}/terminal`;
    const { connectTerminal } = await import("../local/terminal.ts");
    // A killed command cannot revoke its token.
    const tokens = { name: "machines-service ssh", role: "operate", lifetimeMs: 24 * 3600_000 } as const;
    await withTokens(service, tokens, async ({ tokenOf }) => {
      process.exitCode = await connectTerminal(running, await tokenOf(slug), path, words);
    });
  } finally {
    await service.close();
  }
}

/** Adds the command. */
export function addSsh(program: Command): void {
  program
    .command("ssh")
    .description(
      "open a terminal in a Machine (with containers or Pods), or run a command in one; ~. on a new line leaves it",
    )
    .usage("[options] <app> [machine] [-- command...]")
    .argument("<app>")
    .argument("[machine]", "its id or name (default: the only one that is started)")
    .argument("[command...]", "after --; a shell if there is none")
    .action(ssh);
}
