// Somebody else, who works on the same things without the program: meddling with Machines, and clearing up by hand.
import { addToken } from "../../service/store/tokens.ts";
import type { Kept } from "../support/modelStack.ts";
import type { Simulation } from "../support/simulation.ts";
import type { Meddling } from "./faultPlans.ts";

const token = "mcs_somebody-else";

/** Milliseconds in which a Machine that was deleted lets go of its volume. */
const letGoWithin = 10_000;

/** What is deleted by the path of its name alone; Machines and volumes are in an App that the line does not tell. */
const paths: Readonly<Record<string, (holder: string, name: string, more: string) => string>> = {
  App: (app) => `/v1/apps/${app}?force=true`,
  SecretKey: (app, name) => `/v1/apps/${app}/secretkeys/${name}`,
  AcmeCertificate: (app, host) => `/v1/apps/${app}/certificates/${host}/acme`,
  CustomCertificate: (app, host) => `/v1/apps/${app}/certificates/${host}/custom`,
  IpAssignment: (app, ip) => `/v1/apps/${app}/ip_assignments/${ip}`,
  PostgresCluster: (cluster) => `/v1/postgres/${cluster}`,
  PostgresDatabase: (cluster, name) => `/v1/postgres/${cluster}/databases/${name}`,
  PostgresUser: (cluster, name) => `/v1/postgres/${cluster}/users/${name}`,
  PostgresExtension: (cluster, database, name) => `/v1/postgres/${cluster}/databases/${database}/extensions/${name}`,
};

/** Somebody with a token of his own. */
export class Somebody {
  readonly #simulation: Simulation;
  readonly #log: (line: string) => void;

  constructor(simulation: Simulation, log: (line: string) => void) {
    this.#simulation = simulation;
    this.#log = log;
  }

  /** Gives him his token. */
  async enter(): Promise<void> {
    const { context } = this.#simulation.service.service;
    await context.store.write(() => {
      addToken(context.store, token, { slug: "personal", expiresAt: null }, context.clock.now());
    });
  }

  /** Does something to a Machine. */
  async meddle({ what, seconds }: Meddling, { id }: Kept): Promise<void> {
    const [app = "", machine = ""] = id.split("/");
    const path = `/v1/apps/${app}/machines/${machine}`;
    if (what === "lease") await this.#ask("POST", `${path}/lease`, { ttl: seconds, description: "mine" });
    if (what === "stop") await this.#ask("POST", `${path}/stop`, {});
    if (what === "destroy") await this.#ask("DELETE", `${path}?force=true`);
    if (what === "config") {
      const live = await this.#ask("GET", path);
      if (live.statusCode !== 200) return;
      const { config } = live.json<{ config: { env?: object } }>();
      await this.#ask("POST", path, { config: { ...config, env: { ...config.env, OTHERS: "1" } } });
    }
  }

  /** Deletes Machines and volumes by hand, or whatever there is; answers what that was. */
  async clear(lines: readonly string[], isWhole: boolean): Promise<string[]> {
    const { context } = this.#simulation.service.service;
    const appOf = (table: string, id: string): string =>
      context.store.get<{ name: string }>(
        `SELECT a.name FROM ${table} x JOIN apps a ON a.id = x.app WHERE x.id = ?`,
        id,
      )?.name ?? "";
    const deleted: string[] = [];
    const isMachine = (line: string) => line.startsWith("Machine ");
    for (const line of [...lines].sort((a, b) => Number(isMachine(b)) - Number(isMachine(a)))) {
      // A volume is let go a moment after its Machine is gone.
      if (!isMachine(line) && deleted.some(isMachine)) await this.#simulation.wait(letGoWithin);
      const [type = "", id = ""] = line.split(" ");
      const [holder = "", name = "", more = ""] = id.split("/");
      const path =
        type === "Machine"
          ? `/v1/apps/${appOf("machines", id)}/machines/${id}?force=true`
          : type === "Volume"
            ? `/v1/apps/${appOf("volumes", id)}/volumes/${id}`
            : isWhole
              ? paths[type]?.(holder, name, more)
              : undefined;
      if (path === undefined) continue;
      await this.#ask("DELETE", path);
      deleted.push(line);
    }
    return deleted;
  }

  async #ask(method: "GET" | "POST" | "DELETE", url: string, payload?: object) {
    const answer = await this.#simulation.service.service.app.inject({
      method,
      url,
      headers: { authorization: `Bearer ${token}` },
      ...(payload ? { payload } : {}),
    });
    this.#log(`    somebody else: ${method} ${url} ${answer.statusCode}`);
    return answer;
  }
}
