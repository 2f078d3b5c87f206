// The proxy as a process of its own: it follows a service elsewhere, and several of them may stand side by side.
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { createServer } from "../http/app.ts";
import { labelBelow } from "../lifecycle/hostnames.ts";
import { Followed } from "../proxy/followed.ts";
import { proxyLimits } from "../proxy/limits.ts";
import type { Names, Served } from "../proxy/ownNames.ts";
import { Proxy, type ProxyPorts } from "../proxy/proxy.ts";
import type { RawPlace } from "../proxy/rawPlace.ts";
import { ServiceLink } from "../proxy/serviceLink.ts";
import { LocalAuthority } from "../runtime/localAuthority.ts";
import { Networks } from "../runtime/networks.ts";
import { readCertificate } from "./certificate.ts";
import { readFile } from "./files.ts";
import { hostInUrl, listenProblem, parseListen } from "./listen.ts";
import { Log } from "./log.ts";
import type { LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";
import { drainOf, portOf, proxyOf } from "./proxyOptions.ts";
import { rawOf } from "./rawPort.ts";
import { nameOf, openProxy, trustedOf } from "./reached.ts";
import { onSignal } from "./running.ts";

/** Options of a proxy of its own; most are those of the proxy in a service. */
export interface OwnProxyOptions extends Pick<
  LocalOptions,
  | "http"
  | "https"
  | "public"
  | "appsDomain"
  | "tlsCert"
  | "tlsKey"
  | "trustProxy"
  | "proxyProtocol"
  | "proxyConnections"
  | "proxyConnectionsOfAddress"
  | "proxyIdle"
  | "drain"
> {
  /** URL of the service. */
  readonly service: string;
  /** File with a token of the role `proxy`. */
  readonly tokenFile: string;
  /** Raw ports, as `APP:PORT` or `APP:PORT=PORT HERE`. */
  readonly tcp?: readonly string[];
  /** Address for probes. Default: none. */
  readonly health?: string;
}

/** A proxy that runs. */
export interface RunningProxy {
  readonly http: number;
  readonly https: number;
  readonly pid: number;
  /** URL for probes. */
  readonly health?: string;
}

// ASSUMED: a certificate that was replaced in its file is served after ten seconds.
const rereadMs = 10_000;

// ASSUMED: a proxy reports its answers every ten seconds, for the charts and metrics of the service.
const answersMs = 10_000;

/** What the options say, checked. */
interface Plan {
  readonly url: string;
  readonly token: () => string;
  readonly ports: ProxyPorts;
  readonly raw: readonly RawPlace[];
  readonly addresses: readonly string[];
  readonly appsDomain: string | undefined;
  readonly trusted: readonly string[] | undefined;
  readonly drainMs: number;
  readonly health: ReturnType<typeof parseListen> | undefined;
}

function planOf(options: OwnProxyOptions): Plan {
  const { service, tokenFile, public: addresses = ["::"], appsDomain, trustProxy, proxyProtocol = false } = options;
  if (!URL.canParse(service) || !/^https?:$/.test(new URL(service).protocol))
    throw new Problem(
      `--service takes the URL of a service such as http://machines-service:4280, got ${JSON.stringify(service)}`,
    );
  const wrong = addresses.find((one) => isIP(one) === 0);
  if (wrong !== undefined)
    throw new Problem(`--public takes IP addresses such as 0.0.0.0 or 203.0.113.5, got ${JSON.stringify(wrong)}`);
  const token = (): string => readFile("--token-file", tokenFile).trim();
  if (!/^\S+$/.test(token())) throw new Problem(`--token-file: ${tokenFile} holds no token`);
  const tls = readCertificate(options.tlsCert, options.tlsKey);
  if (tls && appsDomain === undefined)
    throw new Problem("--tls-cert needs --apps-domain, whose names the certificate is for; hostnames have their own");
  return {
    url: service,
    token,
    ports: { http: portOf(options.http, "--http", 80), https: portOf(options.https, "--https", 443) },
    raw: (options.tcp ?? []).map(rawOf),
    addresses,
    appsDomain: appsDomain === undefined ? undefined : nameOf(appsDomain, "--apps-domain", "apps.example.com"),
    trusted: trustedOf(trustProxy, proxyProtocol),
    drainMs: drainOf(options.drain ?? "25"),
    health: options.health === undefined ? undefined : parseListen(options.health, "--health"),
  };
}

/** Runs a proxy until SIGINT or SIGTERM. It is returned once it knows what the service has, and accepts connections. */
export async function serveProxy(options: OwnProxyOptions): Promise<RunningProxy> {
  const plan = planOf(options);
  const log = new Log("");
  let isListening = false;
  let isEnding = false;
  let count = 0;
  const app = createServer({ log, requestId: () => `probe-${++count}` });
  const followed = new Followed(plan.appsDomain === undefined ? {} : { appsDomain: plan.appsDomain }, app.log, {
    changed: (touched) => proxy.changed(touched),
    forget: (endpoint) => proxy.forget(endpoint),
  });
  const link = new ServiceLink(plan, followed);
  const authority = new LocalAuthority(undefined);
  const proxy = new Proxy(followed.context, followed.reach, authority, undefined, proxyLimits(proxyOf(options)), {
    trusted: plan.trusted && new Networks(plan.trusted),
    power: (targets) => link.powerFor(targets),
    names: () => namesOf(options, plan),
    answerOf: (token) => link.answerOf(token),
  });
  app.get("/healthz", () => ({ status: "ok" }));
  app.get("/readyz", (_request, reply) => {
    const problem = isEnding
      ? "the proxy is shutting down"
      : isListening
        ? undefined
        : "the service was not reached yet";
    if (problem === undefined) return { status: "ok", connected: link.isConnected, at: link.at };
    return reply.status(503).send({ error: problem });
  });
  onSignal((signal) => {
    isEnding = true;
    app.log.info({ signal }, "closing");
    void (async () => {
      await proxy.drain(plan.drainMs);
      await link.reportAnswers(proxy.traffic);
      await proxy.close();
      log.flush();
      process.exit(0);
    })();
  });
  const health = plan.health && (await listenForProbes(app, plan.health, options.health ?? ""));
  setInterval(() => void link.reportAnswers(proxy.traffic), answersMs).unref();
  link.begin();
  // It never answers from an empty table.
  await link.ready();
  const { addresses, raw } = plan;
  const open = { addresses, raw, hasProxyProtocol: options.proxyProtocol ?? false };
  const ports = await openProxy({ ports: plan.ports, reached: { open } }, { proxy });
  isListening = true;
  const running = { http: ports?.http ?? 0, https: ports?.https ?? 0, pid: process.pid, ...(health ? { health } : {}) };
  app.log.info(running, "ready");
  return running;
}

async function listenForProbes(
  app: ReturnType<typeof createServer>,
  { host, port }: ReturnType<typeof parseListen>,
  given: string,
): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw await listenProblem(error, given, "--health");
  }
  const address = app.server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return `http://${hostInUrl(host)}:${bound}`;
}

/** The certificate of the domain of Apps, from its files, which may be replaced meanwhile. */
function namesOf({ tlsCert, tlsKey }: OwnProxyOptions, { appsDomain }: Plan): Names {
  let readAt = Number.NEGATIVE_INFINITY;
  let version = "";
  let served: Served | undefined;
  const read = (cert: string, key: string): void => {
    if (performance.now() - readAt < rereadMs) return;
    readAt = performance.now();
    try {
      const now = [cert, key].map((file) => statSync(file).mtimeMs).join(" ");
      if (now === version) return;
      const [chain, text] = [readFileSync(cert, "utf8"), readFileSync(key, "utf8")];
      served = { chain, key: () => text };
      version = now;
    } catch {
      // Files that are being replaced are read later. The certificate before is still good.
    }
  };
  return {
    certificateFor: (host) => {
      const name = host.toLowerCase().replace(/\.$/, "");
      if (tlsCert === undefined || tlsKey === undefined || labelBelow(appsDomain, name) === undefined)
        return Promise.resolve(undefined);
      read(tlsCert, tlsKey);
      return Promise.resolve(served);
    },
    begin() {},
    changed: () => false,
    close() {},
  };
}
