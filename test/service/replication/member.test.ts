// The decisions of a member, step by step; members.test.ts plays whole lives.
import { describe, expect, test } from "vitest";
import {
  beginning,
  decide,
  mayAnswer,
  usualTiming,
  type Action,
  type Happened,
  type MemberState,
} from "../../../service/replication/member.ts";

const me = { id: "me", address: "http://me" };
const other = { id: "other", address: "http://other" };
const { leaseMs, renewMs, lookMs, retryMs } = usualTiming;

/** A member to which something happens, at a time. */
class Played {
  state: MemberState;

  constructor(mayLead = true) {
    this.state = beginning(me, 0, mayLead);
  }

  happens(now: number, happened: Happened): readonly Action[] {
    const [state, actions] = decide(this.state, happened, now, usualTiming);
    this.state = state;
    return actions;
  }

  passes(now: number): readonly Action[] {
    return this.happens(now, { kind: "time passed" });
  }

  /** Leads since 0. */
  static leading(): Played {
    const member = new Played();
    member.passes(0);
    member.happens(0, { kind: "leadership", found: undefined, isBehind: false });
    member.happens(0, { kind: "took over", epoch: 1, sentAt: 0 });
    member.happens(0, { kind: "caught up", epoch: 0 });
    return member;
  }
}

