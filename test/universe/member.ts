// A member of the service in simulated time: the product's own Membership, LeaderLog and service, on a disk of its own. Its process
// may be killed, paused and cut off; a supervisor starts the next one on the same disk.
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createService, seededRandom, type Clock, type Service } from "../../service/index.ts";
import { LeaderLog } from "../../service/replication/leaderLog.ts";
import { LogUnavailable, type Log } from "../../service/replication/log.ts";
import type { Timing } from "../../service/replication/member.ts";
import { Membership } from "../../service/replication/membership.ts";
import { keepLog } from "../../service/replication/snapshots.ts";
import { storeFile } from "../../service/store/database.ts";
import { MemberCopy, schemaOfCopies, snapshotOf } from "../../service/store/memberCopy.ts";
import type { Sent } from "../../provider/client/transport.ts";
import { remoteLog } from "../support/remoteLog.ts";
import { newFolder } from "../support/simulation.ts";
import { plantInRequest, plantInStore, secondRequest } from "./bugs.ts";
import type { Peer, Reply, Surroundings } from "./surroundings.ts";

/** Slower than usual, because every look at the log takes a moment of the computer that simulates hours of them. */
const timing: Timing = { leaseMs: 4000, renewMs: 1000, lookMs: 400, retryMs: 200 };
/** Milliseconds after which a supervisor starts the next process. */
const restartMs = 500;
/** Milliseconds in which requests wait for a leader. */
const patienceMs = 5000;
const retryMs = 50;
/** Milliseconds that requests may take after the end has begun. */
const closingMs = 3000;
const keepEveryMs = 10_000;
/** Small, so that runs of a minute have snapshots. */
const snapshotBytes = 24 * 1024;
const keepMs = 5000;

const schema = schemaOfCopies();

/** The disk of a member that has not begun yet: made once, because the tables take longer than everything else at a start. */
const emptyDisk = newFolder();
process.once("exit", () => rmSync(emptyDisk, { recursive: true, force: true }));
new MemberCopy(storeFile(emptyDisk)).release();
// Members have the same key.
writeFileSync(join(emptyDisk, "key"), `${Buffer.alloc(32, 7).toString("base64")}\n`);

/** The disk of a member, and the process that uses it now. */
export class Seat {
  readonly address: string;
  readonly folder: string;
  readonly world: Surroundings;
  process: MemberProcess;
  #started = 0;

  constructor(world: Surroundings, index: number) {
    this.world = world;
    this.address = `http://member-${index}`;
    this.folder = join(world.folder, `member-${index}`);
    cpSync(emptyDisk, this.folder, { recursive: true });
    this.process = new MemberProcess(this, `${index}.${++this.#started}`);
  }

  async #begin(left: Promise<void>): Promise<void> {
    await left;
    this.process = new MemberProcess(this, `${this.address.at(-1)}.${++this.#started}`);
  }

  /** Starts the next process, once the one before has left the disk. */
  restart(left: Promise<void>): void {
    const { world } = this;
    world.time.after(restartMs, () => {
      if (world.isOver) return;
      void this.#begin(world.activity.busy(left));
    });
  }
}

/** One process. */
export class MemberProcess implements Peer {
  readonly seat: Seat;
  readonly id: string;
  readonly #world: Surroundings;
  readonly #copy: MemberCopy;
  readonly #membership: Membership;
  readonly died: Promise<"lost">;
  #die: () => void = () => undefined;
  #left: Promise<void> | undefined;
  #pausedUntil = 0;
  #cutUntil = 0;
  #answering = 0;
  #idle: (() => void)[] = [];
  #isDraining = false;
  isDead = false;
  /** What it answers with while it leads. */
  service: Service | undefined;

