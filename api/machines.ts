// Machines (docs/interface.md#machine, docs/interface.md#machine-states, docs/interface.md#leases).
import { z } from "zod";
import { machineConfig } from "./machineConfig.ts";
import { appNameParam, machineIdParam, machineName, metadataKeyParam, regionCode, ulid } from "./names.ts";
import { operations } from "./operation.ts";
import { duration, optional, required } from "./schema.ts";
import { signalName, stopSignal } from "./signals.ts";

// The details of an event, as far as they are known. Programs get them as a map, with the names of the wire.
const eventDetails = z.object({
  exit_event: optional(
    z.object({
      exit_code: optional(z.int(), "Exit code of the main process."),
      guest_exit_code: optional(z.int(), "The same, as seen inside the Machine."),
      guest_signal: optional(z.int(), "Number of the signal that ended the process; -1 without one."),
      signal: optional(z.int(), "Number of the signal that ended the Machine; -1 without one."),
      oom_killed: optional(z.boolean(), "Whether it was killed because the Machine was out of memory."),
      requested_stop: optional(z.boolean(), "Whether someone requested the stop."),
      restarting: optional(z.boolean(), "Whether the Machine starts again without another request."),
      exited_at: optional(z.string(), "RFC 3339 time of the exit."),
      error: optional(z.string(), "Why the process could not be started; empty if it was."),
      last_lines: optional(
        z.array(z.string()),
        "The last lines that the process wrote since its start, at most five, oldest first, with values of the App's secrets masked; absent if there are none or they are not known.",
      ),
    }),
    "How the main process exited.",
  ),
  restart_count: optional(z.int(), "Restarts by the restart policy since the Machine was last started on request."),
});

/** An event of a Machine (docs/interface.md#events). */
export const machineEvent = z.object({
  id: optional(z.string(), "Identifier of 26 characters."),
  type: optional(
    z.string(),
    "`launch`, `start`, `stop`, `exit`, `restart`, `update`, `suspend`, `cordon`, `uncordon`, `destroy`; others may come.",
  ),
  status: optional(z.string(), "State of the Machine after the event."),
  source: optional(z.string(), "`user` (requested through the API) or `flyd` (the host)."),
  timestamp: optional(z.int(), "Milliseconds since 1970."),
  request: optional(
    z.record(z.string(), z.unknown()).nullable(),
    "Details; for an exit, `restart_count`, and `exit_event` with `exit_code`, `oom_killed`, `requested_stop`, `restarting`, `error`, `last_lines` (the last lines that the program wrote) and more.",
    { members: eventDetails },
  ),
});

/** Result of one check. Service checks are named like `servicecheck-00-tcp-8080`. */
export const checkStatus = z.object({
  name: optional(z.string(), "Name of the check."),
  status: optional(z.string(), "`passing`, `warning` or `critical`."),
  output: optional(z.string(), "What the check found."),
  updated_at: optional(z.string(), "RFC 3339 time of the last result."),
});

/** A lease as shown to its holder (docs/interface.md#leases). */
export const lease = z.object({
  nonce: optional(z.string(), "Nonce that the holder sends with guarded requests.", { secret: true }),
  expires_at: optional(z.int(), "Seconds since 1970."),
  owner: optional(z.string(), "Who holds it."),
  description: optional(z.string(), "Why it is held."),
  version: optional(z.string(), "Version of the Machine when it was granted."),
});