describe("a member", () => {
  test("the first one takes the leadership, reads the log, and then leads", () => {
    const member = new Played();
    expect(member.passes(0)).toEqual([{ kind: "look" }]);
    expect(member.passes(1)).toEqual([]);
    expect(member.happens(5, { kind: "leadership", found: undefined, isBehind: false })).toEqual([
      { kind: "take over", from: 0 },
    ]);
    expect(member.happens(9, { kind: "took over", epoch: 1, sentAt: 5 })).toEqual([{ kind: "catch up", epoch: 1 }]);
    expect(mayAnswer(member.state, 9)).toBe(false);
    expect(member.happens(20, { kind: "caught up", epoch: 0 })).toEqual([{ kind: "lead", epoch: 1 }]);
    // From before the request.
    expect([mayAnswer(member.state, 5 + leaseMs - 1), mayAnswer(member.state, 5 + leaseMs)]).toEqual([true, false]);
  });

  const found = { epoch: 4, leader: other, renewal: "first", leaseMs };

  test("a follower whose copy is behind leaves a free leadership to others until it has the whole log", () => {
    const member = new Played();
    member.passes(0);
    const free = { kind: "leadership", found: { ...found, leaseMs: 0 } } as const;
    expect(member.happens(10, { ...free, isBehind: true })).toEqual([]);
    expect([member.passes(9 + lookMs), member.passes(10 + lookMs)]).toEqual([[], [{ kind: "look" }]]);
    expect(member.happens(70, { ...free, isBehind: false })).toEqual([
      { kind: "take over", from: 4, renewal: "first" },
    ]);
  });

  test("a follower knows who leads, and takes over as soon as the leader has ended its lease", () => {
    const member = new Played();
    member.passes(0);
    expect(member.happens(10, { kind: "leadership", found, isBehind: false })).toEqual([]);
    expect([member.state.leader, member.state.epoch]).toEqual([other, 4]);
    expect([member.passes(9 + lookMs), member.passes(10 + lookMs)]).toEqual([[], [{ kind: "look" }]]);
    const ended = { ...found, leaseMs: 0 };
    const takeOver = { kind: "take over", from: 4, renewal: "first" };
    expect(member.happens(70, { kind: "leadership", found: ended, isBehind: false })).toEqual([takeOver]);
    // Another one was faster.
    expect(member.happens(80, { kind: "took over", epoch: undefined, sentAt: 70 })).toEqual([]);
    expect(member.passes(80)).toEqual([{ kind: "look" }]);
  });

  test("it does not follow an earlier process at its own address, whose lease it awaits", () => {
    const member = new Played();
    member.passes(0);
    const earlier = { ...found, leader: { ...me, id: "earlier" } };
    expect(member.happens(0, { kind: "leadership", found: earlier, isBehind: false })).toEqual([]);
    expect(member.state.leader).toBeUndefined();
    member.passes(leaseMs + lookMs);
    expect(member.happens(leaseMs + lookMs, { kind: "leadership", found: earlier, isBehind: false })).toHaveLength(1);
  });

  test("a follower takes over when it has seen no renewal for longer than a lease, by its own clock", () => {
    const member = new Played();
    const sees = (now: number, renewal: string) => {
      member.passes(now);
      return member.happens(now, { kind: "leadership", found: { ...found, renewal }, isBehind: false });
    };
    const end = leaseMs + lookMs;
    expect([sees(0, "first"), sees(end - 1, "first")]).toEqual([[], []]);
    expect([sees(end, "second"), sees(2 * end - 1, "second")]).toEqual([[], []]);
    expect(sees(2 * end, "second")).toEqual([{ kind: "take over", from: 4, renewal: "second" }]);
  });

  test("one that may not lead knows that no one leads, and continues to look", () => {
    const member = new Played(false);
    member.passes(0);
    expect(member.happens(10, { kind: "leadership", found: { ...found, leaseMs: 0 }, isBehind: false })).toEqual([]);
    expect([member.state.leader, member.state.role]).toEqual([undefined, "following"]);
    expect([member.passes(9 + lookMs), member.passes(10 + lookMs)]).toEqual([[], [{ kind: "look" }]]);
    expect(member.happens(200, { kind: "leadership", found: undefined, isBehind: false })).toEqual([]);
  });

  test("one that is promoted takes over at its next look, and one whose place was taken does so no more", () => {
    const member = new Played(false);
    const ended = { ...found, epoch: 4, leader: other, leaseMs: 0 };
    member.happens(0, { kind: "moved", mayLead: true });
    expect(member.happens(10, { kind: "leadership", found: ended, isBehind: false })).toEqual([
      { kind: "take over", from: 4, renewal: found.renewal },
    ]);
    member.happens(20, { kind: "took over", epoch: undefined, sentAt: 10 });
    member.happens(30, { kind: "moved", mayLead: false });
    expect(member.happens(40, { kind: "leadership", found: ended, isBehind: false })).toEqual([]);
  });

  test("it looks often enough, also while the lease lasts long", () => {
    const member = new Played();
    member.passes(0);
    member.happens(0, { kind: "leadership", found, isBehind: false });
    expect([member.passes(lookMs - 1), member.passes(lookMs)]).toEqual([[], [{ kind: "look" }]]);
  });

  test("if the answer to its takeover was lost, it repeats it before it leads", () => {
    const member = new Played();
    member.passes(0);
    member.happens(0, { kind: "leadership", found: undefined, isBehind: false });
    member.happens(100, { kind: "unavailable" });
    expect(member.passes(100 + retryMs)).toEqual([{ kind: "look" }]);
    const mine = { ...found, epoch: 1, leader: me };
    expect(member.happens(300, { kind: "leadership", found: mine, isBehind: false })).toEqual([
      { kind: "take over", from: 0 },
    ]);
    expect(member.state).toMatchObject({ role: "following", leader: undefined });
    expect(member.happens(400, { kind: "took over", epoch: 1, sentAt: 300 })).toEqual([{ kind: "catch up", epoch: 1 }]);
    member.happens(400, { kind: "caught up", epoch: 0 });
    expect([mayAnswer(member.state, 300 + leaseMs - 1), mayAnswer(member.state, 300 + leaseMs)]).toEqual([true, false]);
  });

  test("the leader renews its lease, and answers nothing while it could not", () => {
    const member = Played.leading();
    expect(member.passes(renewMs)).toEqual([{ kind: "renew", epoch: 1 }]);
    member.happens(renewMs + 50, { kind: "renewed", isMine: true, sentAt: renewMs });
    expect(mayAnswer(member.state, renewMs + leaseMs - 1)).toBe(true);
    expect(member.passes(2 * renewMs)).toEqual([{ kind: "renew", epoch: 1 }]);
    member.happens(3000, { kind: "unavailable" });
    expect(mayAnswer(member.state, 3000)).toBe(false);
    expect(member.passes(3000 + retryMs)).toEqual([{ kind: "renew", epoch: 1 }]);
    // No other member took over in between.
    member.happens(3200, { kind: "renewed", isMine: true, sentAt: 3100 });
    expect(mayAnswer(member.state, 3200)).toBe(true);
  });

  test.each<Happened>([{ kind: "renewed", isMine: false, sentAt: 0 }, { kind: "lost" }])(
    "a leader that was replaced ends without an answer: $kind",
    (happened) => {
      const member = Played.leading();
      expect(member.happens(10, happened)).toEqual([{ kind: "end", isLost: true }]);
      expect(mayAnswer(member.state, 10)).toBe(false);
      expect([member.passes(5000), member.happens(5000, { kind: "stop" })]).toEqual([[], []]);
    },
  );

  test("a member that finds a later leadership in the log does not lead", () => {
    const member = new Played();
    member.passes(0);
    member.happens(0, { kind: "leadership", found: undefined, isBehind: false });
    member.happens(0, { kind: "took over", epoch: 1, sentAt: 0 });
    expect(member.happens(5000, { kind: "caught up", epoch: 2 })).toEqual([{ kind: "end", isLost: true }]);
  });

  test("a leader that stops first appends all it has accepted, then ends its lease", () => {
    const member = Played.leading();
    expect(member.happens(10, { kind: "stop" })).toEqual([{ kind: "drain" }]);
    expect(mayAnswer(member.state, 11)).toBe(true);
    expect(member.happens(30, { kind: "drained" })).toEqual([
      { kind: "release", epoch: 1 },
      { kind: "end", isLost: false },
    ]);
  });

  test("a follower that stops does not release the lease", () => {
    const member = new Played();
    expect(member.happens(0, { kind: "stop" })).toEqual([{ kind: "end", isLost: false }]);
  });
});
