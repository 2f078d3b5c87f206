// The universe: members of a service and their log, the networks between them and people, and one time for all of it.
import "./sameTurn.ts";
import { rmSync } from "node:fs";
import { AsyncLocalStorage } from "node:async_hooks";
import type { Copy } from "../../service/replication/catchUp.ts";
import type { GroupLog } from "../../service/replication/groupLog.ts";
import type { Log, Logged } from "../../service/replication/log.ts";
import { emptyEntry } from "../../service/replication/changes.ts";
import { MemoryLog } from "../../service/replication/memoryLog.ts";
import { auditKept } from "../../service/http/audit.ts";
import { addToken } from "../../service/store/tokens.ts";
import type { Audited, Seen, Service } from "../../service/index.ts";
import type { Outcome, Sent } from "../../provider/client/transport.ts";
import { instead } from "../support/instead.ts";
import { lateAnswer, newFolder, type Watched } from "../support/simulation.ts";
import { Activity, SimulatedTime } from "../support/simulatedTime.ts";
import type { Bug } from "./bugs.ts";
import { Fate } from "./fate.ts";
import { Seat } from "./member.ts";
import type { Peer, Reply, Surroundings } from "./surroundings.ts";

/** A request that is injected into a service. */
export interface Asked {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload?: object;
}

/** What a universe is made of. */
export interface WorldOptions {
  /** Behind every identifier. */
  readonly seed: string;
  /** What the networks do. */
  readonly luck: number;
  readonly members: number;
  readonly bug?: Bug | undefined;
  /** Whether the members have a console. */
  readonly hasConsole?: boolean;
  /** Called with each note, and may wait before anything else happens. */
  readonly onNote?: (text: string) => void | Promise<void>;
}

/** Simulated milliseconds after which a universe counts as stuck. */
const longest = 24 * 3600_000;
/** Simulated milliseconds in which some member must lead, once nothing goes wrong. */
const leadWithin = 60_000;
const lookMs = 100;
/** Simulated milliseconds until messages that were late have arrived, each by four ways of up to 10 s, and a lease has ended that ends. */
const settledMs = 45_000;

/** Members, log, networks and time. */
export class World implements Surroundings {
  readonly seed: string;
  readonly folder = newFolder();
  readonly time = new SimulatedTime();
  readonly activity = new Activity();
  readonly fate: Fate;
  readonly bug: Bug | undefined;
  readonly hasConsole: boolean;
  /** By how much the clock of the log is wrong. */
  wrongBy = 0;
  readonly log: Log = new MemoryLog(() => this.time.now() + this.wrongBy);
  readonly seats: readonly Seat[];
  readonly watching = new AsyncLocalStorage<Watched>();
  /** Internal errors that members logged. */
  readonly mistakes: string[] = [];
  /** What happened, in order. */
  readonly notes: string[] = [];
  isOver = false;
  requests = 0;
  takeovers = 0;
  readonly #onNote: ((text: string) => void | Promise<void>) | undefined;
  /** The notes that are not handled yet, in order. */
  #noting = Promise.resolve();
  readonly #services: Service[] = [];
  readonly #begun: number;
  #wrong: Error | undefined;
  #leader: { readonly process: Peer } | undefined;
  #epoch = 0;

  constructor({ seed, luck, members, bug, hasConsole = false, onNote }: WorldOptions) {
    this.seed = seed;
    this.fate = new Fate(luck);
    this.bug = bug;
    this.hasConsole = hasConsole;
    this.#onNote = onNote;
    this.#begun = this.time.now();
    this.seats = Array.from({ length: members }, (_, index) => new Seat(this, index + 1));
  }

