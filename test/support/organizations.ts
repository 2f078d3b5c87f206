// Random organizations, created through the API as a person would have, for tests of `pulumi-machines import`.
import { seededRandom } from "../../service/index.ts";
import { makeBackup, makeCluster, send } from "./around.ts";
import { makeCertificate } from "./certificates.ts";
import type { TestService } from "./startService.ts";

/** What was created. */
export interface Organization {
  /** The number of objects. */
  readonly size: number;
  /** Texts that no file and no output may contain. */
  readonly secrets: readonly string[];
}

/** Draws from a seed. */
export interface Dice {
  below(limit: number): number;
  one<T>(of: readonly [T, ...T[]]): T;
  chance(percent: number): boolean;
}

/** Dice that roll the same for the same seed. */
export function diceOf(seed: string): Dice {
  const random = seededRandom(seed);
  const below = (limit: number): number => Buffer.from(random(4)).readUInt32BE() % limit;
  return {
    below,
    one: (of) => of[below(of.length)] ?? of[0],
    chance: (percent) => below(100) < percent,
  };
}

const regions = ["ams", "fra", "lhr", "iad", "syd"] as const;

/** Creates an organization with about `size` objects. */
export async function makeOrganization(service: TestService, seed: string, size: number): Promise<Organization> {
  const made = new Maker(service, diceOf(seed), seed);
  await made.cluster(1);
  for (let number = 1; made.size < size; number++) await made.app(number);
  return { size: made.size, secrets: made.secrets };
}

class Maker {
  size = 0;
  readonly secrets: string[] = [];
  readonly #service: TestService;
  readonly #dice: Dice;
  readonly #seed: string;
  #cluster = "";

  constructor(service: TestService, dice: Dice, seed: string) {
    this.#service = service;
    this.#dice = dice;
    this.#seed = seed;
  }

  async #post<T = { id: string }>(path: string, body: unknown): Promise<T> {
    this.size++;
    return send<T>(this.#service, "POST", `/v1${path}`, body);
  }

