// Timers and waits of very many objects are handled in slices, so that other clients are served in between (F46).
import { expect, test, vi } from "vitest";
import { createService, ManualClock, seededRandom } from "../../service/index.ts";
import { DueQueue } from "../../service/time/dueQueue.ts";
import { Waits, type Hold } from "../../service/time/waits.ts";
import { refuse } from "../../service/refusal.ts";
import { FairTurns } from "../../service/time/fairTurns.ts";

const many = 1000;

function manyWaits() {
  const clock = new ManualClock();
  const waits = new Waits(clock, many);
  const scene = { clock, waits, looks: 0, answer: undefined as string | undefined };
  const hold: Omit<Hold<string>, "org"> = {
    subject: "one",
    look: () => {
      scene.looks++;
      return scene.answer;
    },
    timeoutMs: 60_000,
    late: () => refuse(408, "late"),
    onGone: () => {},
  };
  const held = Promise.allSettled(Array.from({ length: many }, (_, org) => waits.hold({ ...hold, org })));
  scene.looks = 0;
  return { scene, held };
}

test("F46 many waits for one Machine are answered in slices", async () => {
  const { scene, held } = manyWaits();
  scene.answer = "there";
  scene.waits.wake(["one"]);
  expect(scene.looks).toBeGreaterThan(0);
  expect(scene.looks).toBeLessThan(many / 4);
  const answers = await held;
  expect(new Set(answers.map((one) => one.status === "fulfilled" && one.value))).toEqual(new Set(["there"]));
  expect([scene.looks, scene.waits.size]).toEqual([many, 0]);
});

test("F46 waits whose condition is not met are not checked twice", async () => {
  const { scene } = manyWaits();
  scene.waits.wake(["one"]);
  scene.waits.wake(["one"]);
  await vi.waitFor(() => expect(scene.looks).toBeGreaterThanOrEqual(many));
  await new Promise(setImmediate);
  // The first slice was checked again by the second notification.
  expect(scene.looks).toBeLessThan(1.25 * many);
  expect(scene.waits.size).toBe(many);
  scene.waits.close();
});

test("many requests that time out together are all answered", async () => {
  const { scene, held } = manyWaits();
  scene.clock.advance(59_999);
  expect(scene.waits.size).toBe(many);
  scene.clock.advance(1);
  expect(scene.waits.size).toBe(0);
  for (const one of await held) expect(one).toMatchObject({ status: "rejected", reason: { status: 408 } });
});

test("F46 timers that are due together run in slices, in order of time, each once", async () => {
  const clock = new ManualClock();
  const service = createService({ clock, random: seededRandom("slices") });
  const { store, timers } = service.context;
  await store.write(() => {
    for (let i = 0; i < many; i++) timers.after(1000, "snapshot.expire", `vs_${i}`);
    for (let i = 0; i < many; i++) timers.after(9e9, "snapshot.expire", `later_${i}`);
    for (let i = 0; i < many; i++) timers.cancel(`later_${i}`);
  });
  const { hooks } = store;
  const left: number[] = [];
  store.hooks = {
    ...hooks,
    afterCommit(touched) {
      left.push(store.all("SELECT 1 FROM timers").length);
      hooks.afterCommit(touched);
    },
  };
  clock.advance(1000);
  expect(left.length).toBeGreaterThan(3);
  expect(left).toEqual(left.toSorted((a, b) => b - a));
  expect(left.at(-1)).toBe(0);
  await service.close();
});

test("a timer that a refused request set and cancelled is unchanged", async () => {
  const service = createService({ clock: new ManualClock() });
  const { store, timers } = service.context;
  await store.write(() => timers.after(1000, "volume.backup", "vol_1"));
  await expect(
    (async () =>
      store.write(() => {
        timers.cancel("vol_1");
        timers.after(5000, "volume.remove", "vol_1");
        throw new Error("refused");
      }))(),
  ).rejects.toThrow("refused");
  expect([timers.pending("vol_1", "volume.backup"), timers.pending("vol_1", "volume.remove")]).toEqual([true, false]);
  await store.write(() => {});
  expect(store.all("SELECT kind, due - ? AS due FROM timers", service.context.clock.now())).toEqual([
    { kind: "volume.backup", due: 1000 },
  ]);
  await service.close();
});

test("a queue returns items by due time, and those of equal time in order of insertion", () => {
  const queue = new DueQueue<{ due: number; id: number }>();
  const entries = Array.from({ length: 500 }, (_, id) => ({ due: (id * 7919) % 50, id }));
  for (const entry of entries) queue.push(entry);
  const found: typeof entries = [];
  for (let { first } = queue; first; { first } = queue) {
    found.push(first);
    queue.shift();
  }
  expect(found).toEqual(entries.toSorted((a, b) => a.due - b.due || a.id - b.id));
});

test("F46 all long answers together send one piece per turn", async () => {
  const turns = new FairTurns();
  const made = { pieces: 0 };
  const answers = Array.from({ length: 20 }, async () => {
    for (let piece = 0; piece < 5; piece++) {
      await turns.next();
      made.pieces++;
    }
  });
  let most = 0;
  while (made.pieces < 100) {
    const before = made.pieces;
    await new Promise(setImmediate);
    most = Math.max(most, made.pieces - before);
  }
  await Promise.all(answers);
  expect(most).toBeLessThanOrEqual(2);
});
