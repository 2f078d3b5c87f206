// npm run bench:members: measures a service of several members that share a PostgreSQL database, against a single process without one,
// in the same minutes. All of them, the database and the client run on this computer, and the data is on the disk.
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { logSchema } from "../../service/replication/postgresLog.ts";
import { storeFile } from "../../service/store/database.ts";
import { startPostgres, type TestPostgres } from "../../test/service/replication/postgres.ts";
import { processorMs } from "../processes.ts";
import { ask } from "./ask.ts";
import { start, stop, type Local } from "./command.ts";
import { load, type Load } from "./load.ts";
import { data, folder, median, milliseconds, report, run, say } from "./run.ts";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "5" },
    takeovers: { type: "string", default: "50" },
    machines: { type: "string", default: "100000" },
    /** Only some. */
    only: { type: "string", default: "reads,creates,takeovers,joining" },
    /** Connections of the client that creates; 50 read. */
    clients: { type: "string", default: "200" },
  },
});
const [seconds, rounds, takeovers, machines, clients] = [
  ...[options.seconds, options.rounds, options.takeovers, options.machines, options.clients].map(Number),
] as [number, number, number, number, number];

const only = new Set(options.only.split(","));

const config = {
  image: "registry.example.com/web:v1",
  guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 },
  env: { PORT: "8080" },
  services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
};
const body = JSON.stringify({ config });

/** A running member. */
type Member = Local & { readonly data: string };

/** The members of one service. */
class Members {
  readonly server: TestPostgres;
  readonly #keyFile = join(folder, "key");
  readonly #running = new Set<Member>();
  #started = 0;

