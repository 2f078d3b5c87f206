// One client per endpoint and token for the whole process, so that connections, rate limits and caches are shared.
import { exposureOf, type Config } from "./config.ts";
import { createApi, type Api } from "./api.ts";
import type { ClientParts } from "./handler.ts";
import { systemClock } from "./clock.ts";
import { startLocal, type LocalAccess } from "./localService.ts";
import { httpTransport } from "./transport.ts";

const clients = new Map<string, Api>();
const toldOfExposure = new Set<string>();

/** Warns of a token that would be sent unencrypted over the network, once for each endpoint. */
export function warnOfExposure(config: Config, warn: (message: string) => void): void {
  const message = exposureOf(config);
  if (message === undefined || toldOfExposure.has(message)) return;
  toldOfExposure.add(message);
  warn(message);
}

/** The client for a configuration. Nothing is sent, and `local` is not started, before the first request. */
export function clientFor(config: Config, warn: (message: string) => void): Api {
  const key = JSON.stringify(config);
  let client = clients.get(key);
  if (!client) {
    warnOfExposure(config, warn);
    client = createApi({
      config,
      connect: connector(config),
      transport: httpTransport(),
      clock: systemClock,
    });
    clients.set(key, client);
  }
  return client;
}

function connector({ endpoint, token }: Config): ClientParts["connect"] {
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
