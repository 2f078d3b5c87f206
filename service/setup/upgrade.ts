// Says before an upgrade of the service what it would do, and what would prevent it. Changes nothing.
import { existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { basename } from "node:path";
import { docsUrl } from "../../api/docsUrl.ts";
import { readRepository } from "../backup/places.ts";
import { sizeText } from "../local/backupText.ts";
import { findRunning } from "../local/daemon.ts";
import { ownCommand } from "../ownCommand.ts";
import { compareVersions, releaseBetween } from "../releases.ts";
import { isCopy } from "../replication/changes.ts";
import { damaged, schemaOf, storeFile } from "../store/database.ts";
import { sqliteCode } from "../sqliteCode.ts";
import type { Running } from "../store/lock.ts";
import { reading } from "../store/reading.ts";
import { currentSchema, firstSchema } from "../store/schema.ts";
import { newerStore, writerOf } from "../store/writer.ts";
import { version } from "../version.ts";
import { run } from "./computer.ts";
import { backupFinding } from "./doctor.ts";
import { ok, problem, warning, type Finding } from "./finding.ts";
import { variables } from "./options.ts";
import { newestPublished, type Published, type Unknown } from "./published.ts";
import { unitNames } from "./units.ts";

/** What an upgrade would do. */
export interface UpgradeCheck {
  /** The version that runs, or else the one that wrote the store last; null if there is no store. */
  readonly from: string | null;
  /** The version of this program. */
  readonly installed: string;
  /** The newest version on npm; null if npm did not say it, or was not asked because the two above differ. */
  readonly published: string | null;
  readonly findings: readonly Finding[];
}

/** The service that would be upgraded. */
interface Upgraded {
  readonly data: string;
  /** The settings of a server; undefined if it was not set up by `setup`. */
  readonly settings: ReadonlyMap<string, string> | undefined;
}

/** What is known of a store. */
interface Facts {
  readonly schema: number;
  readonly writer: string | undefined;
  /** Whether it is the copy of a member. */
  readonly isCopy: boolean;
  /** Bytes of its files. */
  readonly size: number;
  /** Bytes of a copy of it. */
  readonly copy: number;
  /** Why this version cannot read it. */
  readonly refusal: string | undefined;
}

/** Examines what an upgrade of the service of a data folder would do. */
export async function examineUpgrade({ data, settings }: Upgraded): Promise<UpgradeCheck> {
  const running = findRunning(data);
  const file = storeFile(data);
  const facts = existsSync(file) ? factsOr(file) : undefined;
  const from = running?.version ?? (facts && "writer" in facts ? facts.writer : undefined);
  const isOther = from !== undefined && from !== version;
  const published = isOther ? undefined : await newestPublished();
  const findings = [
    versionFinding(data, from, published),
    nodeFinding(published),
    ...(facts === undefined ? [] : "about" in facts ? [facts] : await storeFindings(facts, { data, settings, from })),
    ...(running ? await runningFindings(running) : [ok("service", "It is not running, so nothing is interrupted")]),
  ];
  return {
    from: from ?? null,
    installed: version,
    published: published && "version" in published ? published.version : null,
    findings,
  };
}

async function storeFindings(facts: Facts, of: Upgraded & { readonly from: string | undefined }): Promise<Finding[]> {
  const { data, settings, from } = of;
  const every = settings?.get(variables.backupEvery) || "24h";
  return [
    tablesFinding(facts, storeFile(data), from),
    ...(await diskFindings(facts, data)),
    ...memberFinding(facts),
    backupFinding(data, Boolean(settings?.get(variables.backup)) || readRepository(data) !== undefined, every),
  ];
}

/** What is known of a store, or that it cannot be read. */
function factsOr(file: string): Facts | Finding {
  try {
    return factsOf(file);
  } catch (error) {
    const code = sqliteCode(error);
    if (code === undefined) throw error;
    const what =
      code === 11 || code === 26
        ? damaged(file).message.replace(/\.$/, "")
        : `${file} cannot be read (SQLite says ${code})`;
    return problem("store", what, "Check that it is yours, and that its disk has space");
  }
}

function factsOf(file: string): Facts {
  return reading(file, (db) => {
    const numberOf = (pragma: string): number => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
    const schema = schemaOf(db);
    const sizeOf = (one: string): number => statSync(one, { throwIfNoEntry: false })?.size ?? 0;
    return {
      ...{ schema, writer: writerOf(db), isCopy: isCopy(db) },
      size: sizeOf(file) + sizeOf(`${file}-wal`),
      copy: (numberOf("page_count") - numberOf("freelist_count")) * numberOf("page_size"),
      refusal: schema > currentSchema() ? newerStore(db, file, schema) : undefined,
    };
  });
}

/** What the upgrade leads from and to. `published` is undefined if this program is another version than what runs. */
function versionFinding(data: string, from: string | undefined, published: Published | Unknown | undefined): Finding {
  const about = "version";
  if (from !== undefined && published === undefined) {
    const between = releaseBetween(from);
    if (between !== undefined)
      return problem(
        about,
        `${version} upgrades from the two releases before it, and ${from} is older`,
        `Upgrade to ${between} first: npm install --global machines-service@${between}`,
      );
    return compareVersions(from, version) < 0
      ? ok(about, `${from} would be replaced by ${version}, which is this program`)
      : ok(about, `${from} would be replaced by the older ${version}, which is this program`);
  }
  if (published === undefined || "reason" in published)
    return warning(
      about,
      `${published?.reason ?? "Nothing is known of newer versions"}; this is ${version}`,
      "With the file of a newer version: npx --package FILE machines-service upgrade --check",
    );
  if (compareVersions(published.version, version) <= 0) return ok(about, `${version} is the newest version`);
  const command = ownCommand("upgrade --check", data).replace(
    /^(npx )?machines-service/,
    `npx machines-service@${published.version}`,
  );
  return warning(
    about,
    `${published.version} is published, and this is ${version}`,
    `Check with it, before it is installed: ${command}`,
  );
}

/** Whether the version to come runs on this Node.js. That this version does, its start has shown. */
function nodeFinding(published: Published | Unknown | undefined): Finding {
  const about = "Node.js";
  const own = process.versions.node;
  const wanted = published && "version" in published ? published : undefined;
  const least = /^>=\s*(\d+\.\d+\.\d+)$/.exec(wanted?.node ?? "")?.[1];
  if (wanted && least !== undefined && compareVersions(own, least) < 0)
    return problem(
      about,
      `machines-service ${wanted.version} needs Node.js ${least} or later, and this is ${own}`,
      "Install a newer Node.js first",
    );
  return ok(about, `${own} is new enough`);
}

function tablesFinding({ schema, isCopy: isMember, refusal }: Facts, file: string, from: string | undefined): Finding {
  const about = "tables";
  if (refusal !== undefined) return problem(about, refusal.replace(/\.$/, ""), docsUrl("upgrades.md#downgrade"));
  if (schema < firstSchema)
    return problem(
      about,
      `${file} is from before the first release (schema ${schema})`,
      `Open it once with a version that knows schema ${firstSchema}`,
    );
  const steps = currentSchema() - schema;
  if (steps === 0)
    return ok(
      about,
      `They stay as they are (schema ${schema}), so a return to ${from ?? "this version"} needs no copy`,
    );
  const what = `${steps} ${steps === 1 ? "change" : "changes"}, from schema ${schema} to ${currentSchema()}`;
  if (isMember) return ok(about, `${what}, once the leader has ${version}`);
  return ok(
    about,
    `${what}; before, the store is copied to ${basename(file)}.backup-${schema}, with which a return is possible`,
  );
}

/** Whether there is room for the copy, and for the log of the changes, which can have every page once. */
async function diskFindings({ schema, isCopy: isMember, size, copy }: Facts, data: string): Promise<Finding[]> {
  const about = "disk";
  if (schema >= currentSchema() || schema < firstSchema || isMember)
    return [ok(about, `The store has ${sizeText(size)}, and no copy of it is made`)];
  const { bavail, bsize } = await statfs(data);
  const [free, needed] = [bavail * bsize, 2 * copy];
  const text = `The store has ${sizeText(size)}; its copy and the changes take up to ${sizeText(needed)}, and ${sizeText(free)} are free`;
  return [free < needed ? problem(about, text, `Free some space for ${data}`) : ok(about, text)];
}

function memberFinding({ isCopy: isMember }: Facts): Finding[] {
  if (!isMember) return [];
  return [
    warning(
      "members",
      "This folder is of one member of a service that several members share",
      `Replace the members one after the other, the leader last; machines-service members shows their versions (${docsUrl("upgrades.md#several-members")})`,
    ),
  ];
}

/** What happens to what runs. */
async function runningFindings({ runtime, postgres, unit, drainMs }: Running): Promise<Finding[]> {
  const findings = [
    ok(
      "Machines",
      runtime === "simulated"
        ? "They are simulated, and keep their states"
        : "They continue to run, and none is restarted",
    ),
  ];
  if (postgres === "embedded")
    findings.push(
      runtime === "docker"
        ? ok("Postgres", "Servers, poolers and their connections stay as they are")
        : warning(
            "Postgres",
            "Servers stop with the service and start again with it, so their clients have to connect again",
            "With --runtime docker, they would continue to run",
          ),
    );
  const isHeld = await holdsSockets(unit);
  findings.push(
    isHeld
      ? ok(
          "requests",
          "systemd holds the ports: new connections wait for the new process, and what was sent is answered",
        )
      : warning(
          "requests",
          "Connections are refused for a moment, between the end of the old process and the start of the new one",
          `Let a parent hold the ports: ${docsUrl("service.md#restart-without-a-lost-request")}`,
        ),
  );
  if (runtime === "simulated") return findings;
  const time = drainMs === undefined ? "the time that --drain gives" : `${drainMs / 1000} s (--drain)`;
  const ended = `WebSockets, streams and raw connections through the proxy end after ${time}, terminals at once`;
  return [...findings, ok("connections", `${ended}; their clients connect again`)];
}

/** Whether systemd keeps the ports open while the service restarts. */
async function holdsSockets(unit: string | undefined): Promise<boolean> {
  if (unit === undefined) return false;
  const [api = ""] = unitNames;
  return (await run("systemctl", ["is-active", "--quiet", api])).code === 0;
}
