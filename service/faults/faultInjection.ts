// The effects of a fault on its request. faults.ts selects the request.
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { Operation } from "../../api/operation.ts";
import { define, isObject } from "../../api/schema.ts";
import { listIn, type Fault, type needsCapacity } from "./faults.ts";
import { rfc3339 } from "../time/clock.ts";
import { findMachine } from "../lifecycle/machines.ts";
import { refuse, type Refusal } from "../refusal.ts";
import { noHost, noCapacityOnHost, noVolumeHost } from "../rules/placement.ts";
import { listedImageRef, withMetadata } from "../rules/machineAnswer.ts";
import type { EventRow, VersionRow } from "../store/rows.ts";
import { refusalOf, seenWithoutHost, volumeIn } from "./unreachableHost.ts";
import { touch, type Context } from "../context.ts";

/** A request into which a fault is injected. */
export interface FaultedRequest {
  readonly context: Context;
  readonly row: Operation;
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: unknown;
  readonly body: unknown;
  readonly reply: FastifyReply;
  /** Called when the connection is closed, for which the server has no hook. */
  readonly onDisconnect: () => void;
}

/** An answer before it is sent. */
export interface Outgoing {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined when there is no body. */
  readonly text: string | undefined;
}

async function delayAnswer({ delayMs, until }: Fault): Promise<void> {
  if (delayMs !== undefined) await sleep(delayMs);
  await until?.();
}

/** Injects a fault before the operation runs: true when the request is over. Throws when the fault is a refusal. */
export async function injectBefore(fault: Fault, faulted: FaultedRequest): Promise<boolean> {
  const { context, row, params, body } = faulted;
  const { status, capacity, stealLease, clockJumpMs, hiddenForMs, unreachableHost } = fault;
  await delayAnswer(fault);
  const machine = String(params["machine_id"]);
  if (capacity) throw capacityRefusals[row.id as (typeof needsCapacity)[number]](body);
  if (hiddenForMs !== undefined && isHidden(context, machine, hiddenForMs))
    throw refuse(404, "not_found: machine not found");
  const refusal = unreachableHost && refusalOf(faulted);
  if (refusal) throw refusal;
  if (stealLease) await context.store.write(() => steal(context, machine, stealLease.ttl));
  if (clockJumpMs !== undefined) context.clock.advance(clockJumpMs);
  if (status === undefined) return false;
  await answerInstead(fault, faulted);
  return true;
}

/** Injects a fault into the answer of a committed operation: true when the request is over, else the answer to send. */
export async function injectAfter(fault: Fault, faulted: FaultedRequest, outgoing: Outgoing): Promise<true | Outgoing> {
  await delayAnswer(fault);
  if (fault.status !== undefined) {
    await answerInstead(fault, faulted);
    return true;
  }
  const changed = change(fault, faulted, outgoing);
  if (fault.truncate === undefined && fault.drip === undefined) return changed;
  await deliver(fault, faulted, changed);
  return true;
}

// --- refusals ---

type NeedsCapacity = (typeof needsCapacity)[number];

// The refusal of each operation when no host has capacity (docs/interface.md#refusals). ASSUMED: a cluster that no host has
// room for is 400.
const capacityRefusals: Readonly<Record<NeedsCapacity, (body: unknown) => Refusal>> = {
  "machines.create": (body) => noHost(volumeIn(body)),
  "machines.update": noCapacityOnHost,
  "machines.start": noCapacityOnHost,
  "volumes.create": noVolumeHost,
  "postgres.create": () => refuse(400, "The cluster could not be created: no capacity"),
};

// --- changes that another client could have made ---

const isHidden = (context: Context, id: string, ms: number): boolean => {
  const machine = findMachine(context, id);
  return machine !== undefined && context.clock.now() - machine.created_at < ms;
};

/** Transfers the lease of a Machine from any owner to another one. */
function steal(context: Context, id: string, ttl: number): void {
  const machine = findMachine(context, id);
  if (!machine || machine.destroyed_at !== null) return;
  context.store.run("DELETE FROM leases WHERE machine = ?", id);
  context.store.insert("leases", {
    machine: id,
    nonce: context.ids.nonce(),
    owner: "thief@tokens.faults",
    description: "taken by a fault",
    version: machine.version,
    expires_at: context.clock.now() + ttl * 1000,
  });
  touch(context, id);
}

// --- changed answers ---