/** A Machine as the service returns it (docs/interface.md#machine). */
export const machine = z.object({
  id: required(z.string(), "Identifier of 14 hexadecimal characters; stable for life."),
  name: optional(z.string(), "Name, unique among the App's live Machines."),
  state: required(z.string(), "State."),
  region: optional(z.string(), "Region the Machine runs in."),
  version: optional(z.string(), "Identifier of the configuration's version, 26 characters."),
  instance_id: optional(z.string(), "The same as `version`.", { deprecationMessage: "Use `version`." }),
  private_ip: optional(z.string(), "IPv6 address on the private network."),
  config: optional(machineConfig, "The configuration; absent while the host is not reachable."),
  incomplete_config: optional(
    machineConfig.partial(),
    "Part of the configuration while `host_status` is not `ok`. It must not be used to create a Machine.",
  ),
  image_ref: optional(
    z.object({
      registry: optional(z.string(), "Registry."),
      repository: optional(z.string(), "Repository."),
      tag: optional(z.string(), "Tag."),
      digest: optional(z.string(), "Digest, with `sha256:` before it."),
      labels: optional(z.record(z.string(), z.string()), "Labels of the image."),
    }),
    "The image that runs.",
  ),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  updated_at: optional(z.string(), "RFC 3339 time of the last change."),
  events: optional(z.array(machineEvent), "Latest events, newest first."),
  checks: optional(z.array(checkStatus), "Results of the checks."),
  host_status: optional(z.string(), "`ok`, `unknown` or `unreachable`."),
  nonce: optional(z.string(), "Nonce of the lease taken by `lease_ttl`.", { secret: true }),
  lease: optional(
    z.object({
      description: optional(z.string(), "Why it is held."),
      expires_at: optional(z.int(), "Seconds since 1970."),
      owner: optional(z.string(), "Who holds it."),
    }),
    "The lease, if `include_leases` is set; never its nonce.",
  ),
  cordoned: optional(z.boolean(), "Whether the proxy leaves the Machine out."),
  host_features: optional(z.array(z.string()), "Features of the host."),
  containers: optional(
    z.array(
      z.object({ name: optional(z.string(), "Name of the container."), state: optional(z.string(), "Its state.") }),
    ),
    "State of every container.",
  ),
});

const launchFields = {
  config: required(machineConfig, "The whole configuration."),
  skip_launch: optional(z.boolean(), "Do not boot the Machine.", { wireDefault: false }),
  skip_service_registration: optional(z.boolean(), "Keeps the proxy away from the Machine, like cordon.", {
    wireDefault: false,
  }),
  skip_secrets: optional(z.boolean(), "Does not give the App's secrets to the Machine."),
  min_secrets_version: optional(z.int(), "Waits for App secrets of at least this version."),
  lease_ttl: optional(z.int().min(1).max(3600), "Seconds of a lease to take with the change, 1 to 3600."),
  lsvd: optional(z.boolean(), "Log-structured disks; an older option of the interface.", { wireDefault: false }),
};

/** Body of a request that creates a Machine. */
export const createMachine = z.object({
  ...launchFields,
  name: optional(machineName, "Name; generated when left out. It cannot be changed later."),
  region: optional(regionCode, "Region; near the caller when left out. It cannot be changed later."),
});

/** Body of a request that updates a Machine. It replaces the whole configuration. */
export const updateMachine = z.object({
  ...launchFields,
  name: optional(z.string(), "Ignored: a name cannot be changed."),
  region: optional(z.string(), "Ignored: a region cannot be changed."),
  current_version: optional(
    z.string(),
    "Version for which the change was made. If the present one differs, the answer is 409 and nothing changes.",
  ),
});

/** States that a wait accepts (docs/interface.md#waits). */
export const waitState = z.enum(["started", "stopped", "suspended", "destroyed", "failed", "settled"]);

/** States that filter a list (docs/interface.md#machine). */
export const stateFilter = z
  .string()
  .regex(/^(created|started|stopped|suspended)(,(created|started|stopped|suspended))*$/, {
    error: "must be a comma-separated list of created, started, stopped and suspended",
  });

const memory = z.object({
  limit_mb: required(z.int(), "Memory limit in MB."),
  available_mb: required(z.int(), "Memory in MB by which the limit could be raised."),
});

const one = z.object({ app_name: appNameParam, machine_id: machineIdParam });
const ok = z.object({ ok: optional(z.boolean(), "True.") }).optional();
const missing = "no such App or Machine";
const held = "another client holds the lease";
const leaseEnvelope = z.object({
  status: optional(z.string(), "`success`."),
  data: optional(lease, "The lease."),
  ...lease.shape,
});
const at = "/v1/apps/{app_name}/machines/{machine_id}";
const metadataUpdate = z.object({
  metadata: optional(
    z.record(z.string(), z.string().nullable()),
    "Values by key; null and the empty string remove a key. Keys that are not named stay.",
  ),
  machine_version: optional(
    z.string(),
    "Version for which the change was made. If the present one differs, the answer is 412.",
  ),
  updated_at: optional(z.string(), "RFC 3339 time; its meaning is not documented."),
});
const patchMetadata = {
  path: `${at}/metadata`,
  source: "docs/interface.md#metadata",
  summary: "Sets and removes metadata keys of a Machine; no new version.",
  params: one,
  body: metadataUpdate,
  status: 204,
  failures: { 400: "bad field", 404: missing, 412: "`machine_version` is stale" },
  repeat: "repeatable",
} as const;

