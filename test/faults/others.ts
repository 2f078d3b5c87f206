// Another client, which changes the same objects without the program: it interferes with Machines, and deletes leftovers.
import { addToken } from "../../service/store/tokens.ts";
import { fleetTag } from "../../api/fleetTags.ts";
import { resources, type ResourceName } from "../../provider/registry.ts";
import { operationsById } from "../../service/faults/faults.ts";
import type { Kept } from "../support/modelStack.ts";
import type { Simulation } from "../support/simulation.ts";
import type { Interference } from "./faultPlans.ts";

/** The token of the other client of an organization. */
export const tokenOfOthers = (slug: string): string => `mcs_other-client-of-${slug}`;

/** Milliseconds within which a deleted Machine releases its volume. */
const detachMs = 10_000;

/** The path that deletes an object, from the operation that its type names; undefined if it has none. */
function pathOf(type: ResourceName, id: string): string | undefined {
  const { list, id: format } = resources[type] ?? {};
  if (!list?.deletedBy || !format) return undefined;
  const parts = Object.values(format.parse(id));
  // Each hostname of the programs has one certificate, and would stay without it.
  const deletedBy = list.deletedBy.startsWith("certificates.") ? "certificates.delete" : list.deletedBy;
  const path = operationsById.get(deletedBy)?.path.replaceAll(/\{\w+\}/g, () => parts.shift() ?? "");
  return type === "App" || type === "Machine" ? `${path}?force=true` : path;
}

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

  readonly #slug: string;

  constructor(simulation: Simulation, log: (line: string) => void, slug = "personal") {
    this.#simulation = simulation;
    this.#log = log;
    this.#slug = slug;
  }

  /** Adds its token to the service. */
  async enter(): Promise<void> {
    const { context } = this.#simulation.service.service;
    await context.store.write(() => {
      addToken(context.store, tokenOfOthers(this.#slug), { slug: this.#slug, expiresAt: null }, context.clock.now());
    });
  }

  /** Creates a Machine with a name that a fleet could give. */
  async enterApp({ id }: Kept): Promise<void> {
    const [app = "", fleet = ""] = id.split("/");
    const name = `${fleet}-ams-${9 + this.#strangers.length}`;
    const body = { name, region: "ams", config: { image: "registry.example.com/theirs:1" } };
    const made = await this.#ask("POST", `/v1/apps/${app}/machines`, body);
    if (made.statusCode === 200)
      this.#strangers.push({ line: `Machine ${app}/${made.json<{ id: string }>().id}`, app });
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
      const [type, id] = line.split(" ") as [ResourceName, string];
      const [app = "", fleet = ""] = id.split("/");
      for (const member of type === "Fleet" ? membersOf(app, fleet) : [])
        await this.#ask("DELETE", `/v1/apps/${app}/machines/${member}?force=true`);
      if (type === "Fleet") deleted.push(line);
      const path = isWhole || type === "Machine" || type === "Volume" ? pathOf(type, id) : undefined;
      if (type === "Fleet" || path === undefined) continue;
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
      headers: { authorization: `Bearer ${tokenOfOthers(this.#slug)}` },
      ...(payload ? { payload } : {}),
    });
    this.#log(`    another client: ${method} ${url} ${answer.statusCode}`);
    return answer;
  }
}
