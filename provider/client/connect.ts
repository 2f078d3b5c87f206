// One connection per endpoint and token for the whole process, so that sockets and rate limits are shared.
import { exposureOf, type Config } from "./config.ts";
import { createApi, type Api } from "./api.ts";
import type { ClientParts } from "./handler.ts";
import { systemClock, type Deadline } from "./clock.ts";
import { MachinesError } from "./errors.ts";
import { identityTokens } from "./identity.ts";
import { startLocal, type LocalAccess } from "./localService.ts";
import { newConnection, type Connection } from "./session.ts";
import { httpTransport, type Transport } from "./transport.ts";

const connections = new Map<string, { readonly parts: ClientParts; readonly connection: Connection }>();
const toldOfExposure = new Set<string>();

/** Warns of a token that would be sent unencrypted over the network, once for each endpoint. */
export function warnOfExposure(config: Config, warn: (message: string) => void): void {
  const message = exposureOf(config);
  if (message === undefined || toldOfExposure.has(message)) return;
  toldOfExposure.add(message);
  warn(message);
}

/**
 * A client for a configuration that has learned nothing yet. Nothing is sent, and `local` is not started, before the first
 * request.
 */
export function newClient(config: Config, warn: (message: string) => void): Api {
  const key = JSON.stringify(config);
  let known = connections.get(key);
  if (!known) {
    warnOfExposure(config, warn);
    const transport = httpTransport();
    const parts = { config, connect: connector(config, transport), transport, clock: systemClock };
    known = { parts, connection: newConnection(systemClock) };
    connections.set(key, known);
  }
  return createApi(known.parts, known.connection);
}

/** Waits for a token no longer than the request may take, which needs it. Others may still wait for it. */
async function within(deadline: Deadline | undefined, endpoint: string, token: Promise<string>): Promise<string> {
  if (deadline === undefined || deadline.at === Infinity) return token;
  const { at, allowed, signal, advice = "The next up continues from here." } = deadline;
  const done = new AbortController();
  const signals = signal ? [done.signal, signal] : [done.signal];
  const late = systemClock.sleep(at - systemClock.now(), AbortSignal.any(signals)).then(() => {
    const what = `the time limit of ${allowed} ended before this workflow was signed in at ${endpoint}`;
    throw new MachinesError("wait-timeout", `${what}. ${advice}`);
  });
  try {
    return await Promise.race([token, late]);
  } finally {
    done.abort();
  }
}

function connector({ endpoint, token, identity }: Config, transport: Transport): ClientParts["connect"] {
  if (token === undefined && identity !== undefined) {
    const current = identityTokens({ endpoint, source: identity, env: process.env, clock: systemClock, transport });
    return async ({ deadline, refused } = {}) => ({
      url: endpoint,
      token: await within(deadline, endpoint, current(refused)),
    });
  }
  if (endpoint !== "local") return () => Promise.resolve({ url: endpoint, token: token ?? "" });
  let running: Promise<LocalAccess> | undefined;
  return () => {
    running ??= startLocal().catch((error: unknown) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}