  constructor(seat: Seat, id: string) {
    const { world } = seat;
    this.seat = seat;
    this.id = id;
    this.#world = world;
    this.died = new Promise((resolve) => (this.#die = () => resolve("lost")));
    this.#copy = new MemberCopy(storeFile(seat.folder));
    const log = this.#remote(world.log);
    const broken = world.brokenLog(log);
    this.#membership = new Membership({
      ...{ log: broken, copy: world.brokenCopy(this.#copy), timing },
      me: { id, address: seat.address },
      now: () => world.time.now() - this.#stood,
      after: (ms, run) => void this.after(ms, run),
      lead: (epoch) => this.#lead(epoch, broken),
      drain: () => this.#drain(),
      end: () => this.kill(),
      changed: ({ role }) => {
        if (role === "ended" && !this.isDead) world.note(`member ${id} ends`);
      },
      failed: (error) => world.fail(error),
    });
    this.#keepOften(log);
  }

  /** How long its clock stood still while it waited for answers, by a planted bug. */
  #stood = 0;

  get role(): string {
    return this.isDead ? "ended" : this.#membership.state.role;
  }

  /** Runs when the process is not paused, unless it has died. */
  after(ms: number, run: () => void): () => void {
    const { time } = this.#world;
    const due = (): void => {
      if (this.isDead) return;
      const left = this.#pausedUntil - time.now();
      if (left > 0) cancel = time.after(left, due);
      else run();
    };
    let cancel = time.after(ms, due);
    return () => cancel();
  }

  /** Runs as soon as the process is not paused; never if it has died. */
  #whenAwake(run: () => void): void {
    if (!this.isDead && this.#pausedUntil <= this.#world.time.now()) run();
    else this.after(0, run);
  }

  /** Resolves when the process is not paused; never if it has died. */
  awake(): Promise<void> {
    return new Promise((resolve) => this.#whenAwake(resolve));
  }

  pause(ms: number): void {
    this.#pausedUntil = this.#world.time.now() + ms;
  }

  /** Nothing reaches it, and it reaches nothing. */
  cut(ms: number): void {
    this.#cutUntil = this.#world.time.now() + ms;
  }

  heal(): void {
    this.#pausedUntil = this.#cutUntil = 0;
  }

  get isCut(): boolean {
    return this.#cutUntil > this.#world.time.now();
  }

  stop(): void {
    this.after(0, () => this.#membership.stop());
  }

  /** Ends in the middle of whatever it does. */
  kill(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.#die();
    this.#left = this.#leave();
    this.seat.restart(this.#left);
  }

  /** Releases what a process has; nothing that it does now has an effect, because its log and its clock are gone. */
  async #leave(): Promise<void> {
    try {
      if (this.service) await this.service.close();
      else if (this.role !== "leading") this.#copy.release();
    } catch {
      // It was closed already, or could not write any more.
    }
  }

  /** Resolves when the process has left its disk. */
  async end(): Promise<void> {
    this.isDead = true;
    this.#die();
    await (this.#left ??= this.#leave());
  }

  #lead(epoch: number, log: Pick<Log, "append" | "end">): void {
    const { world, folder } = { world: this.#world, folder: this.seat.folder };
    this.#copy.close();
    plantInStore(storeFile(folder), world.bug);
    const leading = {
      ...{ log, epoch },
      pause: () => new Promise<void>((resolve) => void this.after(timing.retryMs, resolve)),
      lost: () => this.#membership.lost(),
      unsure: () => (world.bug === "a leader reads without a lease" ? undefined : this.#membership.unsure),
    };
    const { time } = world;
    const clock: Clock = {
      now: () => time.now(),
      elapsed: () => time.now(),
      after: (ms, run) => this.after(ms, run),
      onJump: () => () => {},
      follow() {},
    };
    this.service = createService({
      data: folder,
      clock,
      delays: "believable",
      random: seededRandom(`${world.seed}/${this.id}`),
      strict: true,
      audit: true,
      history: "off",
      console: world.hasConsole ? "write" : "off",
      log: { write: (line: string) => this.#logged(line) },
      onRequest: (seen) => world.answered(seen),
      leading: {
        log: (db) => world.brokenGroupLog(new LeaderLog(db, schema, leading)),
        lock: { release() {} },
        run: String(epoch),
      },
    });
    world.leads(this, epoch);
  }

  #logged(line: string): void {
    if (!this.isDead && line.startsWith('{"level":50')) this.#world.mistakes.push(line);
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    const { service } = this;
    if (!service) return;
    service.context.waits.close();
    // Until requests that have begun are answered, time must pass.
    await this.#whenIdle();
    await this.#world.activity.busy(service.close());
  }

  #whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#answering === 0 || this.isDead) return resolve();
      this.#idle.push(resolve);
      this.after(closingMs, resolve);
    });
  }

  async take(sent: Sent): Promise<Reply> {
    if (this.isCut) return "lost";
    return Promise.race([this.died, this.awake().then(() => this.#take(sent))]);
  }

  get answers(): boolean {
    return this.service !== undefined && this.role === "leading" && !this.isDead && !this.#isDraining;
  }

  async #take(sent: Sent): Promise<Reply> {
    const { time } = this.#world;
    for (const until = time.now() + patienceMs; time.now() < until;) {
      if (this.answers) return this.#answer(sent);
      const leader = this.#leader();
      if (leader) {
        await this.#hop();
        const reply = leader.isDead || leader.isCut || this.isCut ? undefined : await leader.take(sent);
        await this.#hop();
        if (reply === "lost" && sent.method !== "GET") return "lost";
        if (reply !== undefined && reply !== "lost") return reply;
      }
      await new Promise<void>((resolve) => void this.after(retryMs, resolve));
    }
    const text = JSON.stringify({ error: "no member of the service leads; nothing was changed, try again" });
    return { status: 503, headers: { "content-type": "application/json", "retry-after": "1" }, text };
  }

  /** The leader, as this member knows it. */
  #leader(): Peer | undefined {
    const { leader } = this.#membership.state;
    const found = this.#world.peerAt(leader?.address);
    return found === this || !found?.answers ? undefined : found;
  }

  #hop(): Promise<void> {
    return new Promise((resolve) => void this.after(this.#world.fate.delay(), resolve));
  }

  async #answer(sent: Sent): Promise<Reply> {
    const { service } = this;
    if (!service) return "lost";
    const planted = plantInRequest(sent, this.#world.bug);
    if (planted.reply) return planted.reply;
    this.#answering++;
    try {
      const second = secondRequest(sent, this.#world.bug);
      if (second) await service.app.inject(injected(second));
      const { statusCode, headers: given, payload } = await service.app.inject(injected(planted.sent));
      if (this.#pausedUntil <= this.#world.time.now())
        this.#world.replied(this.#membership.state.epoch, sent, statusCode);
      const texts = Object.entries(given).map(([name, value]) => [name, String(value)]);
      await this.awake();
      return { status: statusCode, headers: Object.fromEntries(texts) as Record<string, string>, text: payload };
    } finally {
      if (--this.#answering === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  #keepOften(log: Log): void {
    const keep = async (): Promise<void> => {
      if (this.#world.bug === "the log is trimmed too early") await log.trim((await log.end()).seq);
      else if (this.service === undefined && this.role === "following")
        await keepLog(log, () => this.#world.activity.busy(snapshotOf(storeFile(this.seat.folder))), {
          ...{ everyBytes: snapshotBytes, keepMs },
        });
    };
    const again = (): void => {
      const failed = (error: unknown): void => {
        if (!(error instanceof LogUnavailable)) this.#world.fail(error);
      };
      this.after(keepEveryMs, () => void keep().catch(failed).then(again));
    };
    again();
  }

  /** The log over a network. */
  #remote(log: Log): Log {
    const { time, fate, bug } = this.#world;
    return remoteLog(log, {
      now: () => time.now(),
      after: (ms, run) => time.after(ms, run),
      awake: (run) => this.#whenAwake(run),
      isCut: () => this.isCut || this.isDead,
      delay: () => fate.logDelay(),
      strikes: (what) => fate.strikes(`log ${what}`),
      waited: (ms) => {
        if (bug === "a leader counts its lease from after the request") this.#stood += ms;
      },
    });
  }
}

const injected = ({ method, url, headers, body }: Sent) => {
  const { pathname, search } = new URL(url);
  return {
    ...{ method: method as "GET", url: pathname + search, headers },
    ...(body === undefined ? {} : { payload: body }),
  };
};
