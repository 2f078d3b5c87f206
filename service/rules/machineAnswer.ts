// Answers with Machines (docs/interface.md#machine), built as JSON text because the store has their parts as text.
import { hash } from "node:crypto";
import type { MachineConfig } from "../../api/machineConfig.ts";
import { findMachine, storedConfig } from "../lifecycle/machines.ts";
import { rfc3339 } from "../time/clock.ts";
import type { EventRow, LeaseRow, MachineRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { checksOf } from "../runtime/checks.ts";
import type { CheckResult } from "../runtime/runtime.ts";
import { parseImage, referenceOf, type Image } from "./images.ts";
import { inSpan } from "../../api/tracing.ts";
import { LookupNeeded, type Found } from "../runtime/lookup.ts";
import type { Chunk } from "./rule.ts";

// ASSUMED: `host_status` is `ok` unless the runtime or a planned fault says otherwise, and `lsvd` has no effect.
// ASSUMED: a Machine shows its latest ten events; …/events has all kept ones.
const eventsShown = 10;

/** An existing Machine as JSON text. */
export const machineText = (context: Context, id: string): string =>
  context.machineTexts.get(id, () => newText(context, id)) ?? "null";

function newText(context: Context, id: string): string | undefined {
  const machine = findMachine(context, id);
  if (!machine) return undefined;
  const config = withMetadata(storedConfig(context, machine).text, machine.metadata);
  return `${beforeConfig(machine)}${config}${afterConfig(context, machine, checksText(config, machine))}`;
}

const beforeConfig = (machine: MachineRow): string => `${head(machine)},"config":`;

function afterConfig(context: Context, { id }: MachineRow, checks: string): string {
  const events = latestEvents(context, id, eventsShown).map(eventText).join(",");
  const host = context.runtime.isUnreachable?.(id) === true ? "unreachable" : "ok";
  return `,"events":[${events}],"checks":${checks},"host_status":"${host}"}`;
}

// A longer configuration is sent as the bytes in the store.
const longestConfigText = 2 ** 14;

/** A Machine as JSON text, in chunks when its configuration is long; undefined when there is none. */
export function findMachineChunks(context: Context, id: string): readonly Chunk[] | undefined {
  const text = context.machineTexts.get(id, () => {
    const machine = findMachine(context, id);
    return machine && sizeOfVersion(context, machine) > longestConfigText ? undefined : newText(context, id);
  });
  if (text !== undefined) return [text];
  const machine = findMachine(context, id);
  if (!machine) return undefined;
  const sql = "SELECT CAST(config AS BLOB) AS config FROM machine_versions WHERE machine = ? AND version = ?";
  const config = context.store.get<{ config: Uint8Array }>(sql, id, machine.version)?.config ?? new Uint8Array();
  if (Buffer.from(config.buffer, config.byteOffset, config.length).includes(namesChecks))
    return [machineText(context, id)];
  const end = withMetadata("}", machine.metadata);
  return [beforeConfig(machine), config.subarray(0, -1), `${end}${afterConfig(context, machine, "[]")}`];
}

const sizeOfVersion = ({ store }: Context, { id, version }: MachineRow): number =>
  store.get<{ size: number }>("SELECT size FROM machine_versions WHERE machine = ? AND version = ?", id, version)
    ?.size ?? 0;

/** A Machine without config, checks, events, host_status and nonce (docs/interface.md#machine). */
export const summaryText = (machine: MachineRow): string => `${head(machine)}}`;

function head(machine: MachineRow): string {
  const { id, name, state, region, version, private_ip, cordoned } = machine;
  const fields = { id, name, state, region, version, instance_id: version, private_ip };
  const times = {
    created_at: rfc3339(machine.created_at),
    updated_at: rfc3339(machine.updated_at),
    cordoned: cordoned === 1,
  };
  return `${JSON.stringify(fields).slice(0, -1)},"image_ref":${machine.image_ref},${JSON.stringify(times).slice(1, -1)}`;
}

/** The text of a configuration with metadata in it. */
export const withMetadata = (config: string, metadata: string | null): string =>
  metadata === null ? config : `${config.slice(0, -1)},"metadata":${metadata}}`;

/** Adds members to the text of an object. */
export const withMembers = (text: string, members: object): string => {
  const more = JSON.stringify(members).slice(1, -1);
  return more === "" ? text : `${text.slice(0, -1)},${more}}`;
};

/** The public part of a lease. */
export const leaseMember = (lease: LeaseRow | undefined): object =>
  lease
    ? { lease: { description: lease.description, expires_at: Math.ceil(lease.expires_at / 1000), owner: lease.owner } }
    : {};

type ShownEvent = Pick<EventRow, "id" | "type" | "status" | "source" | "timestamp" | "request">;

/** The latest events, newest first. With a plain `LIMIT ?` SQLite would compile the statement for every call. */
export const latestEvents = (context: Context, id: string, limit: number): ShownEvent[] =>
  context.store.all<ShownEvent>(
    "SELECT id, type, status, source, timestamp, request FROM events WHERE machine = ? ORDER BY id DESC LIMIT ? + 0",
    id,
    limit,
  );

/** An event as JSON text. `request` is null where there are no details (docs/interface.md#events). */
export function eventText({ id, type, status, source, timestamp, request }: ShownEvent): string {
  return `${JSON.stringify({ id, type, status, source, timestamp }).slice(0, -1)},"request":${request ?? "null"}}`;
}

const findings = { warning: "the check has not run yet", passing: "Success", critical: "connection refused" } as const;

const namesChecks = '"checks":';

function checksText(text: string, machine: MachineRow): string {
  if (!text.includes(namesChecks)) return "[]"; // parsing a long configuration is slow
  const config = JSON.parse(text) as MachineConfig;
  const common: CheckResult = { status: machine.checks, output: findings[machine.checks] };
  const results = JSON.parse(machine.check_results ?? "{}") as Readonly<Record<string, CheckResult>>;
  const updated_at = rfc3339(machine.checked_at);
  return JSON.stringify(checksOf(config).map(({ name }) => ({ name, ...(results[name] ?? common), updated_at })));
}

/** The image of a new version: as the runtime has found it, or from the table of images. */
export function imageRef(context: Pick<Context, "store" | "runtime">, image: string, { images }: Found): object {
  const { runtime } = context;
  if (!runtime.findImage) return listedImageRef(context, image);
  const found = images.get(image);
  if (!found)
    throw new LookupNeeded(`the image ${image}`, async (all) => {
      const one = await inSpan("find image", {}, async () => runtime.findImage?.(image));
      if (one) all.images.set(image, one);
    });
  return refOf(parseImage(image), found.digest, found.labels);
}

/**
 * An image as the table of images knows it; no registry is contacted.
 * ASSUMED: an image that is not in the table and whose reference has no digest gets a hash of its reference.
 */
export function listedImageRef({ store }: Pick<Context, "store">, image: string): object {
  const { registry, repository, tag, digest } = parseImage(image);
  const listed = store.get<{ digest: string; labels: string }>(
    "SELECT digest, labels FROM images WHERE reference = ?",
    referenceOf({ registry, repository, tag: tag ?? "", digest: tag === undefined ? digest : undefined }),
  );
  const labels = listed ? (JSON.parse(listed.labels) as Record<string, string>) : {};
  return refOf({ registry, repository, tag }, digest ?? listed?.digest ?? `sha256:${hash("sha256", image)}`, labels);
}

const refOf = (
  { registry, repository, tag }: Omit<Image, "digest">,
  digest: string,
  labels: Readonly<Record<string, string>>,
): object => ({
  registry,
  repository,
  ...(tag === undefined ? {} : { tag }),
  ...(digest === "" ? {} : { digest }),
  ...(Object.keys(labels).length > 0 ? { labels } : {}),
});

const spelled = { off: false, stop: true, suspend: "suspend" } as const;

/**
 * A configuration as in answers: `autostop` is false, true or `"suspend"`
 * (docs/interface.md#machine-configuration), all else is as sent.
 */
export function spelledConfig(config: MachineConfig): MachineConfig {
  if (!config.services) return config;
  const services = config.services.map((service) =>
    typeof service.autostop === "string" ? { ...service, autostop: spelled[service.autostop] } : service,
  );
  return { ...config, services };
}
