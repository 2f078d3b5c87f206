// Another client, which changes the same objects without the program: it interferes with Machines, and deletes leftovers.
import { addToken } from "../../service/store/tokens.ts";
import { fleetTag } from "../../api/fleetTags.ts";
import type { Kept } from "../support/modelStack.ts";
import type { Simulation } from "../support/simulation.ts";
import type { Interference } from "./faultPlans.ts";

const token = "mcs_other-client";

/** Milliseconds within which a deleted Machine releases its volume. */
const detachMs = 10_000;

/** Objects that are deleted by the path of their name; for Machines and volumes the line lacks the App. */
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

/** How often a program is killed until its Machine has failed: one more than the default number of restarts. */
const killsUntilFailed = 11;

/** Milliseconds until a killed program runs again. */
const restartMs = 1000;

/** A Machine of others, and the App that it is in. */
interface Stranger {
  readonly line: string;
  readonly app: string;
}

/** A client with its own token. */
export class OtherClient {
  readonly #simulation: Simulation;
  readonly #log: (line: string) => void;
  /** The Machines that it has created for itself, and not deleted. */
  #strangers: Stranger[] = [];
  #cancelled: (() => void)[] = [];

  constructor(simulation: Simulation, log: (line: string) => void) {
    this.#simulation = simulation;
    this.#log = log;
  }

  /** Adds its token to the service. */
  async enter(): Promise<void> {
    const { context } = this.#simulation.service.service;
    await context.store.write(() => {
      addToken(context.store, token, { slug: "personal", expiresAt: null }, context.clock.now());
    });
  }

  /** Creates a Machine with a name that a fleet could give. */
  async enterApp({ id }: Kept): Promise<void> {
    const [app = "", fleet = ""] = id.split("/");
    const name = `${fleet}-ams-${9 + this.#strangers.length}`;
    const body = { name, region: "ams", config: { image: "registry.example.com/theirs:1" } };
    const made = await this.#ask("POST", `/v1/apps/${app}/machines`, body);
    if (made.statusCode === 200) this.#strangers.push({ line: `Machine ${made.json<{ id: string }>().id}`, app });
  }

  /** The lines of the Machines that it has created for itself, as long as their App exists. */
  strangers(): readonly string[] {
    const { context } = this.#simulation.service.service;
    const isThere = ({ app }: Stranger): boolean =>
      context.store.get("SELECT 1 FROM apps WHERE name = ? AND deleting = 0", app) !== undefined;
    this.#strangers = this.#strangers.filter(isThere);
    return this.#strangers.map(({ line }) => line);
  }

  /** Ends what was to happen during a run. */
  runEnded(): void {
    for (const cancel of this.#cancelled) cancel();
    this.#cancelled = [];
  }

  /** Interferes with a Machine. */
  async interfere({ what, seconds }: Interference, { id }: Kept): Promise<void> {
    const [app = "", machine = ""] = id.split("/");
    const path = `/v1/apps/${app}/machines/${machine}`;
    if (what === "lease") await this.#ask("POST", `${path}/lease`, { ttl: seconds, description: "mine" });
    if (what === "stop") await this.#ask("POST", `${path}/stop`, {});
    if (what === "destroy") await this.#ask("DELETE", `${path}?force=true`);
    const kill = () => this.#ask("POST", `${path}/signal`, { signal: "SIGKILL" });
    if (what === "kill") await kill();
    if (what === "killLater")
      this.#cancelled.push(this.#simulation.time.after(seconds * 100, () => void kill().catch(() => undefined)));
    for (const _ of what === "fail" ? Array<void>(killsUntilFailed) : []) {
      await kill();
      await this.#simulation.wait(restartMs);
    }
    if (what === "config") {
      const live = await this.#ask("GET", path);
      if (live.statusCode !== 200) return;
      const { config } = live.json<{ config: { env?: object } }>();
      await this.#ask("POST", path, { config: { ...config, env: { ...config.env, OTHERS: "1" } } });
    }
  }

  /** Deletes Machines and volumes, or everything if `isWhole`; returns the deleted lines. */
  async clear(lines: readonly string[], isWhole: boolean): Promise<string[]> {
    const { context } = this.#simulation.service.service;
    const appOf = (table: string, id: string): string =>
      context.store.get<{ name: string }>(
        `SELECT a.name FROM ${table} x JOIN apps a ON a.id = x.app WHERE x.id = ?`,
        id,
      )?.name ?? "";
    const membersOf = (app: string, fleet: string): string[] =>
      context.store
        .all<{ id: string }>(
          `SELECT m.id FROM machines m JOIN apps a ON a.id = m.app
          WHERE a.name = ? AND m.metadata ->> '${fleetTag}' = ? AND m.destroyed_at IS NULL AND m.state <> 'destroying'`,
          ...[app, fleet],
        )
        .map(({ id }) => id);
    const deleted: string[] = [];
    const isMachine = (line: string) => /^(Machine|Fleet) /.test(line);
    for (const line of [...lines].sort((a, b) => Number(isMachine(b)) - Number(isMachine(a)))) {
      // A volume is released a moment after its Machine is gone.
      if (!isMachine(line) && deleted.some(isMachine)) await this.#simulation.wait(detachMs);
      const [type = "", id = ""] = line.split(" ");
      const [holder = "", name = "", more = ""] = id.split("/");
      for (const member of type === "Fleet" ? membersOf(holder, name) : [])
        await this.#ask("DELETE", `/v1/apps/${holder}/machines/${member}?force=true`);
      if (type === "Fleet") deleted.push(line);
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
      this.#strangers = this.#strangers.filter((stranger) => stranger.line !== line);
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
    this.#log(`    another client: ${method} ${url} ${answer.statusCode}`);
    return answer;
  }
}
