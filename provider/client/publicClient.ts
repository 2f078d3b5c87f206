// The client for scripts: the operations, without the parts that only resources need.
import { formatDuration } from "../../api/schema.ts";
import { readConfig, type Config } from "./config.ts";
import { MachinesError } from "./errors.ts";
import { byGroup, type Api, type Methods } from "./api.ts";
import { newClient } from "./connect.ts";
import { identityIn } from "./identity.ts";

/**
 * Options of a client. Omitted options come from the environment, as for the provider (`MACHINES_ENDPOINT`,
 * …).
 */
export interface ClientOptions {
  /** Base URL of the service, or `local` for the embedded one. */
  readonly endpoint?: string | undefined;
  /** Access token; not needed with `local`. */
  readonly token?: string | undefined;
  /** Slug of the organization whose lists are read by default; `personal` if omitted. */
  readonly organization?: string | undefined;
  /** Name of the header with a lease's nonce. */
  readonly leaseHeader?: string | undefined;
  /** How often a failed request is repeated if the failure permits it, 0 to 20; 5 by default. */
  readonly retries?: number | undefined;
  /** Seconds until an answer must arrive, 1 to 600; 30 by default. */
  readonly requestTimeoutSeconds?: number | undefined;
  /** Receives warnings; by default standard error. */
  readonly onWarning?: ((message: string) => void) | undefined;
}

/** Limits of a group of calls. */
export interface Limits {
  /** Seconds that it may take. */
  readonly timeoutSeconds?: number | undefined;
  /** Cancels it: nothing more is sent, a read under way is cancelled, a change under way is finished. */
  readonly signal?: AbortSignal | undefined;
}

/** Every operation of the interface as a typed method: `client.machines.get({ appName, machineId })`. */
export interface Client extends Methods {
  /** Base URL of the service, or `local`. */
  readonly endpoint: string;
  /** Slug of the organization of lists. */
  readonly organization: string;
  /** The same client for calls that share a time limit. */
  within(limits: Limits): Client;
  /** Closes idle connections, so that the script can exit. */
  close(): Promise<void>;
}

const apis = new WeakMap<Client, Api>();

/**
 * Creates a client; nothing is sent before its first call. Clients with the same options share connections.
 * @throws MachinesError `configuration` if the options or the environment are invalid
 */
export function createClient(options: ClientOptions = {}): Client {
  const { onWarning = console.error, ...settings } = options;
  const given = new Map(
    Object.entries(settings).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
  );
  const env = process.env;
  if (!given.get("endpoint") && !env["MACHINES_ENDPOINT"])
    throw missing("endpoint", "give createClient an `endpoint`, or set MACHINES_ENDPOINT");
  const isLocal = (given.get("endpoint") || env["MACHINES_ENDPOINT"]) === "local";
  if (!isLocal && !given.get("token") && !env["MACHINES_TOKEN"] && !identityIn(env))
    throw missing("access token", "give createClient a `token`, or set MACHINES_TOKEN");
  const config = configOf((key) => given.get(key));
  return clientOf(newClient(given.get("token") ? { ...config, tokenSource: "createClient" } : config, onWarning));
}

/** The configuration; its errors use the names of a script's options. */
function configOf(get: (key: string) => string | undefined): Config {
  try {
    return readConfig(get, process.env);
  } catch (error) {
    if (!(error instanceof MachinesError)) throw error;
    throw new MachinesError(error.code, error.message.replaceAll("machines:", "createClient: "), { cause: error });
  }
}

const missing = (what: string, wayOut: string): MachinesError =>
  new MachinesError("configuration", `no ${what}: ${wayOut}`);

function clientOf(api: Api): Client {
  const client: Client = Object.assign(
    byGroup((group) => api[group]),
    {
      endpoint: api.config.endpoint,
      organization: api.config.organization,
      within: (limits: Limits) => clientOf(apiOf(client, limits)),
      close: () => api.close(),
    },
  );
  apis.set(client, api);
  return client;
}

/** The session behind a client, with further limits if any; the client's own limit applies too. */
export function apiOf(client: Client, { timeoutSeconds, signal }: Limits = {}): Api {
  const api = apis.get(client);
  if (!api) throw new MachinesError("invalid-input", "this client was not created by createClient");
  const { deadline, clock } = api;
  const at = clock.now() + (timeoutSeconds ?? Number.POSITIVE_INFINITY) * 1000;
  const signals = [deadline.signal, signal].filter((one) => one !== undefined);
  return api.within({
    advice: "Allow it more time with timeoutSeconds.",
    ...(timeoutSeconds !== undefined && at < deadline.at
      ? { at, allowed: formatDuration(timeoutSeconds * 1e9) }
      : { at: deadline.at, allowed: deadline.allowed }),
    signal: signals.length > 1 ? AbortSignal.any(signals) : signals[0],
  });
}
