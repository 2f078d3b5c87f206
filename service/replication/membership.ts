// A process as a member: carries out the decisions of member.ts, and follows the log while it does not lead.
import { withResolvers, type Resolvers } from "../withResolvers.ts";
import { catchUp, type Copy } from "./catchUp.ts";
import { LogUnavailable, type Log, type Member } from "./log.ts";
import { beginning, decide, mayAnswer, type Action, type Happened, type MemberState, type Timing } from "./member.ts";

/** What a member has and does. */
export interface Parts {
  readonly me: Member;
  /** Whether it may lead. Default: true. */
  readonly mayLead?: boolean;
  readonly log: Pick<Log, "leadership" | "takeOver" | "renew" | "release" | "read" | "latestSnapshot">;
  readonly copy: Copy;
  readonly timing: Timing;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /**
   * By how many milliseconds the date of the computer is ahead of that clock, which may stand still while the computer sleeps: what it gains
   * counts against the lease. Default: always the same.
   */
  readonly ahead?: () => number;
  /** Calls back once after that many milliseconds. */
  readonly after: (ms: number, run: () => void) => void;
  /** Begins to answer: the copy has the whole log. */
  readonly lead: (epoch: number) => void;
  /** Accepts nothing more; resolves when all that was accepted is in the log. */
  readonly drain: () => Promise<void>;
  /** The end: if the leadership was lost, connections are closed without an answer. */
  readonly end: (isLost: boolean) => void;
  /** Its state is another one, such as who leads. */
  readonly changed?: (state: MemberState) => void;
  /** The copy cannot be brought to the end of the log. */
  readonly failed: (error: unknown) => void;
}

/** A member at work. */
export class Membership {
  readonly #parts: Parts;
  #state: MemberState;
  /** When it is woken next. */
  #wakeAt = Number.POSITIVE_INFINITY;
  /** At most one brings the copy to the end of the log. */
  #following: Promise<void> | undefined;
  /** How often the copy has reached the end of the log, and how often it had at the latest look. */
  #reachedEnd = 0;
  #reachedAtLook = 0;
  /** The latest request about the leadership. */
  #asked: Promise<void> | undefined;
  /** The end of its lease. */
  #released: Promise<void> | undefined;
  /** How far the date was ahead before the request that the lease counts from. */
  #aheadThen = 0;

  /** Answers that wait until the lease is renewed. */
  #unsure: Resolvers | undefined;

  /** Begins at once. */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.#state = beginning(parts.me, parts.now(), parts.mayLead);
    this.#wakeWhenDue();
  }

  get state(): MemberState {
    return this.#state;
  }

  /** Undefined if what was read may be sent now; otherwise resolves once it may, never if this member leads no more. */
  get unsure(): Promise<void> | undefined {
    return this.mayAnswer ? undefined : (this.#unsure ??= withResolvers()).promise;
  }

  /** Whether an answer that was read may be sent now. */
  get mayAnswer(): boolean {
    return mayAnswer(this.#state, this.#parts.now() + Math.max(0, this.#ahead - this.#aheadThen));
  }

  get #ahead(): number {
    return this.#parts.ahead?.() ?? 0;
  }

  /** Hands over, if it leads, and ends. */
  stop(): void {
    this.#happened({ kind: "stop" });
  }

  /** Says whether it may lead from now on. */
  moved(mayLead: boolean): void {
    this.#happened({ kind: "moved", mayLead });
  }

  /** An append found a later leadership. */
  lost(): void {
    this.#happened({ kind: "lost" });
  }

  #happened(happened: Happened): void {
    const { now, timing } = this.#parts;
    const [state, actions] = decide(this.#state, happened, now(), timing);
    this.#state = state;
    for (const action of actions) void this.#act(action);
    this.#parts.changed?.(state);
    if (this.#unsure && this.mayAnswer) {
      this.#unsure.resolve();
      this.#unsure = undefined;
    }
    this.#wakeWhenDue();
  }

  #wakeWhenDue(): void {
    const { role, isAsking, nextAt } = this.#state;
    if (role === "ended" || isAsking || nextAt >= this.#wakeAt) return;
    this.#wakeAt = nextAt;
    const { now, after } = this.#parts;
    after(Math.max(1, nextAt - now()), () => {
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.#happened({ kind: "time passed" });
    });
  }

  async #act(action: Action): Promise<void> {
    const { log, me, timing, lead, drain, end, now } = this.#parts;
    const [sentAt, ahead] = [now(), this.#ahead];
    switch (action.kind) {
      case "look": {
        const isBehind = this.#reachedEnd === this.#reachedAtLook;
        this.#reachedAtLook = this.#reachedEnd;
        void this.#follow();
        return this.#ask(async () => ({ kind: "leadership", found: await log.leadership(), isBehind }));
      }
      case "take over":
        return this.#ask(async () => {
          const epoch = await log.takeOver(action.from, me, timing.leaseMs, action.renewal);
          this.#aheadThen = ahead;
          return { kind: "took over", epoch, sentAt };
        });
      case "renew":
        return this.#ask(async () => {
          const isMine = await log.renew(action.epoch, timing.leaseMs);
          this.#aheadThen = ahead;
          return { kind: "renewed", isMine, sentAt };
        });
      case "catch up":
        return this.#catchUp();
      case "lead":
        return lead(action.epoch);
      case "drain":
        await drain();
        return this.#happened({ kind: "drained" });
      case "release":
        this.#released = this.#release(action.epoch);
        return this.#released;
      case "end":
        // The copy does not change after the end.
        await this.#following;
        await this.#released;
        return end(action.isLost);
    }
  }

  /** Ends the lease. A request to renew it that arrived later would prolong it. */
  async #release(epoch: number): Promise<void> {
    await this.#asked;
    // Otherwise the lease ends by itself.
    await this.#parts.log.release(epoch).catch(() => {});
  }

  #ask(request: () => Promise<Happened>): Promise<void> {
    this.#asked = this.#answered(request);
    return this.#asked;
  }

  async #answered(request: () => Promise<Happened>): Promise<void> {
    try {
      this.#happened(await request());
    } catch (error) {
      this.#happened({ kind: "unavailable" });
      if (!(error instanceof LogUnavailable)) throw error;
    }
  }

  /** Applies what the log has so far. A copy that cannot follow now may follow later. */
  #follow(): Promise<void> {
    const follow = async (): Promise<void> => {
      const { copy, log, failed } = this.#parts;
      try {
        await catchUp(copy, log);
        this.#reachedEnd++;
      } catch (error) {
        if (!(error instanceof LogUnavailable)) failed(error);
      } finally {
        this.#following = undefined;
      }
    };
    return (this.#following ??= follow());
  }

  /** Brings the copy to the end of the log. Earlier leaders can no longer append to it. */
  async #catchUp(): Promise<void> {
    const { copy, log, timing, after, failed } = this.#parts;
    await this.#following;
    while (this.#state.role === "catching up")
      try {
        await catchUp(copy, log);
        return this.#happened({ kind: "caught up", epoch: copy.position.epoch });
      } catch (error) {
        if (!(error instanceof LogUnavailable)) failed(error);
        await new Promise<void>((resolve) => after(timing.retryMs, resolve));
      }
  }
}
