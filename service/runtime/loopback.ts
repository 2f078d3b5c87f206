// Loopback addresses for Apps. Each service of a computer has a block of 127.64.0.0/10 to itself.
import { createHash } from "node:crypto";

// ASSUMED: addresses that are answered on this computer are from 127.64.0.0/10, far from those that systems use themselves.
const rangeStart = 0x7f_40_00_00;
const blockSize = 2 ** 14;

/** The number of blocks in the range; each is a /18. */
export const blockCount = 256;

const addressAt = (block: number, offset: number): string => {
  const number = rangeStart + block * blockSize + offset;
  return [24, 16, 8, 0].map((bits) => (number >>> bits) & 0xff).join(".");
};

/** The block of an address; undefined for one outside of the range. */
export function blockOf(ip: string): number | undefined {
  const parts = ip.split(".").map(Number);
  if (parts.length !== 4 || !parts.every((part) => part >= 0 && part <= 255)) return undefined;
  const offset = parts.reduce((number, part) => number * 256 + part, 0) - rangeStart;
  const block = Math.floor(offset / blockSize);
  return block >= 0 && block < blockCount ? block : undefined;
}

/** Every block, in the order in which the data with this identity tries them; the first is a hash of it. */
export function blocksFor(dataId: string): number[] {
  const hash = createHash("sha256").update(dataId).digest();
  // An odd step reaches every block, because their number is a power of two.
  const [start, step] = [hash.readUInt8(0), hash.readUInt8(1) | 1];
  return Array.from({ length: blockCount }, (_, i) => (start + i * step) % blockCount);
}

/** The address that all Apps of a block share. */
export const sharedIn = (block: number): string => addressAt(block, 1);

/** The address at which a service listens to claim a block. */
export const claimIn = (block: number): string => addressAt(block, blockSize - 2);

/** The first and the last offset of addresses for one App. */
const [firstOwn, lastOwn] = [2, blockSize - 3];

/** An address of a block for one App: the first that is not taken, from a random one on. Undefined if all are taken. */
export function freeIn(block: number, random: number, isTaken: (ip: string) => boolean): string | undefined {
  const count = lastOwn - firstOwn + 1;
  for (let i = 0; i < count; i++) {
    const ip = addressAt(block, firstOwn + ((random + i) % count));
    if (!isTaken(ip)) return ip;
  }
  return undefined;
}
