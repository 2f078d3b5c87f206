// The rules of Machines (docs/interface.md#machine, docs/interface.md#create-and-update): list, create, show, update and cordon.
// power.ts has the rule of their destruction.
import { sizeOf } from "../../api/machineConfig.ts";
import type { machines as rows } from "../../api/machines.ts";
import { configOf, enter, findMachine, operate, record, schedule } from "../lifecycle/machines.ts";
import { refuse } from "../refusal.ts";
import { type AppRow, type LeaseRow, type MachineExtras, type MachineRow, type VersionRow } from "../store/rows.ts";
import { currentSet } from "../store/secretValues.ts";
import { StoredConfig } from "../store/storedConfig.ts";
import { checksOf } from "../runtime/checks.ts";
import { touch, type Context } from "../context.ts";
import { liveMachineOf, machineOf, openAppOf, appOf } from "./find.ts";
import { exec } from "./exec.ts";
import { grant, leases, liveLease } from "./leases.ts";
import {
  eventText,
  findMachineChunks,
  imageRef,
  latestEvents,
  leaseMember,
  machineText,
  summaryText,
  withMembers,
  withMetadata,
} from "./machineAnswer.ts";
import { hasMetadata, metadata } from "./metadata.ts";
import { pageOf } from "./pages.ts";
import {
  accept,
  attach,
  hasCapacityFor,
  mountedIn,
  noCapacityOnHost,
  placeFor,
  requireCapacity,
  requireSameRegion,
  volumesFor,
  type Accepted,
} from "./placement.ts";
import { regionOf } from "./platform.ts";
import { power } from "./power.ts";
import { requireQuota } from "./quotas.ts";
import type { Found } from "../runtime/lookup.ts";
import { Pieces, Reply, Text, textOfChunks, type Chunk, type Input, type Rules } from "./rule.ts";
import { wait } from "./wait.ts";

/** The columns of a Machine's row that a new version changes. */
function versionColumns(context: Context, { config, metadataText }: Accepted, found: Found) {
  const { image, guest, standbys, size } = config;
  return {
    version: context.ids.ulid(context.clock.now()),
    image_ref: JSON.stringify(imageRef(context, image, found)),
    brief: JSON.stringify({ image, guest }),
    standby: standbys === undefined ? 0 : 1,
    size: size ?? null,
    has_checks: checksOf(config).length > 0 ? 1 : 0,
    cpu_kind: sizeOf(config).kind,
    memory_mb: sizeOf(config).memoryMb,
    // ASSUMED: a new version has no memory limit, even if the balloon device set one for the previous version.
    memory_limit_mb: null,
    metadata: metadataText,
  };
}

// ASSUMED: the service keeps the latest 100 versions of a Machine. It keeps fewer if their configurations together have more than
// 8 Mi characters, because one answer contains all of them.
const maxVersions = 100;
const maxVersionsSize = 8 * 2 ** 20;

function addVersion(
  context: Context,
  machine: string,
  version: string,
  { config, configText, metadataText }: Accepted,
) {
  const size = configText.length + (metadataText?.length ?? 0);
  const row: VersionRow = { machine, version, size, metadata: metadataText, config: configText };
  context.store.insert("machine_versions", row);
  context.configs.set(`${machine} ${version}`, new StoredConfig(configText, config));
}

/** Deletes the oldest versions of a Machine that exceed the limits. The current version is always kept. */
function pruneVersions(context: Context, machine: string): void {
  const sql = "SELECT version, size FROM machine_versions WHERE machine = ? ORDER BY version DESC";
  let totalSize = 0;
  const newestFirst = context.store.all<Pick<VersionRow, "version" | "size">>(sql, machine);
  const newestToDelete = newestFirst.find(({ size }, i) =>
    (totalSize += size) > maxVersionsSize ? i > 0 : i >= maxVersions,
  );
  if (newestToDelete)
    context.store.run(
      "DELETE FROM machine_versions WHERE machine = ? AND version <= ?",
      machine,
      newestToDelete.version,
    );
}

/** The answer of create and update. It contains the nonce if `lease_ttl` requested a lease. */
function answerFor(context: Context, machine: MachineRow, lease: LeaseRow | undefined): Text {
  return new Text(withMembers(machineText(context, machine.id), lease ? { nonce: lease.nonce } : {}));
}

const machineNamed = (context: Context, app: string, name: string): { id: string } | undefined =>
  context.store.get<{ id: string }>(
    "SELECT id FROM machines WHERE app = ? AND name = ? AND destroyed_at IS NULL",
    app,
    name,
  );

/** The requested name, or a generated one. It is unique among the App's Machines that are not destroyed. */
function nameFor(context: Context, app: string, requested: string | undefined): string {
  if (requested === undefined) {
    let generated = context.ids.machineName();
    while (machineNamed(context, app, generated)) generated = context.ids.machineName();
    return generated;
  }
  const other = machineNamed(context, app, requested);
  if (other)
    throw refuse(
      409,
      `already_exists: unique machine name violation, machine ID ${other.id} already exists with name "${requested}"`,
    );
  return requested;
}

