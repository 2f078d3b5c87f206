// All delays of the service as data.

const believable = {
  /** Fetching the image, before the first start. */
  prepare: 150,
  start: 250,
  stop: 200,
  suspend: 200,
  /** Replacing the old version with the new one. */
  replace: 100,
  destroy: 200,
  /** From the destruction of a Machine until its volume is released. */
  unbind: 300,
  /** From the start until the checks have a result. */
  checks: 500,
  /** How long a simulated process runs before it exits. */
  run: 1000,
  /** Before a failed process is restarted. */
  retry: 500,
  /** ASSUMED: `restart.policy: always` has no limit and pauses a second between two attempts. */
  retryAlways: 1000,
  /** One step in the lifecycle of a volume. */
  volume: 100,
  snapshot: 500,
  /** From the deletion of an App until it is removed. */
  app: 200,
  /** From a correct DNS until the certificate is issued. */
  certificate: 500,
  /** One step in the lifecycle of a Postgres cluster. */
  cluster: 1000,
  backup: 500,
  /** ASSUMED: a Machine that autostop may stop is idle after a minute without a request. */
  idle: 60_000,
};

/** Milliseconds of every delay. */
export type Delays = Readonly<Record<keyof typeof believable, number>>;

const none = Object.fromEntries(Object.keys(believable).map((name) => [name, 0])) as Record<
  keyof typeof believable,
  number
>;

/**
 * Named sets of delays: `believable` for people; `none` for tests, in which a request is answered after all its effects. There too
 * a Machine that always restarts has a pause, because it would block all other work.
 */
export const delayProfiles = {
  believable,
  none: { ...none, retryAlways: 1000, idle: 60_000 },
} as const satisfies Record<string, Delays>;

/** Name of a set of delays. */
export type DelayProfile = keyof typeof delayProfiles;

const second = 1000;
const hour = 3600 * second;

/** Periods that the interface defines; they are the same for every set of delays. */
export const periods = {
  /** A destroyed Machine still answers by id (docs/interface.md#machine-states). */
  destroyedShown: 60 * second,
  /** ASSUMED: a destroyed Machine answers by id for 60 seconds, and lists with `include_deleted` show it for a day. */
  destroyedKept: 24 * hour,
  /** A deleted volume stays `pending_destroy` (docs/interface.md#volume-states). */
  volumeKept: 24 * hour,
  /** ASSUMED: an engine that has real data keeps the last copy of a deleted cluster for a day, as volumes are kept. */
  clusterKept: 24 * hour,
  /** Retries of a failed process are counted for this long, from the first one (docs/interface.md#limits). */
  retries: 300 * second,
  backup: 24 * hour,
  /** ASSUMED: a certificate that the service issues itself is good for 90 days. */
  certificate: 90 * 24 * hour,
  /** The size of a cluster is measured this often (docs/interface.md#managed-postgres). */
  measure: hour,
  day: 24 * hour,
  /** ASSUMED: a Machine with a `schedule` is launched when it is created, then started every hour, day, week or 30 days. */
  schedule: { hourly: hour, daily: 24 * hour, weekly: 7 * 24 * hour, monthly: 30 * 24 * hour },
} as const;
