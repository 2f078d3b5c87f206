// The fleets of a deployment file: one for each process group.
import { secretIn } from "../../policy/core/secretText.ts";
import { camelCase } from "../organization/names.ts";
import type { Deployment, Table } from "./deployment.ts";
import { Refused, type ReadFile } from "./localFiles.ts";
import { Placed } from "./placed.ts";
import type { DeploymentFile } from "./schema.ts";
import { httpService, plainService, some, timeIn, topCheck, type Inputs } from "./services.ts";
import { mebibytes, wordsOf } from "./units.ts";
import { guestOf } from "./guest.ts";

/** A process group. */
export interface Group {
  readonly name: string;
  /** Whether it has what names no group. */
  readonly isDefault: boolean;
}

/** The groups of a file, the default one first. */
export function groupsOf({ processes = {} }: DeploymentFile): readonly Group[] {
  const names = Object.keys(processes).sort();
  const main = names.length === 0 || names.includes("app") ? "app" : (names[0] ?? "app");
  return [main, ...names.filter((name) => name !== main)].map((name) => ({ name, isDefault: name === main }));
}

/** Values that a program reads from the configuration, by their keys. */
export type Secrets = Map<string, string>;

/** Whether something of the file is for a group. */
const isFor =
  ({ name, isDefault }: Group) =>
  ({ values }: Table<{ readonly processes?: readonly string[] | undefined }>): boolean =>
    values.processes === undefined || values.processes.length === 0 ? isDefault : values.processes.includes(name);

/** What all fleets share. */
interface Shared {
  readonly image: Placed;
  readonly secrets: Secrets;
  /** Contents of the files that the deployment file names. */
  readonly read: ReadFile;
}

/** The configuration of a group's Machines. */
export function configOf(deployment: Deployment, group: Group, shared: Shared): Inputs {
  const { root } = deployment;
  const [statics, metrics, restart] = [root.tables("statics"), root.tables("metrics"), root.tables("restart")];
  const services = servicesOf(deployment, group);
  const policy = mostSpecific(restart, group);
  const measured = metrics.filter(isFor(group));
  for (const more of measured.slice(1)) more.remark(undefined, "a Machine has one source of metrics");
  return {
    image: shared.image,
    env: environment(root, shared.secrets),
    guest: guestOf(deployment, mostSpecific(root.tables("vm"), group)),
    init: initOf(deployment, group),
    services: some(services),
    checks: checksOf(deployment, group),
    statics:
      services.length === 0
        ? undefined
        : some(
            statics.map((one) => ({
              guestPath: one.take("guest_path"),
              urlPrefix: one.take("url_prefix"),
              tigrisBucket: one.take("tigris_bucket"),
              indexDocument: one.take("index_document"),
            })),
          ),
    files: some(
      root
        .tables("files")
        .filter(isFor(group))
        .flatMap((file) => fileOf(deployment, file, shared)),
    ),
    metrics: measured[0] && metricsOf(measured[0]),
    restart: policy && restartOf(policy),
    stopConfig: stopOf(deployment),
  };
}

/** What applies to a group: that which names it, or else what names none. */
function mostSpecific<T extends { readonly processes?: readonly string[] | undefined }>(
  tables: readonly Table<T>[],
  { name }: Group,
): Table<T> | undefined {
  const own = tables.filter(({ values }) => values.processes?.includes(name) === true);
  return own[0] ?? tables.find(({ values }) => (values.processes ?? []).length === 0);
}

function servicesOf(deployment: Deployment, group: Group): readonly Inputs[] {
  const { root } = deployment;
  const main = root.table("http_service");
  return [
    ...(main && isFor(group)(main) ? [httpService(deployment, main)] : []),
    ...root
      .tables("services")
      .filter(isFor(group))
      .map((one) => plainService(deployment, one)),
  ];
}

