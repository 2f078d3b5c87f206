// The command ssh: a terminal in a Machine.
import type { Command } from "commander";
import { reach } from "../local/client.ts";
import { findRunning } from "../local/daemon.ts";
import { dataFolder } from "../local/options.ts";
import { withTokens } from "../local/orgRequests.ts";
import { Problem } from "../local/problem.ts";
import type { Store } from "../store/database.ts";
import { holderOf, nearestOr } from "./holder.ts";

interface Flags {
  readonly data?: string;
}

interface Found {
  readonly id: string;
  readonly name: string;
  readonly state: string;
}

/** The id of the Machine that is meant: of its id or name, or else the only one that is started. */
function machineOf(store: Store, app: string, id: string, named: string | undefined): string {
  const all = store.all<Found>(
    "SELECT id, name, state FROM machines WHERE app = ? AND destroyed_at IS NULL ORDER BY name, id",
    id,
  );
  const list = (of: readonly Found[]): string => of.map((one) => `${one.name} (${one.id})`).join(", ");
  if (named !== undefined) {
    const byId = all.find((one) => one.id === named);
    const meant = byId ? [byId] : all.filter(({ name }) => name === named);
    const [first, ...more] = meant;
    const known = all.flatMap((one) => [one.name, one.id]);
    if (!first) throw new Problem(`App ${app} has no Machine ${named}${nearestOr(named, known, "")}`);
    if (more.length > 0)
      throw new Problem(`several Machines of App ${app} have this name; name one by id: ${list(meant)}`);
    return first.id;
  }
  const started = all.filter(({ state }) => state === "started");
  const [first, ...more] = started;
  if (!first) throw new Problem(`App ${app} has no started Machine`);
  if (more.length > 0) throw new Problem(`App ${app} has several started Machines; name one: ${list(started)}`);
  return first.id;
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
  const service = await reach(folder);
  try {
    const { slug, app: id = "" } = holderOf(service.store, { app }, folder);
    const machine = machineOf(service.store, app, id, named);
    const path = `/local/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(machine)}/terminal`;
    const { connectTerminal } = await import("../local/terminal.ts");
    // A killed command cannot revoke its token.
    const tokens = { name: "machines-service ssh", readOnly: false, lifetimeMs: 24 * 3600_000 };
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