function change(fault: Fault, faulted: FaultedRequest, outgoing: Outgoing): Outgoing {
  const { context, row } = faulted;
  const { stale, list, merge, hiddenForMs, unreachableHost, rewrite } = fault;
  const body: unknown = outgoing.text === undefined ? undefined : JSON.parse(outgoing.text);
  const withBody = (changed: unknown): Outgoing => ({ ...outgoing, text: JSON.stringify(changed) });
  if (rewrite) return withBody(rewrite(body));
  if (merge) return withBody(merged(body, merge));
  if (stale !== undefined)
    return withBody(Array.isArray(body) ? body.map((one) => asOf(context, one, stale)) : asOf(context, body, stale));
  if (hiddenForMs !== undefined) {
    const seen = (one: unknown): boolean => !isObject(one) || !isHidden(context, String(one["id"]), hiddenForMs);
    return withBody(withList(row, body, (all) => all.filter(seen)));
  }
  if (unreachableHost) {
    const seen = (one: unknown): unknown => seenWithoutHost(context, unreachableHost, row, one);
    return withBody(listIn(row) === undefined ? seen(body) : withList(row, body, (all) => all.map(seen)));
  }
  if (!list) return outgoing;
  const { keep, repeat = 0, reverse, next } = list;
  const shown = withList(row, body, (all) => {
    const shortened = all.slice(0, keep);
    return [...(reverse ? shortened.toReversed() : shortened), ...shortened.slice(0, repeat)];
  });
  if (next === undefined) return withBody(shown);
  if (isObject(shown)) return withBody({ ...shown, next_cursor: next });
  return { ...withBody(shown), headers: { ...outgoing.headers, "fly-next-cursor": next, "svc-next-cursor": next } };
}

/** An answer with its list transformed. */
function withList(row: Operation, body: unknown, transform: (all: readonly unknown[]) => unknown[]): unknown {
  const at = listIn(row);
  if (at === "") return Array.isArray(body) ? transform(body) : body;
  const list = isObject(body) && at !== undefined ? body[at] : undefined;
  return isObject(body) && at !== undefined && Array.isArray(list) ? { ...body, [at]: transform(list) } : body;
}

/** A value merged with another; null removes a member (RFC 7396). */
function merged(value: unknown, over: unknown): unknown {
  if (!isObject(over)) return over;
  const out: Record<string, unknown> = isObject(value) ? { ...value } : {};
  for (const [name, inner] of Object.entries(over)) {
    if (inner === null) delete out[name];
    else define(out, name, merged(out[name], inner));
  }
  return out;
}

/** A Machine as it was this many versions earlier, at the end of that version; the first version if there were fewer. */
function asOf(context: Context, machine: unknown, versions: number): unknown {
  if (!isObject(machine)) return machine;
  const id = String(machine["id"]);
  const all = context.store.all<{ version: string }>(
    "SELECT version FROM machine_versions WHERE machine = ? ORDER BY version DESC",
    id,
  );
  const then = all[Math.min(versions, all.length - 1)];
  if (!then || then.version === machine["version"]) return machine;
  const row = context.store.get<Pick<VersionRow, "config" | "metadata">>(
    "SELECT config, metadata FROM machine_versions WHERE machine = ? AND version = ?",
    ...[id, then.version],
  );
  if (!row) return machine;
  const config = JSON.parse(withMetadata(row.config, row.metadata)) as { readonly image: string };
  const last = context.store.get<EventRow>(
    "SELECT * FROM events WHERE machine = ? AND version = ? ORDER BY id DESC LIMIT 1",
    id,
    then.version,
  );
  const { config: now, events } = machine;
  return {
    ...machine,
    version: then.version,
    instance_id: then.version,
    ...(last ? { state: last.status, updated_at: rfc3339(last.timestamp) } : {}),
    image_ref: listedImageRef(context, config.image),
    ...(isObject(now) ? { config: { ...config, ...("metadata" in now ? { metadata: now["metadata"] } : {}) } } : {}),
    ...(Array.isArray(events) && last
      ? { events: events.filter((event) => isObject(event) && String(event["id"]) <= last.id) }
      : {}),
  };
}

// --- other ways to send an answer ---

async function answerInstead(fault: Fault, faulted: FaultedRequest): Promise<void> {
  const { status, headers, body = { error: "injected fault" } } = fault;
  if (status === "reset") {
    faulted.reply.hijack();
    faulted.onDisconnect();
    faulted.reply.raw.socket?.resetAndDestroy();
    return;
  }
  const raw = typeof body === "string";
  await deliver(fault, faulted, {
    status: status ?? 200,
    headers: { "content-type": raw ? "text/plain" : "application/json", ...headers },
    text: raw ? body : JSON.stringify(body),
  });
}

/** Sends an answer: complete, slowly, or truncated. */
async function deliver(
  { truncate, drip }: Fault,
  { reply, onDisconnect }: FaultedRequest,
  { status, headers, text = "" }: Outgoing,
): Promise<void> {
  if (truncate === undefined && drip === undefined) {
    await reply.status(status).headers(headers).send(text);
    return;
  }
  const whole = Buffer.from(text);
  const part = whole.subarray(0, truncate);
  const { bytes, everyMs } = drip ?? { bytes: Math.max(1, part.length), everyMs: 0 };
  reply.headers({ "content-type": "application/json; charset=utf-8", ...headers });
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(status, { ...(reply.getHeaders() as Record<string, string>), "content-length": whole.length });
  raw.flushHeaders();
  for (let sent = 0; sent < part.length && !raw.destroyed; sent += bytes) {
    if (sent > 0) await sleep(everyMs);
    raw.write(part.subarray(sent, sent + bytes));
  }
  if (part.length === whole.length) return void raw.end();
  onDisconnect();
  raw.socket?.destroySoon();
}