  constructor(server: TestPostgres) {
    this.server = server;
    writeFileSync(this.#keyFile, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  }

  /** Starts a member, in a folder that it may have had before. */
  async start(dir = join(folder, `member-${++this.#started}`)): Promise<Member> {
    mkdirSync(dir, { recursive: true });
    const member = { ...(await start(dir, "--store", this.server.url, "--key-file", this.#keyFile)), data: dir };
    this.#running.add(member);
    return member;
  }

  async leader(): Promise<Member> {
    for (;;) {
      for (const one of this.#running) if (await leads(one)) return one;
      await sleep(10);
    }
  }

  async standbys(): Promise<readonly Member[]> {
    const leader = await this.leader();
    return [...this.#running].filter((one) => one !== leader);
  }

  /** Ends a process by a signal. */
  async end(member: Member, signal: NodeJS.Signals): Promise<void> {
    this.#running.delete(member);
    process.kill(member.pid, signal);
    while (isAlive(member.pid)) await sleep(5);
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#running].map((one) => stop(one.data)));
  }

  /** What the database has of the log. */
  async log(): Promise<{ readonly seq: number; readonly bytes: number }> {
    const { rows } = await this.server.query(
      `SELECT coalesce(max(seq), 0)::integer AS seq, coalesce(sum(length(bytes)), 0)::double precision AS bytes FROM ${logSchema}.log`,
    );
    return rows[0] as { seq: number; bytes: number };
  }
}

async function leads({ url }: Local): Promise<boolean> {
  const text = await ask({ url, token: "" }, "/readyz").catch(() => "{}");
  return (JSON.parse(text) as { readonly role?: string }).role === "leader";
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Creates the Machine that is read, and an App for others. Returns the path of the Machine. */
async function prepare(local: Local): Promise<string> {
  for (const name of ["web", "created"]) await ask(local, "/v1/apps", "POST", { name, org_slug: "personal" });
  const { id } = JSON.parse(await ask(local, "/v1/apps/web/machines", "POST", { config })) as { readonly id: string };
  await ask(local, `/v1/apps/web/machines/${id}/wait?state=started`);
  return `/v1/apps/web/machines/${id}`;
}

async function perSecond(wanted: Omit<Load, "seconds">): Promise<number> {
  const { perSecond: found, failures } = await load({ ...wanted, seconds });
  if (failures > 0) throw new Error(`${wanted.url}: ${failures} requests failed`);
  return found;
}

/** Waits until no Machine changes any more: the service continues after the answer to a create. */
async function settled(local: Local): Promise<void> {
  while (/[{,]state="(creating|created|starting)"\} [1-9]/.test(await ask(local, "/metrics"))) await sleep(50);
}

/** Requests per second, and the processor time of all members for each: other programs hardly change the latter. */
interface Figures {
  readonly rate: number;
  readonly micros: number;
}

/** Puts a single process, the leader and a standby in turn under the same load. Returns the medians of each. */
async function inTurn(sides: readonly Local[], measure: (side: Local, at: number) => Promise<number>) {
  const found = sides.map((): Figures[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [at, side] of sides.entries()) {
      const before = sides.map(({ pid }) => processorMs(pid) ?? 0);
      const rate = await measure(side, at);
      const used = sides.map(({ pid }, i) => (processorMs(pid) ?? 0) - (before[i] ?? 0));
      const busy = at === 0 ? (used[0] ?? 0) : used.slice(1).reduce((sum, ms) => sum + ms, 0);
      found[at]?.push({ rate, micros: (busy * 1000) / (rate * seconds) });
    }
  const middle = (of: (one: Figures) => number): number[] => found.map((all) => median(all.map(of)));
  return { rates: middle(({ rate }) => rate), micros: middle(({ micros }) => micros) };
}

/** Reports what a single process, the leader and a standby reached, in this order. */
function compare(what: string, { rates, micros }: Awaited<ReturnType<typeof inTurn>>, aims: readonly string[]): void {
  const [alone = 1, ofAlone = 1] = [rates[0], micros[0]];
  for (const [i, side] of ["a single process", "the leader", "through a standby"].entries()) {
    const [rate = 0, micro = 0] = [rates[i], micros[i]];
    const ratios = i === 0 ? ["", ""] : [rate / alone, micro / ofAlone].map((ratio) => ` (${ratio.toFixed(2)})`);
    report(
      `${what}, ${side}`,
      `${rate}/s${ratios[0]}, ${micro.toFixed(0)} µs of processors${ratios[1]}`,
      aims[i] ?? "",
    );
  }
}

/** A single process, the leader and a standby. */
type Sides = readonly [single: Local, leader: Local, standby: Local];

async function reading(sides: Sides, paths: Readonly<Record<"single" | "members", string>>): Promise<void> {
  const read = ({ url, token }: Local, at: number): Promise<number> =>
    perSecond({ url: `${url}${at === 0 ? paths.single : paths.members}`, token });
  compare("reads", await inTurn(sides, read), ["", "≥ 0.95", "≥ 0.5"]);
}

async function creating(sides: Sides, members: Members): Promise<void> {
  let [created, bytes, entries] = [0, 0, 0];
  const found = await inTurn(sides, async ({ url, token }, at) => {
    const before = await members.log();
    const rate = await perSecond({
      ...{ url: `${url}/v1/apps/created/machines`, token, body },
      ...{ method: "POST", connections: clients },
    });
    await settled(sides[at === 0 ? 0 : 1]);
    if (at === 0) return rate;
    const after = await members.log();
    created += rate * seconds;
    bytes += after.bytes - before.bytes;
    entries += after.seq - before.seq;
    return rate;
  });
  compare("creates", found, ["", "≥ 0.8", ""]);
  const perEntry = `${(created / entries).toFixed(1)} creates in an entry`;
  report("log for each create, until it is started", `${(bytes / created).toFixed(0)} bytes, ${perEntry}`, "");
}

async function rates(members: Members, path: string): Promise<void> {
  const single = await start(data);
  const [leader, [standby]] = [await members.leader(), await members.standbys()];
  if (!standby) throw new Error("there is no standby");
  const sides = [single, leader, standby] as const;
  const paths = { single: await prepare(single), members: path };
  if (only.has("reads")) await reading(sides, paths);
  if (only.has("creates")) await creating(sides, members);
  await stop(data);
}

/** A client of a member that reads and creates in turn. It repeats what had no answer, and knows its longest time without one. */
class Client {
  readonly #member: Member;
  #isEnded = false;
  #last = performance.now();
  #answers = 0;
  #longest = 0;
  readonly #done: Promise<void>;

  constructor(member: Member) {
    this.#member = member;
    this.#done = this.#send();
  }

  async #send(): Promise<void> {
    while (!this.#isEnded) {
      const name = `app-${randomBytes(8).toString("hex")}`;
      const isAnswered = await (
        this.#answers % 2
          ? ask(this.#member, "/v1/apps", "POST", { name, org_slug: "personal" })
          : ask(this.#member, "/v1/apps/web")
      ).then(
        () => true,
        () => false,
      );
      if (!isAnswered) continue;
      const now = performance.now();
      this.#longest = Math.max(this.#longest, now - this.#last);
      this.#last = now;
      this.#answers++;
    }
  }

  /** Resolves after so many further answers. */
  async answers(more: number): Promise<void> {
    const enough = this.#answers + more;
    while (this.#answers < enough) await sleep(5);
  }

  /** Forgets the longest time so far. */
  begin(): void {
    this.#longest = 0;
  }

  async end(): Promise<number> {
    this.#isEnded = true;
    await this.#done;
    return this.#longest;
  }
}

async function takingOver(members: Members, signal: NodeJS.Signals, what: string, floor: string): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < takeovers; round++) {
    const [leader, standbys] = [await members.leader(), await members.standbys()];
    const client = new Client(standbys[round % standbys.length] as Member);
    // At another moment of the lease each time.
    await client.answers(20);
    await sleep(Math.random() * 500);
    client.begin();
    await members.end(leader, signal);
    await members.leader();
    await client.answers(20);
    times.push(await client.end());
    await members.start(leader.data);
  }
  const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const figure = `median ${inSeconds(median(times))}, worst of ${takeovers} ${inSeconds(Math.max(...times))}`;
  report(what, figure, floor);
}

/** Number of the last entry in a copy; 0 if there is none yet. */
function positionIn(dir: string): number {
  try {
    const db = new DatabaseSync(storeFile(dir), { readOnly: true });
    try {
      return Number(db.prepare("SELECT seq FROM copy_position").get()?.["seq"] ?? 0);
    } finally {
      db.close();
    }
  } catch {
    return 0;
  }
}

async function joining(members: Members): Promise<void> {
  const leader = await members.leader();
  const count = async (): Promise<number> => {
    const states = (await ask(leader, "/metrics")).matchAll(/\bstate="[a-z]+"\} (\d+)/g);
    return [...states].reduce((sum, [, number]) => sum + Number(number), 0);
  };
  const { url, token } = leader;
  for (let app = 0; (await count()) < machines; app++) {
    // A region has room for 100,000.
    const filled = JSON.stringify({ config, region: app % 2 ? "ams" : "fra" });
    await ask(leader, "/v1/apps", "POST", { name: `filled-${app}`, org_slug: "personal" });
    const { failures } = await load({
      ...{ url: `${url}/v1/apps/filled-${app}/machines`, token, method: "POST", body: filled },
      ...{ connections: clients, seconds: 2 },
    });
    if (failures > 0) throw new Error(`${failures} creates failed`);
  }
  await settled(leader);
  const dir = join(folder, "new");
  const { seq, bytes } = await members.log();
  const ms = await milliseconds(async () => {
    const started = members.start(dir);
    while (positionIn(dir) < seq) await sleep(20);
    await started;
  });
  const { rows } = await members.server.query(
    `SELECT count(DISTINCT seq)::integer AS count FROM ${logSchema}.snapshot`,
  );
  const { count: snapshots } = rows[0] as { count: number };
  const from = snapshots > 0 ? "from a snapshot" : "from the first entry, without a snapshot";
  report(
    `a new member follows, ${(await count()).toLocaleString("en")} Machines`,
    `${(ms / 1000).toFixed(1)} s, ${from}; ${seq.toLocaleString("en")} entries, ${(bytes / 1e6).toFixed(0)} MB`,
    "≤ 10 s",
  );
}

async function bench(): Promise<void> {
  say(`${cpus().length} × ${cpus()[0]?.model}, Node.js ${process.versions.node}`);
  const server = await startPostgres({ fsync: "on" });
  const members = new Members(server);
  try {
    await members.start();
    await members.start();
    const path = await prepare(await members.leader());
    if (only.has("reads") || only.has("creates")) await rates(members, path);
    await members.start();
    if (only.has("takeovers")) {
      await takingOver(members, "SIGKILL", "without an answer after kill -9", "≤ 3 s");
      await takingOver(members, "SIGTERM", "without an answer during a hand-over", "≤ 0.3 s");
    }
    if (only.has("joining")) await joining(members);
  } finally {
    await members.endAll();
    await server.remove();
  }
}

void run(["what", "figure", "aim"], bench);
