// A service with the Docker runtime, for tests with the real CLI.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rootFile } from "../../service/runtime/localAuthority.ts";
import type { ServiceOptions } from "../../service/index.ts";
import type { ProxyPorts } from "../../service/proxy/proxy.ts";
import { dockerRuntime, machinesReach } from "../../service/runtime/docker/index.ts";
import { embeddedPostgres } from "../../service/runtime/postgres/index.ts";
import { send } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";
import { removeOf } from "./cleaning.ts";
import { fetchFrom, type Got } from "./requests.ts";

/** A service on the engine. */
export interface Real {
  readonly service: TestService;
  /** The proxy's port for HTTP. */
  readonly port: number;
  /** Sends a request to an App by HTTPS, and returns the answer. */
  fetchSecure(app: string, path: string): Promise<Got>;
  /** Runs a command in a Machine, and returns its output. */
  exec(app: string, machine: string, command: readonly string[], stdin?: string): Promise<string>;
  readonly data: string;
  /** Identifies its containers, networks and volumes. */
  readonly dataId: string;
  /** Ends it, and removes what it has left in the engine. */
  end(): Promise<void>;
}

/** Further engines of a service. */
export interface RealOptions extends Pick<ServiceOptions, "issuer" | "dns" | "console"> {
  /** Whether Postgres clusters are real servers. */
  readonly postgres?: boolean;
  readonly ports?: ProxyPorts;
}

/** Starts a service on the engine of DOCKER_HOST, and its proxy. */
export async function startReal({
  postgres = false,
  ports: wanted = { http: 0, https: 0 },
  ...options
}: RealOptions = {}): Promise<Real> {
  const data = mkdtempSync(join(tmpdir(), "machines-real-"));
  const service = await startService({
    ...{ data, runtime: await dockerRuntime(), ...options },
    ...(postgres ? { postgres: await embeddedPostgres({ data, machinesReach: await machinesReach() }) } : {}),
  });
  const ports = await service.service.proxy?.listen(wanted);
  const { dataId } = service.service.context;
  return {
    service,
    port: ports?.http ?? 0,
    fetchSecure: (app, path) => fetchFrom(ports?.https ?? 0, path, { app, ca: readFileSync(rootFile(data), "utf8") }),
    async exec(app, machine, command, stdin = "") {
      const path = `/v1/apps/${app}/machines/${machine}/exec`;
      return (await send<{ stdout: string }>(service, "POST", path, { command, stdin })).stdout;
    },
    data,
    dataId,
    async end() {
      await service.close();
      await removeOf(dataId);
      rmSync(data, { recursive: true, force: true });
    },
  };
}
