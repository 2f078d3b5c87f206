// The choice of loopback addresses for Apps.
import fc from "fast-check";
import { expect, test } from "vitest";
import { blockCount, blockOf, blocksFor, claimIn, freeIn, sharedIn } from "../../service/runtime/loopback.ts";

const blocks = fc.nat(blockCount - 1);
const randoms = fc.nat(0xffff);

test("an address is free, in its block, in 127.64.0.0/10, and neither shared nor the claiming one", () => {
  fc.assert(
    fc.property(blocks, randoms, fc.uniqueArray(randoms, { maxLength: 50 }), (block, random, others): void => {
      // Neighbours are taken more often than others, so the choice has to continue.
      const taken = new Set([random, random + 1, ...others].map((at) => freeIn(block, at, () => false)));
      const ip = freeIn(block, random, (one) => taken.has(one)) ?? "";
      expect(taken).not.toContain(ip);
      expect(blockOf(ip)).toBe(block);
      expect([sharedIn(block), claimIn(block)]).not.toContain(ip);
      const [first, second = 0] = ip.split(".").map(Number);
      expect(first).toBe(127);
      expect(second).toBeGreaterThanOrEqual(64);
      expect(second).toBeLessThan(128);
    }),
  );
});

test("every address of a block can be given, and then none", () => {
  const all = new Set<string>();
  for (let random = 0; random < 2 ** 14; random++) all.add(freeIn(3, random, () => false) ?? "");
  expect(all.size).toBe(2 ** 14 - 4);
  expect(freeIn(3, 1, (ip) => all.has(ip))).toBeUndefined();
  const last = [...all][17] ?? "";
  expect(freeIn(3, 1, (ip) => all.has(ip) && ip !== last)).toBe(last);
});

test("any data tries every block once, always in the same order", () => {
  fc.assert(
    fc.property(fc.string(), (dataId): void => {
      const order = blocksFor(dataId);
      expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: blockCount }, (_, i) => i));
      expect(blocksFor(dataId)).toEqual(order);
    }),
  );
});

test("the shared and the claiming address of a block are its own, and other text has no block", () => {
  fc.assert(
    fc.property(blocks, (block): void => {
      expect([blockOf(sharedIn(block)), blockOf(claimIn(block))]).toEqual([block, block]);
    }),
  );
  for (const ip of [
    "127.0.0.1",
    "127.63.255.255",
    "127.128.0.0",
    "198.18.0.1",
    "fdaa::1",
    "",
    "127.64.1",
    "127.64.1.x",
  ])
    expect(blockOf(ip)).toBeUndefined();
});
