// Several members of a service, their log and their clients in virtual time. A seed decides on everything: delays, lost requests and
// answers, crashes, pauses and cuts. What the members do is the product's own code: Membership, Appender and catchUp.
import { Appender } from "../../../service/replication/appender.ts";
import { catchUp, type Copy } from "../../../service/replication/catchUp.ts";
import { DoesNotApply, type Position } from "../../../service/replication/changes.ts";
import type { Entry, Log, Logged, Snapshot } from "../../../service/replication/log.ts";
import { usualTiming } from "../../../service/replication/member.ts";
import { Membership } from "../../../service/replication/membership.ts";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { instead } from "../../support/instead.ts";
import { randomOf } from "../../support/random.ts";
import { remoteLog } from "../../support/remoteLog.ts";

/** Mistakes that the simulation must find. */
export const bugs = [
  "appends without a fence",
  "answers before the append",
  "counts its lease from after the request",
  "reads without a lease",
  "applies an entry twice",
  "skips an entry",
  "keeps unacknowledged changes",
  "trims too early",
  "leads where it may not",
  "trusts the clock of the log",
] as const;
export type Bug = (typeof bugs)[number];

/** Virtual time: events in order. */
class Time {
  now = 0;
  #events: { readonly at: number; readonly order: number; readonly run: () => void }[] = [];
  #order = 0;