export const machines = operations("machines", {
  list: {
    method: "GET",
    path: "/v1/apps/{app_name}/machines",
    source: "docs/interface.md#machine, docs/interface.md#paging",
    summary: "Lists the Machines of an App.",
    params: z.object({ app_name: appNameParam }),
    query: z.object({
      include_deleted: optional(z.boolean(), "Whether destroyed Machines are listed too."),
      include_leases: optional(z.boolean(), "Show the leases."),
      region: optional(z.string(), "Only Machines of this region."),
      state: optional(stateFilter, "Only Machines in these states, comma-separated."),
      summary: optional(z.boolean(), "Leaves out config, checks, events, host_status, nonce and similar fields."),
      metadata: optional(
        z.record(z.string(), z.string()),
        "Only Machines with these metadata values, each as `metadata.{key}=value`.",
      ),
      limit: optional(z.int().min(1).max(1000), "Advice on how many to answer, 1 to 1000; all when left out."),
      cursor: optional(z.string(), "Header `fly-next-cursor` of the previous answer."),
    }),
    status: 200,
    answer: z.array(machine),
    failures: { 400: "bad filter", 404: "no such App" },
    repeat: "read",
  },
  create: {
    method: "POST",
    path: "/v1/apps/{app_name}/machines",
    source: "docs/interface.md#create-and-update, docs/interface.md#machine-configuration",
    summary: "Creates a Machine and boots it.",
    params: z.object({ app_name: appNameParam }),
    body: createMachine,
    status: 200,
    answer: machine,
    failures: {
      400: "bad field",
      404: "no such App or volume",
      409: "the name is taken by a live Machine",
      412: "the volume is in use, or its host is full",
      422: "no room in the region",
    },
    repeat: "once",
  },
  get: {
    method: "GET",
    path: at,
    source: "docs/interface.md#machine",
    summary: "Shows a Machine.",
    params: one,
    query: z.object({
      include_leases: optional(z.boolean(), "Show the lease."),
      version: optional(z.string(), "Shows the configuration of this version."),
    }),
    status: 200,
    answer: machine,
    failures: { 404: missing },
    repeat: "read",
  },
  update: {
    method: "POST",
    path: at,
    source: "docs/interface.md#create-and-update, docs/interface.md#machine-configuration",
    summary: "Replaces the configuration of a Machine, which creates a new version.",
    params: one,
    lease: "guarded",
    body: updateMachine,
    status: 200,
    answer: machine,
    failures: {
      400: "bad field",
      404: "no such App, Machine or volume",
      409: `${held}, \`current_version\` is stale, or the host has no room`,
      412: "its state does not allow an update, or the volume is in use",
    },
    repeat: "once",
  },
  destroy: {
    method: "DELETE",
    path: at,
    source: "docs/interface.md#machine-states",
    summary: "Destroys a Machine; finished asynchronously.",
    params: one,
    query: z.object({
      force: optional(z.boolean(), "Kills the Machine if it runs."),
      kill: optional(z.boolean(), "Another spelling of `force`."),
    }),
    lease: "guarded",
    status: 200,
    answer: ok,
    failures: { 404: missing, 409: held, 412: "it runs and `force` was not given" },
    repeat: "repeatable",
  },
  cordon: {
    method: "POST",
    path: `${at}/cordon`,
    source: "docs/interface.md#starting-and-stopping",
    summary: "Excludes a Machine's services from the proxy.",
    params: one,
    lease: "guarded",
    status: 200,
    answer: ok,
    failures: { 404: missing, 409: held },
    repeat: "repeatable",
  },
  uncordon: {
    method: "POST",
    path: `${at}/uncordon`,
    source: "docs/interface.md#starting-and-stopping",
    summary: "Returns a Machine's services to the proxy.",
    params: one,
    lease: "guarded",
    status: 200,
    answer: ok,
    failures: { 404: missing, 409: held },
    repeat: "repeatable",
  },
  events: {
    method: "GET",
    path: `${at}/events`,
    source: "docs/interface.md#events",
    summary: "Lists the latest events of a Machine, newest first.",
    params: one,
    query: z.object({ limit: optional(z.int().min(1).max(50), "Events in the answer, 1 to 50.", { wireDefault: 20 }) }),
    status: 200,
    answer: z.array(machineEvent),
    failures: { 400: "limit out of range", 404: missing },
    repeat: "read",
  },
  getLease: {
    method: "GET",
    path: `${at}/lease`,
    source: "docs/interface.md#leases",
    summary: "Shows the lease of a Machine.",
    params: one,
    status: 200,
    answer: leaseEnvelope,
    failures: { 404: "no such App or Machine, or no lease" },
    repeat: "read",
  },
  acquireLease: {
    method: "POST",
    path: `${at}/lease`,
    source: "docs/interface.md#leases",
    summary: "Takes the lease of a Machine, or refreshes it when the nonce is sent.",
    params: one,
    query: z.object({ ttl: optional(z.int(), "Seconds; another place for the body's `ttl`.") }),
    lease: "own",
    body: z.object({
      ttl: optional(z.int(), "Seconds the lease lasts, 1 to 3600.", { wireDefault: 30 }),
      description: optional(z.string(), "Why it is held; shown to others."),
    }),
    bodyOptional: true,
    status: 201,
    answer: leaseEnvelope,
    failures: { 400: "ttl out of range", 404: missing, 409: held },
    repeat: "once",
  },
  releaseLease: {
    method: "DELETE",
    path: `${at}/lease`,
    source: "docs/interface.md#leases",
    summary: "Releases a lease.",
    params: one,
    lease: "own",
    status: 200,
    answer: z
      .object({
        status: optional(z.string(), "`success`."),
        data: optional(z.object({ ok: optional(z.boolean(), "True.") }), "Result."),
      })
      .optional(),
    failures: { 400: "no nonce", 404: "no such App, Machine or lease", 409: "another nonce" },
    repeat: "repeatable",
  },
  getMetadata: {
    method: "GET",
    path: `${at}/metadata`,
    source: "docs/interface.md#metadata",
    summary: "Shows the metadata of a Machine.",
    params: one,
    status: 200,
    answer: z.record(z.string(), z.string()),
    failures: { 404: missing },
    repeat: "read",
  },
  patchMetadata: { method: "PATCH", ...patchMetadata },
  putMetadata: { method: "PUT", ...patchMetadata },
  getMetadataKey: {
    method: "GET",
    path: `${at}/metadata/{key}`,
    source: "docs/interface.md#metadata",
    summary: "Shows one metadata value.",
    params: one.extend({ key: metadataKeyParam }),
    status: 200,
    answer: z.object({ value: required(z.string(), "The value.") }),
    failures: { 404: "no such App, Machine or key" },
    repeat: "read",
  },
  setMetadataKey: {
    method: "POST",
    path: `${at}/metadata/{key}`,
    source: "docs/interface.md#metadata",
    summary: "Sets one metadata value; no new version.",
    params: one.extend({ key: metadataKeyParam }),
    body: z.object({
      value: required(z.string(), "The value."),
      updated_at: optional(z.string(), "RFC 3339 time; its meaning is not documented."),
    }),
    status: 204,
    failures: { 400: "bad field", 404: missing },
    repeat: "repeatable",
  },
  deleteMetadataKey: {
    method: "DELETE",
    path: `${at}/metadata/{key}`,
    source: "docs/interface.md#metadata",
    summary: "Removes one metadata key; no new version.",
    params: one.extend({ key: metadataKeyParam }),
    status: 204,
    failures: { 404: missing },
    repeat: "repeatable",
  },
  restart: {
    method: "POST",
    path: `${at}/restart`,
    source: "docs/interface.md#starting-and-stopping",
    summary: "Stops a Machine and starts it again.",
    params: one,
    query: z.object({
      timeout: optional(z.string(), "Time until it is killed: a duration or a number of seconds."),
      signal: optional(stopSignal, "Signal that asks it to stop."),
      force_stop: optional(z.boolean(), "Kill it at once."),
    }),
    lease: "guarded",
    status: 200,
    answer: ok,
    failures: { 400: "bad timeout or signal", 404: missing, 409: held, 412: "its state does not allow a restart" },
    repeat: "once",
  },
  start: {
    method: "POST",
    path: `${at}/start`,
    source: "docs/interface.md#starting-and-stopping",
    summary: "Starts a stopped or suspended Machine.",
    params: one,
    lease: "guarded",
    status: 200,
    answer: z
      .object({
        previous_state: optional(z.string(), "State before."),
        migrated: optional(z.boolean(), "Whether it moved to another host."),
        new_host: optional(z.string(), "That host."),
      })
      .optional(),
    failures: { 404: missing, 409: `${held}, or it starts already`, 412: "its state does not allow a start" },
    repeat: "once",
  },
  stop: {
    method: "POST",
    path: `${at}/stop`,
    source: "docs/interface.md#starting-and-stopping",
    summary: "Stops a Machine.",
    params: one,
    lease: "guarded",
    body: z.object({
      signal: optional(stopSignal, "Signal that asks it to stop.", { wireDefault: "SIGINT" }),
      timeout: optional(duration(), "Time until it is killed."),
      id: optional(z.string(), "Ignored; some clients send the Machine's id."),
    }),
    bodyOptional: true,
    status: 200,
    answer: ok,
    failures: { 400: "bad field", 404: missing, 409: held, 412: "its state does not allow a stop" },
    repeat: "once",
  },
  suspend: {
    method: "POST",
    path: `${at}/suspend`,
    source: "docs/interface.md#starting-and-stopping",
    summary: "Takes a snapshot of a running Machine and stops it; the next start tries to resume.",
    params: one,
    lease: "guarded",
    status: 200,
    answer: ok,
    failures: { 404: missing, 409: held, 412: "it does not run" },
    repeat: "once",
  },
  versions: {
    method: "GET",
    path: `${at}/versions`,
    source: "docs/interface.md#versions",
    summary: "Lists the versions of a Machine's configuration, newest first.",
    params: one,
    status: 200,
    answer: z.array(
      z.object({
        version: optional(z.string(), "Identifier of 26 characters."),
        user_config: optional(machineConfig, "Configuration of that version."),
      }),
    ),
    failures: { 404: missing },
    repeat: "read",
  },
  exec: {
    method: "POST",
    path: `${at}/exec`,
    source: "docs/interface.md#commands",
    summary: "Runs a command in a Machine and returns its output.",
    params: one,
    body: z.object({
      command: optional(z.array(z.string()).min(1), "The command and its arguments. Required, or `cmd`."),
      cmd: optional(z.string(), "The command as one text.", { deprecationMessage: "Use `command`." }),
      timeout: optional(z.int().min(0).max(60), "Seconds until it is ended, at most 60.", { wireDefault: 60 }),
      stdin: optional(z.string(), "What the command reads.", { long: true }),
      container: optional(z.string(), "Container to run it in."),
      machine: optional(z.boolean(), "Runs it in the Machine's own namespace; exclusive with `container`."),
    }),
    status: 200,
    answer: z.object({
      stdout: optional(z.string(), "What it wrote."),
      stderr: optional(z.string(), "What it wrote as errors."),
      exit_code: optional(z.int(), "Its exit code."),
      exit_signal: optional(z.int(), "Signal that ended it; 0 or absent if none did."),
    }),
    failures: { 400: "bad field", 404: missing, 408: "it did not end in time", 412: "the Machine does not run" },
    repeat: "once",
    held: true,
  },
  processes: {
    method: "GET",
    path: `${at}/ps`,
    source: "docs/interface.md#processes-and-signals",
    summary: "Lists the processes of a Machine.",
    params: one,
    query: z.object({
      sort_by: optional(
        z.enum(["pid", "cpu", "rss", "rtime", "stime", "command"]),
        "Field to sort by: `pid`, `cpu`, `rss`, `rtime`, `stime` or `command`.",
        { wireDefault: "pid" },
      ),
      order: optional(z.enum(["asc", "desc"]), "Order: `asc` or `desc`.", { wireDefault: "asc" }),
    }),
    status: 200,
    answer: z.array(
      z.object({
        pid: optional(z.int(), "Process id."),
        command: optional(z.string(), "Command line."),
        directory: optional(z.string(), "Working directory."),
        cpu: optional(z.int(), "Processor use in percent."),
        rss: optional(z.int(), "Bytes of resident memory."),
        rtime: optional(z.int(), "Seconds since it began."),
        stime: optional(z.int(), "Processor time it used in the kernel, in milliseconds."),
        listen_sockets: optional(
          z.array(
            z.object({
              proto: optional(z.string(), "`tcp` or `udp`."),
              address: optional(z.string(), "Address and port."),
            }),
          ),
          "Sockets it listens on.",
        ),
      }),
    ),
    failures: { 400: "bad sort_by or order", 404: missing, 412: "the Machine does not run" },
    repeat: "read",
  },
  signal: {
    method: "POST",
    path: `${at}/signal`,
    source: "docs/interface.md#processes-and-signals",
    summary: "Sends a signal to the main process of a Machine.",
    params: one,
    body: z.object({ signal: required(signalName, "Signal by name; a number means the same.") }),
    status: 200,
    answer: ok,
    failures: { 400: "bad signal", 404: missing, 412: "the Machine does not run" },
    repeat: "once",
  },
  getMemory: {
    method: "GET",
    path: `${at}/memory`,
    source: "docs/interface.md#memory",
    summary: "Shows the memory limit of a Machine and its available memory.",
    params: one,
    status: 200,
    answer: memory,
    failures: { 404: missing, 412: "the Machine does not run" },
    repeat: "read",
  },
  setMemory: {
    method: "PUT",
    path: `${at}/memory`,
    source: "docs/interface.md#memory",
    summary: "Sets the memory limit of a running Machine through its balloon device.",
    params: one,
    body: z.object({ limit_mb: required(z.int().min(1), "Limit in MB, at most what the Machine may have.") }),
    status: 200,
    answer: memory,
    failures: { 400: "limit out of range", 404: missing, 412: "the Machine does not run" },
    repeat: "repeatable",
  },
  reclaimMemory: {
    method: "POST",
    path: `${at}/memory/reclaim`,
    source: "docs/interface.md#memory",
    summary: "Reclaims memory of a running Machine through its balloon device.",
    params: one,
    body: z.object({ amount_mb: required(z.int().min(1), "MB to take back.") }),
    status: 200,
    answer: z.object({ actual_mb: required(z.int(), "MB that were taken back.") }),
    failures: { 400: "amount out of range", 404: missing, 412: "the Machine does not run" },
    repeat: "once",
  },
  wait: {
    method: "GET",
    path: `${at}/wait`,
    source: "docs/interface.md#waits",
    summary: "Waits until a Machine reaches one of several states.",
    params: one,
    query: z.object({
      state: optional(z.array(waitState), "States waited for; repeated or comma-separated.", {
        wireDefault: ["started"],
      }),
      timeout: optional(z.int().min(1).max(60), "Seconds to wait, 1 to 60.", { wireDefault: 60 }),
      version: optional(ulid, "Version that must have reached the state."),
      instance_id: optional(ulid, "Another spelling of `version`.", { deprecationMessage: "Use `version`." }),
      from_event_id: optional(ulid, "Only events after this one count."),
    }),
    status: 200,
    answer: z.object({
      ok: optional(z.boolean(), "True."),
      state: optional(z.string(), "State that was reached."),
      version: optional(z.string(), "Version that reached it."),
      event_id: optional(z.string(), "Event that brought it there."),
    }),
    failures: {
      400: "timeout outside 1 to 60 s",
      404: "the Machine is gone",
      408: "the state was not reached in time",
      412: "`version` was replaced by another",
    },
    repeat: "read",
    held: true,
  },
});
