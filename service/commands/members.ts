// The commands members and key, for a service that runs as several processes.
import { Option, type Command } from "commander";
import { randomBytes } from "node:crypto";
import { nearestOr } from "./holder.ts";
import { Problem } from "../local/problem.ts";
import type { Losses, Promotion } from "../local/promote.ts";
import { endedMs } from "../replication/log.ts";
import { keyBytes, keyText } from "../store/keyFile.ts";
import { ago } from "../local/ago.ts";
import { print, printJson, printTable } from "./print.ts";
import { keyFileOption, requireStoreUrl, storeOption, type StoreFlags } from "./storeOptions.ts";

async function list(_: StoreFlags, command: Command): Promise<void> {
  const { withMembers } = await import("../local/sharedStore.ts");
  const [members, end] = await withMembers(requireStoreUrl(command), (log) =>
    Promise.all([log.members(), log.extent()]),
  );
  const rows = members.map(({ agoMs, place: _, ...member }) => ({
    ...member,
    behind: Math.max(0, end.seq - member.seq),
    seenSecondsAgo: Math.round(agoMs / 1000),
  }));
  if (command.optsWithGlobals<{ readonly json?: true }>().json) return printJson(rows);
  printTable(
    ["ADDRESS", "ROLE", "ENTRY", "BEHIND", "VERSION", "SEEN"],
    rows.map(({ address, role, seq, behind, version, seenSecondsAgo }) => [
      ...[address, role, String(seq), String(behind), version, ago(-seenSecondsAgo * 1000, 0)],
    ]),
  );
}

async function remove(address: string, _: StoreFlags, command: Command): Promise<void> {
  const { withMembers } = await import("../local/sharedStore.ts");
  await withMembers(requireStoreUrl(command), async (log) => {
    const members = await log.members();
    const known = members.find((member) => member.address === address);
    if (!known)
      throw noMember(
        address,
        members.map((one) => one.address),
      );
    // It would be in the list again within a second.
    if (known.agoMs < endedMs) throw new Problem(`the member ${address} is running; stop it first`);
    await log.removeMember(address);
  });
  print(`member ${address} is removed`);
}

const noMember = (address: string, known: readonly string[]): Problem =>
  new Problem(`there is no member ${address}${nearestOr(address, known, "")}`);

interface PromoteFlags extends StoreFlags {
  readonly yes?: true;
  readonly acceptDataLoss?: true;
}

async function promote(address: string, _: StoreFlags, command: Command): Promise<void> {
  const { keyFile, yes, acceptDataLoss } = command.optsWithGlobals<PromoteFlags>();
  const url = requireStoreUrl(command);
  const { readStoreKey } = await import("../local/sharedStore.ts");
  const { withPromotion } = await import("../local/promote.ts");
  const store = { url, key: readStoreKey(keyFile) };
  const use = async ({ losses, promote: carryOut }: Promotion): Promise<void> => {
    const data = lostData(losses);
    const needed = data.length > 0 ? "--accept-data-loss" : "--yes";
    const isConfirmed = data.length > 0 ? acceptDataLoss : (yes ?? acceptDataLoss);
    const effects = [...(losses.machines > 0 ? [`Machines that start again there: ${losses.machines}`] : []), ...data];
    const all = effects.length > 0 ? effects.join("; ") : "nothing runs now";
    if (!isConfirmed)
      throw new Problem(
        `${address} would run the Machines and servers from now on: ${all}. Add ${needed} if that is what you want`,
      );
    await carryOut();
    print(`${address} may lead now: ${all}`);
  };
  await withPromotion(store, address, use, (known) => noMember(address, known));
}

/** What a promotion loses, as clauses. */
function lostData({ volumes, snapshots, clusters }: Losses): string[] {
  return [
    ...(volumes > 0 ? [`volumes that begin without their contents: ${volumes}`] : []),
    ...(snapshots > 0 ? [`volume snapshots that are gone: ${snapshots}`] : []),
    ...(clusters.length > 0
      ? [`Postgres clusters that begin without their rows and backups: ${clusters.join(", ")}`]
      : []),
  ];
}

async function rotate(_: StoreFlags, command: Command): Promise<void> {
  const { keyFile, newKeyFile } = command.optsWithGlobals<StoreFlags & { readonly newKeyFile: string }>();
  const url = requireStoreUrl(command);
  const { readStoreKey } = await import("../local/sharedStore.ts");
  const { rotateKey } = await import("../local/storeTransfer.ts");
  await rotateKey({ url, key: readStoreKey(keyFile) }, readStoreKey(newKeyFile, "--new-key-file"));
  print(`the store is sealed with the key of ${newKeyFile}; start the members with it, and destroy the old key`);
}

/** Adds these commands. */
export function addMembers(program: Command): void {
  const members = program
    .command("members")
    .description("list the members of a service that runs as several processes: which one leads, and how far each is")
    .addOption(storeOption())
    .option("--json", "print a JSON array")
    .action(list);
  members
    .command("remove <address>")
    .description("remove a member that does not run any more from the list")
    .action(remove);
  members
    .command("promote <address>")
    .description(
      "let a follower lead, and create Machines and Postgres clusters again there, because the container engine or the data folder that had them is lost",
    )
    .addOption(keyFileOption())
    .option("--yes", "confirm it, if no data are lost")
    .option("--accept-data-loss", "confirm it, and that volumes and Postgres clusters begin without their contents")
    .action(promote);
  const key = program.command("key").description("manage the key of a service that runs as several processes");
  key
    .command("new")
    .description("print a new key, for --key-file")
    .action(() => print(keyText(randomBytes(keyBytes)).trim()));
  key
    .command("rotate")
    .description("seal everything in the store with another key; the members are stopped")
    .addOption(storeOption())
    .addOption(keyFileOption())
    .addOption(new Option("--new-key-file <file>", "file with the new key").makeOptionMandatory())
    .action(rotate);
}