/** Length in characters up to which a list is one text. A longer list is sent in pieces of about this length. */
const maxPieceLength = 2 ** 19;

/**
 * A list of Machines as one JSON text, or as pieces if it is long. The service handles other requests between two pieces. They
 * may delete a Machine before its piece is built, and the list then leaves it out.
 */
function listed(ids: Iterable<string>, chunksOf: (id: string) => readonly Chunk[] | undefined): Text | Pieces {
  let isComplete = false;
  function* inPieces(): Generator<readonly Chunk[]> {
    let [piece, text, length, comma]: [Chunk[], string, number, string] = [[], "[", 0, ""];
    for (const id of ids) {
      const chunks = chunksOf(id);
      if (chunks === undefined) continue;
      text += comma;
      comma = ",";
      for (const chunk of chunks) {
        length += chunk.length;
        if (typeof chunk === "string") text += chunk;
        else {
          piece.push(text, chunk);
          text = "";
        }
      }
      if (length < maxPieceLength) continue;
      yield [...piece, text];
      [piece, text, length] = [[], "", 0];
    }
    isComplete = true;
    yield [...piece, `${text}]`];
  }
  const pieces = inPieces();
  const first = pieces.next().value as readonly Chunk[];
  if (isComplete) return new Text(textOfChunks(first));
  return new Pieces(
    (function* () {
      yield first;
      yield* pieces;
    })(),
  );
}

function list(input: Input<typeof rows.list>): Text | Pieces | Reply {
  const { context, query } = input;
  const app = appOf(input);
  const states = query.state === undefined ? null : JSON.stringify([...new Set(query.state.split(","))]);
  const pairs = Object.entries(query.metadata ?? {});
  // The JSON texts of most Machines are cached. So this query reads only the columns that it needs: whole rows would take most of
  // the time.
  const found = context.store.all<Pick<MachineRow, "id" | "created_at" | "metadata">>(
    `SELECT id, created_at${pairs.length > 0 ? ", metadata" : ""} FROM machines
     WHERE app = ?1 AND (?2 OR destroyed_at IS NULL) AND (?3 IS NULL OR region = ?3)
       AND (?4 IS NULL OR state IN (SELECT value FROM json_each(?4))) ORDER BY created_at, id`,
    ...[app.id, query.include_deleted === true ? 1 : 0, query.region ?? null, states],
  );
  const matching = pairs.length === 0 ? found : found.filter((machine) => hasMetadata(machine, pairs));
  const { page, next } = pageOf(matching, query, ({ created_at, id }) => [created_at, id]);
  const ids = page.map(({ id }) => id);
  const body = listed(ids, (id) => {
    const machine = query.summary ? findMachine(context, id) : undefined;
    const chunks = query.summary ? machine && [summaryText(machine)] : findMachineChunks(context, id);
    const lastChunk = chunks?.at(-1);
    if (!chunks || typeof lastChunk !== "string" || !query.include_leases) return chunks;
    return [...chunks.slice(0, -1), withMembers(lastChunk, leaseMember(liveLease(context, id)))];
  });
  return next === undefined ? body : new Reply(body, { headers: { "fly-next-cursor": next, "svc-next-cursor": next } });
}

/**
 * ASSUMED: the answer to a `min_secrets_version` that does not exist is 412. This service has one store, where every version is
 * visible at once, so waiting would not help.
 */
function requireSecrets({ secrets_version }: AppRow, minimum: number | undefined): void {
  if (minimum !== undefined && minimum > secrets_version)
    throw refuse(
      412,
      `failed_precondition: app secrets are at version ${secrets_version}, min_secrets_version is ${minimum}`,
    );
}

function create(input: Input<typeof rows.create>): Text {
  const { context, body } = input;
  const app = openAppOf(input);
  requireSecrets(app, body.min_secrets_version);
  const accepted = accept(context, body.config);
  if (body.region !== undefined) regionOf(context, body.region);
  const volumes = volumesFor(context, app, mountedIn(accepted.config));
  const region = placeFor(context, body.region, volumes);
  const name = nameFor(context, app.id, body.name);
  requireQuota(context, app.org, app, { machines: 1, memory: sizeOf(accepted.config).memoryMb });
  requireCapacity(context, region, accepted, volumes);
  const now = context.clock.now();
  const id = context.ids.machine(now);
  const machine: MachineRow & MachineExtras = {
    id,
    app: app.id,
    org: app.org,
    name,
    region: region.code,
    state: "created",
    private_ip: context.ids.privateIp(),
    ...versionColumns(context, accepted, input.found),
    cordoned: body.skip_service_registration ? 1 : 0,
    launch: body.skip_launch ? 0 : 1,
    restarts: 0,
    retried_from: now,
    restarted: 0,
    secret_set: body.skip_secrets ? null : currentSet(context, app),
    checks: "warning",
    check_results: null,
    checked_at: now,
    created_at: now,
    updated_at: now,
    destroyed_at: null,
  };
  context.store.insert("machines", machine);
  addVersion(context, id, machine.version, accepted);
  if (volumes.length > 0) attach(context, machine, volumes);
  enter(context, machine, "created", { type: "launch", source: "user" });
  schedule(context, machine);
  const lease = body.lease_ttl === undefined ? undefined : grant(context, machine, input.caller.owner, body.lease_ttl);
  return answerFor(context, machine, lease);
}