function checksOf(deployment: Deployment, group: Group): Inputs | undefined {
  const all = deployment.root.table("checks");
  if (!all) return undefined;
  const found = Object.keys(all.values).flatMap((name) => {
    const one = all.table(name);
    const check = one && isFor(group)(one) ? topCheck(deployment, one) : undefined;
    return check === undefined ? [] : [[name, check] as const];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

function environment(root: Table<DeploymentFile>, secrets: Secrets): Inputs | undefined {
  const env = root.table("env");
  if (!env) return undefined;
  const entries = Object.keys(env.values).map((name): [string, unknown] => {
    const value = env.take(name) ?? "";
    if (secretIn(name, value, { names: [], entropy: 4.2 }) === undefined) return [name, value];
    return [name, secret(camelCase(name), `env.${name}`, secrets)];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function secret(key: string, source: string, secrets: Secrets): Placed {
  secrets.set(key, source);
  return new Placed({ is: "setting", key });
}

function initOf(deployment: Deployment, { name }: Group): Inputs | undefined {
  const { root } = deployment;
  const experimental = root.table("experimental");
  const command = root.table("processes")?.take(name);
  const own = command === undefined ? undefined : split(deployment, ["processes", name], command);
  if (own) experimental?.remark("cmd", "the commands of the process groups come before it");
  const given = (key: "cmd" | "entrypoint" | "exec"): readonly string[] | undefined => {
    const value = experimental?.take(key);
    return typeof value === "string" ? split(deployment, ["experimental", key], value) : value;
  };
  const inputs = {
    exec: given("exec"),
    entrypoint: given("entrypoint"),
    cmd: own ?? given("cmd"),
    swapSizeMb: root.take("swap_size_mb"),
  };
  return Object.values(inputs).some((value) => value !== undefined) ? inputs : undefined;
}

/** The words of a command; undefined if it has none. */
export function split(deployment: Deployment, path: readonly string[], command: string): readonly string[] | undefined {
  const words = wordsOf(command);
  if (words === undefined) throw deployment.refused(path, "a quote of this command is not closed");
  return some(words);
}

type File = NonNullable<DeploymentFile["files"]>[number];

function fileOf(deployment: Deployment, file: Table<File>, { secrets, read }: Shared): readonly Inputs[] {
  file.take("processes");
  const guestPath = file.take("guest_path");
  const { local_path: local, raw_value: raw, secret_name: name } = file.values;
  if (local === undefined && raw === undefined) return [{ guestPath, secretName: name && file.take("secret_name") }];
  const contents = local === undefined ? Buffer.from(raw ?? "") : read(local);
  if (contents instanceof Refused) throw deployment.refused([...file.path, "local_path"], contents.reason);
  if (contents === undefined) {
    file.remark(undefined, `${String(local)} cannot be read, so the file is left out`);
    return [];
  }
  const key = local === undefined ? "raw_value" : "local_path";
  file.take(key);
  const isSecret = secretIn("", contents.toString(), { names: [], entropy: 4.2 }) !== undefined;
  return [
    {
      guestPath,
      rawValue: isSecret
        ? secret(camelCase(`file ${guestPath}`), `${key} of ${guestPath} in base64`, secrets)
        : contents.toString("base64"),
    },
  ];
}

function metricsOf(metrics: Table<NonNullable<DeploymentFile["metrics"]>[number]>): Inputs {
  metrics.take("processes");
  return { port: metrics.take("port"), path: metrics.take("path"), https: metrics.take("https") };
}

function restartOf(restart: Table<NonNullable<DeploymentFile["restart"]>[number]>): Inputs | undefined {
  restart.take("processes");
  if (restart.values.policy === "never")
    restart.remark("policy", "a fleet keeps its Machines running; declare a Machine for what ends");
  const policy = restart.values.policy === "never" ? undefined : restart.take("policy");
  const maxRetries = restart.take("retries");
  return policy === undefined && maxRetries === undefined ? undefined : { policy, maxRetries };
}

const signals = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGTERM"];

function stopOf(deployment: Deployment): Inputs | undefined {
  const { root } = deployment;
  const given = root.values.kill_signal?.toUpperCase();
  const signal = given === undefined || given.startsWith("SIG") ? given : `SIG${given}`;
  const isKnown = signal !== undefined && signals.includes(signal);
  if (isKnown) root.take("kill_signal");
  else root.remark("kill_signal", `the signal must be one of ${signals.join(", ")}, so it is left out`);
  const timeout = timeIn(deployment, root, "kill_timeout", "s");
  return isKnown || timeout !== undefined ? { signal: isKnown ? signal : undefined, timeout } : undefined;
}

/** The volume of each Machine of a group. */
export function volumeOf(deployment: Deployment, group: Group): Inputs | undefined {
  const [mount, ...others] = deployment.root.tables("mounts").filter(isFor(group));
  for (const one of others) one.remark(undefined, "a Machine of a fleet mounts one volume, so this one is left out");
  if (!mount) return undefined;
  mount.take("processes");
  mount.remark("source", "the fleet names its volumes after its Machines");
  const size = mount.take("initial_size");
  const megabytes = size === undefined ? undefined : mebibytes(size, "g");
  if (size !== undefined && megabytes === undefined)
    throw deployment.refused([...mount.path, "initial_size"], `${JSON.stringify(size)} is not a size, such as 10gb`);
  for (const name of ["auto_extend_size_threshold", "auto_extend_size_increment", "auto_extend_size_limit"] as const)
    mount.remark(name, "a fleet's volumes do not grow by themselves; raise sizeGb");
  mount.remark("scheduled_snapshots", "snapshots of a fleet's volumes are always taken on a schedule");
  return {
    path: mount.take("destination"),
    sizeGb: megabytes === undefined ? undefined : Math.ceil(megabytes / 1024),
    snapshotRetention: mount.take("snapshot_retention"),
  };
}

/** How a group is rolled out. */
export function rolloutOf(deployment: Deployment, group: Group, hasVolume: boolean): Inputs {
  const { root } = deployment;
  const deploy = root.table("deploy");
  const type = deploy?.take("strategy");
  const isCopied = hasVolume && type === "bluegreen";
  if (isCopied)
    deploy?.remark("strategy", "a fleet with a volume is updated by rolling; see `volume.copy` for bluegreen");
  const isInPlace = type === undefined || type === "rolling" || type === "canary" || isCopied;
  const most = deploy?.values.max_unavailable;
  if (isInPlace) deploy?.take("max_unavailable");
  else deploy?.remark("max_unavailable", `it has no meaning for ${type}`);
  const maxUnavailable =
    !isInPlace || most === undefined ? undefined : most > 0 && most < 1 ? `${Math.round(most * 100)}%` : String(most);
  const strategy = { type: isCopied ? undefined : type, maxUnavailable };
  const command = group.isDefault ? deploy?.take("release_command") : undefined;
  return {
    strategy: Object.values(strategy).some((value) => value !== undefined) ? strategy : undefined,
    releaseCommand: command && split(deployment, ["deploy", "release_command"], command),
    progressDeadline: deploy && timeIn(deployment, deploy, "wait_timeout", "s"),
    onFailure: root.table("experimental")?.take("auto_rollback") === true ? "rollback" : undefined,
  };
}