  #secret(): string {
    const text = `hush-${this.#seed}-${this.secrets.length}-Zq7`;
    this.secrets.push(text);
    return text;
  }

  async cluster(number: number): Promise<void> {
    const id = await makeCluster(this.#service, `main-${number}`, { pg_major_version: "17", postgis_enabled: true });
    this.size++;
    this.#cluster = id;
    await this.#post(`/postgres/${id}/databases`, { name: "orders" });
    await makeBackup(this.#service, id);
    await this.#post(`/postgres/${id}/users`, { username: "reporting", role: "reader" });
    this.size++;
    await send(this.#service, "POST", `/v1/postgres/${id}/databases/orders/extensions`, { name: "vector" });
  }

  async app(number: number): Promise<void> {
    const dice = this.#dice;
    const name = `${dice.one(["shop", "blog", "api", "2nd-line", "class"])}-${this.#seed}-${number}`;
    await this.#post("/apps", { name, org_slug: "personal" });
    const image = `registry.example.com/${dice.one(["web", "worker", "proxy"])}:${1 + dice.below(3)}.0`;
    const secrets = dice.below(4);
    for (let i = 0; i < secrets; i++)
      await this.#post(`/apps/${name}/secrets/${["DATABASE_URL", "TOKEN", "LOG_LEVEL", "apiKey"][i] ?? "X"}`, {
        value: this.#secret(),
      });
    if (dice.chance(40)) await this.#post(`/apps/${name}/secretkeys/SESSIONS/generate`, { type: "hs256" });
    if (dice.chance(60))
      await this.#post(`/apps/${name}/ip_assignments`, { type: dice.one(["v4", "v6", "shared_v4"]) });
    if (dice.chance(15)) await this.#post(`/apps/${name}/ip_assignments`, { type: "egress_pair", region: "fra" });
    if (dice.chance(40)) await this.#post(`/apps/${name}/certificates/acme`, { hostname: `www.${name}.example.com` });
    if (dice.chance(20)) await this.#certificate(name);
    if (dice.chance(30)) await this.#post(`/postgres/${this.#cluster}/attachments`, { app_name: name });
    if (dice.chance(50)) await this.#replicas(name, image);
    if (dice.chance(50)) await this.#databases(name, image);
    if (dice.chance(60)) await this.#odd(name);
    if (dice.chance(25)) await this.#fleet(name, image);
    if (dice.chance(30)) await this.#spare(name);
  }

  /** A volume that no Machine mounts, with a snapshot. */
  async #spare(app: string): Promise<void> {
    const { id } = await this.#post(`/apps/${app}/volumes`, {
      ...{ name: "spare", region: "ams", size_gb: 2, encrypted: false },
    });
    await send(this.#service, "POST", `/v1/apps/${app}/volumes/${id}/snapshots`);
  }

  async #certificate(app: string): Promise<void> {
    const host = `shop.${app}.example.com`;
    const { fullchain, private_key } = makeCertificate({ hosts: [host] });
    this.secrets.push(private_key.split("\n")[1] ?? "");
    await this.#post(`/apps/${app}/certificates/custom`, { hostname: host, fullchain, private_key });
  }

  /** Equal Machines in several regions. */
  async #replicas(app: string, image: string): Promise<void> {
    const count = 2 + this.#dice.below(3);
    const withPassword = this.#dice.chance(40);
    const password = withPassword ? this.#secret() : "";
    for (const region of regions.slice(0, count))
      await this.#post(`/apps/${app}/machines`, {
        name: `web-${region}`,
        region,
        config: {
          image,
          env: { PORT: "8080", "A.B": "x", ...(withPassword ? { DB_PASSWORD: password } : {}) },
          guest: { cpu_kind: "shared", cpus: 2, memory_mb: 512 },
          services: [
            {
              protocol: "tcp",
              internal_port: 8080,
              ports: [{ port: 443, handlers: ["tls", "http"] }],
              autostop: "stop",
              autostart: true,
            },
          ],
          checks: { alive: { type: "http", port: 8080, path: "/", interval: "15s", timeout: "2s" } },
        },
      });
  }

  /** Machines with a volume each. */
  async #databases(app: string, image: string): Promise<void> {
    const count = 1 + this.#dice.below(3);
    for (let i = 1; i <= count; i++) {
      const region = regions[i] ?? "ams";
      const { id } = await this.#post(`/apps/${app}/volumes`, {
        name: "data",
        region,
        size_gb: 1 + this.#dice.below(2),
        snapshot_retention: 7,
      });
      await this.#post(`/apps/${app}/machines`, {
        name: `db-${i}`,
        region,
        config: { image, mounts: [{ volume: id, path: "/data" }], restart: { policy: "on-failure", max_retries: 3 } },
      });
    }
  }

  /** A Machine like no other. */
  async #odd(app: string): Promise<void> {
    const dice = this.#dice;
    await this.#post(`/apps/${app}/machines`, {
      ...(dice.chance(50) ? { name: "odd" } : {}),
      region: dice.one(regions),
      skip_launch: dice.chance(30),
      config: {
        image: `registry.example.com/odd:${dice.below(9)}`,
        env: { MESSAGE: 'It\'s "${HOME}" $$ \\ `x`\nnext', EMPTY: "" },
        init: { cmd: ["sh", "-c", "echo $HOME && sleep 1"], exec: ["/bin/run"] },
        files: [{ guest_path: "/etc/motd", raw_value: Buffer.from("hello").toString("base64") }],
        metadata: { team: "platform" },
        stop_config: { timeout: "30s", signal: "SIGTERM" },
        processes: [{ cmd: ["worker"], env: { MODE: "a" } }],
        dns: { skip_registration: true },
        auto_destroy: false,
      },
    });
  }

  /** Machines as a Fleet leaves them. */
  async #fleet(app: string, image: string): Promise<void> {
    for (const region of ["ams", "fra"])
      await this.#post(`/apps/${app}/machines`, {
        name: `crew-${region}-1`,
        region,
        config: {
          image,
          metadata: { "pulumi-fleet": "crew", "pulumi-fleet-region": region, "pulumi-fleet-phase": "serving" },
        },
      });
  }
}