  note(text: string): void {
    const last = this.notes.at(-1);
    const line = `${((this.time.now() - this.#begun) / 1000).toFixed(3)} s: ${text}`;
    if (last?.endsWith(`: ${text}`)) return;
    this.notes.push(line);
    const onNote = this.#onNote;
    // Time stands still meanwhile.
    if (onNote) void this.activity.busy((this.#noting = this.#noting.then(() => onNote(line))));
  }

  fail(error: unknown): void {
    this.#wrong ??= error instanceof Error ? error : new Error(String(error));
  }

  /** Throws what went wrong in a part that nobody waits for. */
  judge(): void {
    if (this.#wrong) throw this.#wrong;
  }

  /** Drives time until some work is done. */
  async pass<T>(work: Promise<T>): Promise<T> {
    const result = await this.time.pass(work, this.activity.moves, longest);
    this.judge();
    return result;
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.time.after(ms, resolve));
  }

  peerAt(address: string | undefined): Peer | undefined {
    return this.seats.find((seat) => seat.address === address)?.process;
  }

  leads(process: Peer, epoch: number): void {
    if (process.service) this.#services.push(process.service);
    this.takeovers++;
    this.activity.moved();
    if (epoch > this.#epoch) {
      this.#epoch = epoch;
      this.#leader = { process };
    }
    this.note(`member ${process.id} answers, epoch ${epoch}`);
  }

  /** The service of the member that leads; undefined while none does. */
  get leader(): Service | undefined {
    const { process } = this.#leader ?? {};
    return process?.answers ? process.service : undefined;
  }

  /** Waits until a member leads, which must happen once nothing goes wrong. */
  async led(): Promise<Service> {
    for (const until = this.time.now() + leadWithin; ; await this.wait(lookMs)) {
      this.judge();
      const { leader } = this;
      if (leader) return leader;
      if (this.time.now() > until && this.isCalm) throw new Error("no member leads although nothing goes wrong");
    }
  }

  /**
   * Sends a request to the leader without a network; one that ends with its member is answered with 503. Some member leads before and
   * after it.
   */
  async ask(request: Asked): Promise<{ readonly statusCode: number; json<T>(): T }> {
    await this.led();
    const { process } = this.#leader ?? {};
    const answer = await Promise.race([process?.died ?? "lost", process?.service?.app.inject(request)]);
    await this.led();
    return answer === undefined || typeof answer === "string" ? { statusCode: 503, json: () => ({}) as never } : answer;
  }

  isCalm = false;

  /** Nothing goes wrong from now on. */
  async calm(): Promise<void> {
    this.note("nothing goes wrong any more");
    this.isCalm = true;
    this.fate.calm();
    for (const { process } of this.seats) process.heal();
    await this.wait(settledMs);
    await this.led();
  }

  /** Gives an organization a token. */
  async enter(slug: string, token: string): Promise<void> {
    const { context } = await this.led();
    await context.store.write(
      () => void addToken(context.store, token, { slug, expiresAt: null }, context.clock.now()),
    );
  }

  replied(epoch: number, { method, url }: Sent, status: number): void {
    if (epoch < this.#acknowledged)
      this.fail(
        new Error(
          `${method} ${new URL(url).pathname} was answered in epoch ${epoch}, after a change was acknowledged in epoch ${this.#acknowledged}`,
        ),
      );
    if (method !== "GET" && status < 300) this.#acknowledged = Math.max(this.#acknowledged, epoch);
  }

  /** The latest leadership that has acknowledged a change. */
  #acknowledged = 0;

  answered(_seen: Seen): void {
    this.requests++;
    this.activity.moved();
  }

  /** Sends a request by a network that delays, loses and doubles it; the simulated clock cancels it. */
  async send(sent: Sent, hungUp: AbortSignal, { before, after }: { before: number; after: number }): Promise<Outcome> {
    let cancel: () => void = () => undefined;
    const gaveUp = new Promise<"gave up">((resolve) => {
      const end = (): void => resolve("gave up");
      cancel = this.time.after(sent.timeout, end);
      for (const signal of [hungUp, sent.signal]) signal?.addEventListener("abort", end, { once: true });
      if (hungUp.aborted || sent.signal?.aborted) end();
    });
    const state = { isOver: false };
    try {
      const outcome = await Promise.race([gaveUp, this.#exchange(sent, before, after, state)]);
      return outcome === "gave up" ? lateAnswer(sent) : outcome;
    } finally {
      state.isOver = true;
      cancel();
      this.activity.moved();
    }
  }

  async #exchange(sent: Sent, before: number, after: number, state: { readonly isOver: boolean }): Promise<Outcome> {
    await this.wait(before + this.fate.delay());
    const never = new Promise<never>(() => undefined);
    if (state.isOver) return never;
    if (this.fate.strikes("requests lost")) return this.fate.random < 0.5 ? never : lost;
    if (this.fate.strikes("requests doubled") && mayRepeat(sent)) {
      // A proxy in between got no answer, and sends it again.
      this.note(`${sent.method} ${new URL(sent.url).pathname} arrives twice`);
      void this.#deliver(sent);
      await this.wait(this.fate.delay());
    }
    const reply = await this.#deliver(sent);
    await this.wait(after + this.fate.delay());
    if (reply === undefined) return unsent;
    if (reply === "lost") return lost;
    if (this.fate.strikes("answers lost")) return this.fate.random < 0.5 ? never : lost;
    return { kind: "answer", ...reply };
  }

  /** A balancer passes it to any member that accepts connections. */
  #deliver(sent: Sent): Promise<Reply | undefined> {
    const able = this.seats.map(({ process }) => process).filter((one) => !one.isDead && !one.isCut);
    const chosen = able[Math.floor(this.fate.random * able.length)];
    return chosen ? chosen.take(sent) : Promise.resolve(undefined);
  }

  brokenLog(log: Log): Log {
    if (this.bug === "a leader appends without a fence")
      return instead(log, {
        append: async (entries) => {
          const { epoch = 0 } = (await this.log.leadership()) ?? {};
          const { seq } = await this.log.end();
          return log.append(entries.map((entry, i) => ({ ...entry, epoch, seq: seq + i + 1 })));
        },
      });
    if (this.bug === "a member leads before it has read the log")
      return instead(log, { read: () => Promise.resolve([]) });
    return log;
  }

  brokenCopy(copy: Copy): Copy {
    const isSkipping = this.bug === "a member skips an entry";
    const whole = async (entries: readonly Logged[]): Promise<readonly Logged[]> => {
      const empty = await emptyEntry();
      return entries.map((entry) => (isSkipping && entry.seq % 9 === 0 ? { ...entry, bytes: empty } : entry));
    };
    return {
      get position() {
        return copy.position;
      },
      apply: (entries) => this.activity.busy(whole(entries).then((all) => copy.apply(all))),
      replace: (snapshot) => this.activity.busy(copy.replace(snapshot)),
    };
  }

  brokenGroupLog(log: GroupLog): GroupLog {
    if (this.bug !== "a leader answers before the append") return log;
    return instead(log, {
      committed: () => {
        void log.committed();
        return undefined;
      },
    });
  }

  /** All requests that members have answered. */
  get audited(): readonly Audited[] {
    return this.#services.flatMap(({ audit }) => audit.after(0, auditKept));
  }

  async close(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.seats.map(({ process }) => process.end()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const failed = (kind: "lost" | "unsent", text: string): Outcome => ({
  ...{ kind, cause: new Error(text), lasting: false, proxied: false },
});
const lost = failed("lost", "the connection ended without an answer");
const unsent = failed("unsent", "no connection was accepted");

/** Whether a proxy may send a request again: what it asks for is the same, however often it arrives. */
const mayRepeat = ({ method }: Sent): boolean => method === "GET" || method === "PUT" || method === "DELETE";
