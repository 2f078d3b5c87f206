// The services and checks of a deployment file.
import type { Deployment, Table } from "./deployment.ts";
import type { DeploymentFile } from "./schema.ts";
import { timeOf } from "./units.ts";

type HttpService = NonNullable<DeploymentFile["http_service"]>;
type Service = NonNullable<DeploymentFile["services"]>[number];
type Port = NonNullable<Service["ports"]>[number];
type HttpCheck = NonNullable<Service["http_checks"]>[number];
type TcpCheck = NonNullable<Service["tcp_checks"]>[number];
type TopCheck = NonNullable<DeploymentFile["checks"]>[string];
type HttpOptions = NonNullable<Port["http_options"]>;

/** Inputs of the provider. */
export type Inputs = Readonly<Record<string, unknown>>;

/** `[http_service]`: the ports 80 and 443. */
export function httpService(deployment: Deployment, service: Table<HttpService>): Inputs {
  const options = httpOptions(service.table("http_options"));
  const tls = service.table("tls_options");
  service.take("processes");
  return {
    protocol: "tcp",
    ...serving(service),
    ports: [
      { port: 80, handlers: ["http"], forceHttps: service.take("force_https"), httpOptions: options },
      { port: 443, handlers: ["tls", "http"], httpOptions: options, tlsOptions: tls && tlsOptions(tls) },
    ],
    checks: some([
      ...service.tables("tcp_checks").map((check) => ({ type: "tcp", ...timesOf(deployment, check) })),
      ...service.tables("checks").map((check) => ({ type: "http", ...httpCheck(deployment, check) })),
    ]),
  };
}

/** One of `[[services]]`. */
export function plainService(deployment: Deployment, service: Table<Service>): Inputs {
  service.take("processes");
  service.remark("script_checks", "a check cannot run a script; use an http check");
  return {
    protocol: service.take("protocol") ?? "tcp",
    ...serving(service),
    ports: some(service.tables("ports").map(portOf)),
    checks: some([
      ...service.tables("tcp_checks").map((check) => ({ type: "tcp", ...timesOf(deployment, check) })),
      ...service.tables("http_checks").map((check) => ({ type: "http", ...httpCheck(deployment, check) })),
    ]),
  };
}

function serving(service: Table<HttpService> | Table<Service>): Inputs {
  const common = service as Table<Pick<HttpService, keyof HttpService & keyof Service>>;
  const stop = common.take("auto_stop_machines");
  const concurrency = common.table("concurrency");
  common.remark("machine_checks", "checks in a Machine of their own are not supported; use a MachineCommand");
  return {
    internalPort: common.take("internal_port"),
    autostop: typeof stop === "boolean" ? (stop ? "stop" : "off") : stop,
    autostart: common.take("auto_start_machines"),
    minMachinesRunning: common.take("min_machines_running"),
    concurrency: concurrency && {
      type: concurrency.take("type"),
      softLimit: concurrency.take("soft_limit"),
      hardLimit: concurrency.take("hard_limit"),
    },
  };
}

function portOf(port: Table<Port>): Inputs {
  const [tls, proxy] = [port.table("tls_options"), port.table("proxy_proto_options")];
  return {
    port: port.take("port"),
    startPort: port.take("start_port"),
    endPort: port.take("end_port"),
    handlers: some(port.take("handlers") ?? []),
    forceHttps: port.take("force_https"),
    httpOptions: httpOptions(port.table("http_options")),
    tlsOptions: tls && tlsOptions(tls),
    proxyProtoOptions: proxy && { version: proxy.take("version") },
  };
}

function httpOptions(options: Table<HttpOptions> | undefined): Inputs | undefined {
  const response = options?.table("response");
  return (
    options && {
      compress: options.take("compress"),
      h2Backend: options.take("h2_backend"),
      idleTimeout: options.take("idle_timeout"),
      headersReadTimeout: options.take("headers_read_timeout"),
      response: response && { headers: response.take("headers"), pristine: response.take("pristine") },
      replayCache: some(
        options.tables("replay_cache").map((cache) => ({
          pathPrefix: cache.take("path_prefix"),
          ttlSeconds: cache.take("ttl_seconds"),
          type: cache.take("type"),
          name: cache.take("name"),
          allowBypass: cache.take("allow_bypass"),
        })),
      ),
    }
  );
}

const tlsOptions = (options: Table<NonNullable<Port["tls_options"]>>): Inputs => ({
  alpn: options.take("alpn"),
  versions: options.take("versions"),
  defaultSelfSigned: options.take("default_self_signed"),
});

/** One of `[checks]`; undefined if it cannot be carried over. */
export function topCheck(deployment: Deployment, check: Table<TopCheck>): Inputs | undefined {
  const type = check.values.type ?? (check.values.path === undefined ? "tcp" : "http");
  if (type === "script") {
    check.remark(undefined, "a check cannot run a script; use an http check");
    return undefined;
  }
  check.take("type");
  check.take("processes");
  const own = { type, port: check.take("port") };
  return type === "tcp" ? { ...own, ...timesOf(deployment, check) } : { ...own, ...httpCheck(deployment, check) };
}

function httpCheck(deployment: Deployment, check: Table<HttpCheck>): Inputs {
  const headers = Object.entries(check.take("headers") ?? {});
  return {
    ...timesOf(deployment, check),
    method: check.take("method")?.toUpperCase(),
    path: check.take("path"),
    protocol: check.take("protocol"),
    tlsServerName: check.take("tls_server_name"),
    tlsSkipVerify: check.take("tls_skip_verify"),
    headers: some(headers.map(([name, value]) => ({ name, values: [value].flat() }))),
  };
}

function timesOf(deployment: Deployment, check: Table<TcpCheck>): Inputs {
  check.remark("restart_limit", "a failing check does not restart a Machine; `restartOnce` does so during a rollout");
  return {
    interval: timeIn(deployment, check, "interval", "ms"),
    timeout: timeIn(deployment, check, "timeout", "ms"),
    gracePeriod: timeIn(deployment, check, "grace_period", "ms"),
  };
}

/** A time of a table. */
export function timeIn<K extends string>(
  deployment: Deployment,
  table: Table<{ readonly [name in K]?: string | number | undefined }>,
  name: K,
  unit: "ms" | "s",
): string | undefined {
  const value = table.take(name);
  const time = value === undefined ? undefined : timeOf(value, unit);
  if (value !== undefined && time === undefined)
    throw deployment.refused([...table.path, name], `${JSON.stringify(value)} is not a time, such as 10s or 1m30s`);
  return time;
}

/** A list that is not empty. */
export const some = <T>(list: readonly T[]): readonly T[] | undefined => (list.length > 0 ? list : undefined);