  /** Returns how to prevent it. */
  after(ms: number, run: () => void): () => void {
    const event = { at: this.now + ms, order: this.#order++, run };
    let at = this.#events.length;
    while (at > 0 && (this.#events[at - 1]?.at ?? 0) > event.at) at--;
    this.#events.splice(at, 0, event);
    return () => {
      const found = this.#events.indexOf(event);
      if (found >= 0) this.#events.splice(found, 1);
    };
  }

  async until(end: number): Promise<void> {
    for (let next = this.#events[0]; next !== undefined && next.at <= end; next = this.#events[0]) {
      this.#events.shift();
      this.now = next.at;
      next.run();
      // Whatever follows from it without time.
      await new Promise(setImmediate);
    }
    this.now = end;
  }
}

/** A copy as a list of values. It is on the disk: it survives the process. */
class ListCopy implements Copy {
  position: Position = { epoch: 0, seq: 0 };
  values: string[] = [];
  readonly #bug: Bug | undefined;
  /** How often it was replaced with changes in it. */
  replaced = 0;

  constructor(bug: Bug | undefined) {
    this.#bug = bug;
  }

  async apply(entries: readonly Logged[]): Promise<void> {
    for (const entry of entries) this.#apply(entry);
  }

  #apply({ seq, epoch, bytes }: Logged): void {
    if (seq !== this.position.seq + 1) throw new DoesNotApply(`entry ${seq} after ${this.position.seq}`);
    this.position = { epoch, seq };
    const times = this.#bug === "applies an entry twice" && seq % 7 === 0 ? 2 : 1;
    if (this.#bug === "skips an entry" && seq % 7 === 0) return;
    for (let i = 0; i < times; i++) this.values.push(Buffer.from(bytes).toString());
  }

  async replace(snapshot: Snapshot | undefined): Promise<void> {
    if (this.position.seq > 0) this.replaced++;
    const { position, values } = snapshot
      ? (JSON.parse(Buffer.from(snapshot.bytes).toString()) as Pick<ListCopy, "position" | "values">)
      : { position: { epoch: 0, seq: 0 }, values: [] };
    [this.position, this.values] = [position, [...values]];
  }

  get snapshot(): Snapshot {
    const { position, values } = this;
    return { seq: position.seq, bytes: Buffer.from(JSON.stringify({ position, values })) };
  }

  commit(entry: Entry): void {
    this.position = { epoch: entry.epoch, seq: entry.seq };
    this.values.push(Buffer.from(entry.bytes).toString());
  }
}

/** How often what goes wrong, from 0 to 1. */
interface Faults {
  readonly lost: number;
  readonly slow: number;
  /** The longest delay of all others, in milliseconds. */
  readonly delayMs: number;
}

/** What is wrong, or undefined. */
export type Verdict = string | undefined;

/** What a run has done, so that a test sees that it tries anything. */
export interface Played {
  readonly verdict: Verdict;
  readonly acknowledged: number;
  readonly reads: number;
  readonly takeovers: number;
  readonly replaced: number;
}

const day = 24 * 3600_000;

class Run {
  readonly time = new Time();
  readonly #random: () => number;
  readonly bug: Bug | undefined;
  /** How wrong the clock of the log is. */
  wrongBy = 0;
  readonly log = new MemoryLog(() => this.logNow);
  /** When the lease was last renewed, by the clock of the log. */
  renewedAt = 0;
  faults: Faults = { lost: 0.02, slow: 0.06, delayMs: 20 };
  wrong: Verdict;
  /** In the order of their acknowledgement. */
  readonly acknowledged: string[] = [];
  reads = 0;
  members: Process[] = [];
  #written = 0;

  constructor(seed: number, bug: Bug | undefined) {
    this.#random = randomOf(seed);
    this.bug = bug;
  }

  get random(): number {
    return this.#random();
  }

  get logNow(): number {
    return this.time.now + this.wrongBy;
  }

  /** A delay: mostly short, sometimes longer than a lease. */
  delay(): number {
    return this.random < this.faults.slow
      ? this.random * 3 * usualTiming.leaseMs
      : 1 + this.random * this.faults.delayMs;
  }

  fail(text: string): void {
    this.wrong ??= `${text}, at ${this.time.now.toFixed(0)} ms`;
  }

  /** A client writes and reads at random members. */
  client(): void {
    const member = this.members[Math.floor(this.random * this.members.length)];
    if (this.random < 0.5) member?.write(`value-${++this.#written}`);
    else member?.read();
  }

  /** What the log has, from its latest snapshot. */
  async wholeLog(): Promise<ListCopy | undefined> {
    const copy = new ListCopy(undefined);
    try {
      await copy.replace(await this.log.latestSnapshot());
      await catchUp(copy, this.log);
      return copy;
    } catch (error) {
      if (!(error instanceof DoesNotApply)) throw error;
      this.fail(`the log cannot be read: ${error.message}`);
      return undefined;
    }
  }

  /** Checks an answer to a read that began when so many values were acknowledged. */
  answered(values: readonly string[], known: number): void {
    this.reads++;
    const seen = new Set(values);
    for (const value of this.acknowledged.slice(0, known))
      if (!seen.has(value)) return this.fail(`a read does not show ${value}, which was acknowledged before it`);
    if (seen.size !== values.length) this.fail("a read shows a value twice");
  }
}

/** A process of the service, with the copy on its disk. */
class Process {
  static #started = 0;
  readonly #run: Run;
  readonly copy: ListCopy;
  readonly mayLead: boolean;
  readonly #log: Log;
  readonly #membership: Membership;
  #appender: Appender | undefined;
  #pausedUntil = 0;
  #isDead = false;
  #isCut = false;
  #isDraining = false;
  /** How long its clock stood still while it waited for answers. */
  #stood = 0;

  constructor(run: Run, copy: ListCopy, mayLead = true) {
    this.#run = run;
    this.copy = copy;
    this.mayLead = mayLead;
    this.#log = this.#remote(run.log);
    const { position } = copy;
    let isKept = run.bug === "keeps unacknowledged changes" && position.seq > 0;
    const read = async (after: number, most: number, bytes: number) => {
      if (!isKept) return this.#log.read(after, most, bytes);
      isKept = false;
      const next = await this.#log.read(position.seq, most, bytes);
      return [{ ...position, schema: 0, bytes: Buffer.of(), at: 0 }, ...next];
    };
    this.#membership = new Membership({
      ...{ copy, log: instead(this.#log, { read }), timing: usualTiming },
      mayLead: mayLead || run.bug === "leads where it may not",
      me: { id: `process-${++Process.#started}`, address: "" },
      now: () => run.time.now - this.#stood,
      after: (ms, callback) => this.#later(ms, callback),
      lead: (epoch) => this.#lead(epoch),
      drain: async () => {
        this.#isDraining = true;
        await this.#appender?.unfinished;
      },
      // What it has sent still arrives.
      end: () => this.die(),
      failed: (error) => run.fail(String(error)),
    });
  }

  /** It has ended when it changes its copy no more. */
  get role(): string {
    if (this.#isDead) return "ended";
    const { role } = this.#membership.state;
    return role === "ended" ? "ending" : role;
  }

  /** Runs when the process is not paused, unless it has died. */
  #later(ms: number, run: () => void): void {
    this.#run.time.after(ms, () => {
      if (this.#isDead) return;
      const left = this.#pausedUntil - this.#run.time.now;
      if (left > 0) this.#later(left, run);
      else run();
    });
  }

  pause(ms: number): void {
    this.#pausedUntil = this.#run.time.now + ms;
  }

  cut(ms: number): void {
    this.#isCut = true;
    this.#run.time.after(ms, () => (this.#isCut = false));
  }

  die(): void {
    this.#isDead = true;
  }

  stop(): void {
    this.#later(0, () => this.#membership.stop());
  }

  #lead(epoch: number): void {
    if (!this.mayLead) this.#run.fail("a member leads that may not");
    this.#appender = new Appender({
      ...{ log: this.#log, epoch },
      pause: () => new Promise((resolve) => this.#later(usualTiming.retryMs, resolve)),
      lost: () => this.#membership.lost(),
    });
  }

  /** The log over a network, with the planted bug. */
  #remote(log: MemoryLog): Log {
    const run = this.#run;
    const { bug } = run;
    const renews = <T>(renewed: T): T => {
      run.renewedAt = run.logNow;
      return renewed;
    };
    const broken = instead<Log>(log, {
      append: async (entries) => {
        const epoch = (await log.leadership())?.epoch ?? 0;
        if (bug !== "appends without a fence") return log.append(entries);
        // Whatever the epoch of an entry is, it counts.
        const { seq } = await log.end();
        return log.append(entries.map((entry, i) => ({ ...entry, epoch, seq: seq + i + 1 })));
      },
      leadership: async () => {
        const found = await log.leadership();
        const hasEnded = bug === "trusts the clock of the log" && run.logNow >= run.renewedAt + (found?.leaseMs ?? 0);
        return found && hasEnded ? { ...found, leaseMs: 0 } : found;
      },
      takeOver: async (from, member, leaseMs, renewal) => {
        const last = bug === "trusts the clock of the log" ? (await log.leadership())?.renewal : renewal;
        return renews(await log.takeOver(from, member, leaseMs, last));
      },
      renew: async (...values) => renews(await log.renew(...values)),
    });
    return remoteLog(broken, {
      now: () => run.time.now,
      after: (ms, callback) => run.time.after(ms, callback),
      awake: (callback) => {
        if (this.#isDead) return;
        if (this.#pausedUntil > run.time.now) this.#later(0, callback);
        else callback();
      },
      isCut: () => this.#isCut,
      delay: () => run.delay(),
      strikes: () => run.random < run.faults.lost,
      waited: (ms) => {
        if (bug === "counts its lease from after the request") this.#stood += ms;
      },
    });
  }

  get #isLeading(): boolean {
    const isPaused = this.#pausedUntil > this.#run.time.now;
    return !this.#isDead && !isPaused && this.role === "leading" && this.#appender !== undefined;
  }

  write(value: string): void {
    if (!this.#isLeading || this.#isDraining) return;
    const entry = {
      seq: this.copy.position.seq + 1,
      epoch: this.#membership.state.epoch,
      schema: 1,
      bytes: Buffer.from(value),
    };
    this.copy.commit(entry);
    const acknowledge = (): void => void this.#run.acknowledged.push(value);
    const logged = this.#appender?.add(Promise.resolve(entry));
    if (this.#run.bug === "answers before the append") acknowledge();
    else void logged?.then(acknowledge);
  }

  read(): void {
    if (!this.#isLeading) return;
    const known = this.#run.acknowledged.length;
    // A request takes time to be read, in which the process may be paused.
    const values = [...this.copy.values];
    const unfinished = this.#appender?.unfinished ?? Promise.resolve();
    const answer = (): void => {
      const may = this.#run.bug === "reads without a lease" || this.#membership.mayAnswer;
      if (may) this.#run.answered(values, known);
      else if (this.role === "leading") this.#later(50, answer);
    };
    void unfinished.then(() => this.#later(0, answer));
  }

  /** A standby writes a snapshot, and trims what it contains. */
  async snapshot(): Promise<void> {
    const { log, bug } = this.#run;
    const own = await this.#run.wholeLog();
    if (own === undefined || own.position.seq === 0) return;
    if (bug !== "trims too early") await log.addSnapshot(own.snapshot);
    await log.trim(own.position.seq);
  }
}

/** Plays one run. */
export async function play(seed: number, bug?: Bug): Promise<Played> {
  const run = new Run(seed, bug);
  const { time, log } = run;
  const size = 2 + Math.floor(run.random * 2);
  for (let i = 0; i < size; i++) run.members.push(new Process(run, new ListCopy(bug), i < 2));
  const end = 20_000;
  for (let at = 0; at < end; at += 20 + run.random * 100) time.after(at, () => run.client());
  for (let at = run.random * 4000; at < end; at += 500 + run.random * 4000)
    time.after(at, () => {
      const i = Math.floor(run.random * run.members.length);
      const member = run.members[i];
      if (!member) return;
      const chosen = run.random;
      const restart = (): void => void (run.members[i] = new Process(run, member.copy, member.mayLead));
      if (chosen < 0.25) member.pause(run.random * 3 * usualTiming.leaseMs);
      else if (chosen < 0.5) member.cut(run.random * 3 * usualTiming.leaseMs);
      else if (chosen < 0.6) void member.snapshot();
      else if (chosen < 0.7) member.stop();
      else {
        member.die();
        restart();
      }
    });
  // By hours to both sides, or by less than a lease.
  for (let at = run.random * 2000; at < end; at += run.random * 4000)
    time.after(at, () => (run.wrongBy += (run.random - 0.5) * (run.random < 0.5 ? day : usualTiming.leaseMs)));
  // A process that has ended is started again.
  for (let at = 500; at < end; at += 500)
    time.after(at, () => {
      for (const [i, member] of run.members.entries())
        if (member.role === "ended") run.members[i] = new Process(run, member.copy, member.mayLead);
    });
  await time.until(end);
  run.faults = { lost: 0, slow: 0, delayMs: 20 };
  await time.until(end + 10_000);
  for (const [i, member] of run.members.entries())
    if (member.role === "ended") run.members[i] = new Process(run, member.copy, member.mayLead);
  await time.until(end + 20_000);

  const leaders = run.members.filter(({ role }) => role === "leading");
  if (leaders.length !== 1) run.fail(`${leaders.length} members lead at the end`);
  const known = run.acknowledged.length;
  const values = (await run.wholeLog())?.values ?? [];
  const seen = new Set(values);
  if (seen.size !== values.length) run.fail("the log has a value twice");
  for (const value of run.acknowledged.slice(0, known)) if (!seen.has(value)) run.fail(`${value} is lost`);
  for (const { copy } of leaders)
    if (copy.values.join() !== values.join()) run.fail("the leader's copy is not what the log has");
  const replaced = run.members.reduce((sum, { copy }) => sum + copy.replaced, 0);
  const takeovers = (await log.leadership())?.epoch ?? 0;
  return { verdict: run.wrong, acknowledged: known, reads: run.reads, takeovers, replaced };
}

/** Milliseconds from a leader's end until another member leads, while nothing else goes wrong. */
export async function takeoverTime(seed: number, how: "dies" | "hands over"): Promise<number> {
  const run = new Run(seed, undefined);
  run.faults = { lost: 0, slow: 0, delayMs: 5 };
  for (let i = 0; i < 3; i++) run.members.push(new Process(run, new ListCopy(undefined)));
  const leading = () => run.members.find(({ role }) => role === "leading");
  const until = async (found: () => unknown): Promise<void> => {
    while (!found()) await run.time.until(run.time.now + 1);
  };
  await until(leading);
  // At any moment of its lease.
  await run.time.until(run.time.now + 3000 + run.random * 1000);
  const first = leading();
  const from = run.time.now;
  if (how === "dies") first?.die();
  else first?.stop();
  await until(() => first?.role === "ended" && leading());
  return run.time.now - from;
}