function update(input: Input<typeof rows.update>): Text {
  const { context, body } = input;
  const app = appOf(input);
  const old = liveMachineOf(input);
  if (body.current_version !== undefined && body.current_version !== old.version)
    throw refuse(409, "aborted: machine version mismatch");
  requireSecrets(app, body.min_secrets_version);
  const accepted = accept(context, body.config);
  const before = configOf(context, old);
  const [oldVolume, newVolume] = [mountedIn(before)[0], mountedIn(accepted.config)[0]];
  // ASSUMED: an update may add or remove the mount of a volume. The answer is 400 if it mounts another volume instead.
  if (oldVolume !== undefined && newVolume !== undefined && oldVolume !== newVolume) {
    throw refuse(
      400,
      `invalid config.mounts[0].volume, got ${JSON.stringify(newVolume)}, the volume of a machine cannot be changed by update`,
    );
  }
  const added = sizeOf(accepted.config).memoryMb - sizeOf(before).memoryMb;
  requireQuota(context, app.org, app, { memory: added });
  if (!hasCapacityFor(context, old, accepted)) throw noCapacityOnHost();
  const volumes = volumesFor(context, app, mountedIn(accepted.config), old);
  requireSameRegion(old.region, volumes);
  // ASSUMED: `skip_service_registration` cordons the Machine. An update without it changes no cordon.
  const cordoned = body.skip_service_registration ? 1 : old.cordoned;
  const changes = {
    ...versionColumns(context, accepted, input.found),
    cordoned,
    launch: body.skip_launch ? 0 : 1,
    secret_set: body.skip_secrets ? null : currentSet(context, app),
    restarts: 0,
  };
  addVersion(context, old.id, changes.version, accepted);
  const machine = operate(context, old, "update", { type: "update", source: "user", changes });
  pruneVersions(context, old.id);
  attach(context, machine, volumes);
  // Otherwise its next time stays, however often it is updated.
  if (accepted.config.schedule !== before.schedule) schedule(context, machine);
  const lease = body.lease_ttl === undefined ? undefined : grant(context, machine, input.caller.owner, body.lease_ttl);
  return answerFor(context, machine, lease);
}

function get(input: Input<typeof rows.get>): Text {
  const { context, query } = input;
  const machine = machineOf(input);
  const lease = query.include_leases ? leaseMember(liveLease(context, machine.id)) : {};
  if (query.version === undefined || query.version === machine.version)
    return new Text(withMembers(machineText(context, machine.id), lease));
  const sql = "SELECT config, metadata FROM machine_versions WHERE machine = ? AND version = ?";
  const version = context.store.get<Pick<VersionRow, "config" | "metadata">>(sql, machine.id, query.version);
  if (!version) throw refuse(404, "not_found: machine version not found");
  // ASSUMED: GET with an old `version` shows the configuration of that version, and the state `replaced`
  // (docs/interface.md#machine-states).
  const current = JSON.parse(machineText(context, machine.id)) as Record<string, unknown>;
  const replaced = {
    ...current,
    state: "replaced",
    version: query.version,
    instance_id: query.version,
    config: JSON.parse(withMetadata(version.config, version.metadata)),
    ...lease,
  };
  return new Text(JSON.stringify(replaced));
}

function cordon(input: Input, cordoned: 0 | 1) {
  const { context } = input;
  const machine = liveMachineOf(input);
  if (machine.cordoned !== cordoned) {
    context.store.update("machines", "id", machine.id, { cordoned, updated_at: context.clock.now() });
    touch(context, machine.id);
    record(context, machine, { type: cordoned === 1 ? "cordon" : "uncordon", source: "user" }, false);
  }
  return { ok: true };
}

/** The rules of all operations on Machines. */
export const machines: Rules<typeof rows> = {
  list,
  create,
  get,
  update,
  cordon: (input) => cordon(input, 1),
  uncordon: (input) => cordon(input, 0),
  ...power,
  ...exec,
  ...leases,
  ...metadata,
  ...wait,

  events(input) {
    const { id } = machineOf(input);
    return new Text(
      `[${latestEvents(input.context, id, input.query.limit ?? 20)
        .map(eventText)
        .join(",")}]`,
    );
  },

  versions(input) {
    const { id } = machineOf(input);
    const sql = "SELECT version, config, metadata FROM machine_versions WHERE machine = ? ORDER BY version DESC";
    const versions = input.context.store.all<VersionRow>(sql, id).map(({ version, config, metadata: metadataText }) => {
      return `{"version":"${version}","user_config":${withMetadata(config, metadataText)}}`;
    });
    return new Text(`[${versions.join(",")}]`);
  },
};
