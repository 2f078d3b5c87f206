// Identifiers and the randomness behind them (docs/interface.md#names-and-identifiers). The caller
// passes in the source, so that a test can be repeated exactly.
import { createHash, randomFillSync } from "node:crypto";
import { decodeTime, monotonicFactory } from "ulid";

/** Returns that many random bytes. */
export type RandomBytes = (count: number) => Uint8Array;

/** Randomness of the operating system, drawn in blocks because many small draws are slow. */
export function systemRandom(): RandomBytes {
  const pool = new Uint8Array(4096);
  let used = pool.length;
  return (count) => {
    if (used + count > pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    return pool.slice(used, (used += count));
  };
}

/** The same bytes for the same seed, for tests. */
export function seededRandom(seed: string): RandomBytes {
  let block = 0;
  let rest: number[] = [];
  return (count) => {
    while (rest.length < count) rest.push(...createHash("sha256").update(`${seed}/${block++}`).digest());
    const taken = rest.slice(0, count);
    rest = rest.slice(count);
    return Uint8Array.from(taken);
  };
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
const adjectives = [
  "aged",
  "bold",
  "calm",
  "dark",
  "empty",
  "falling",
  "green",
  "hidden",
  "icy",
  "late",
  "misty",
  "nameless",
  "old",
  "polished",
  "quiet",
  "red",
  "silent",
  "twilight",
  "weathered",
  "young",
];
const nouns = [
  "bird",
  "brook",
  "cloud",
  "dawn",
  "field",
  "fog",
  "glade",
  "hill",
  "lake",
  "leaf",
  "meadow",
  "moon",
  "night",
  "pine",
  "river",
  "sea",
  "shape",
  "snow",
  "star",
  "wind",
];

/** Generates every identifier of the service. */
export interface Ids {
  /** 16 characters, opaque. */
  app(): string;
  /** 14 hexadecimal characters, ascending: the rows of new Machines are neighbours, so that a commit writes few pages. */
  machine(now: number): string;
  /** `adjective-noun-1234`. */
  machineName(): string;
  /** 26 characters, ascending: versions and events. */
  ulid(now: number): string;
  volume(): string;
  snapshot(): string;
  /** Four hexadecimal characters that stand for a hardware zone. */
  zone(): string;
  privateIp(): string;
  /** An address in 198.18.0.0/15, which is reserved for tests. */
  ipv4(): string;
  /** An address in 2001:db8::/32, which is reserved for documentation, or a private one in fdaa::/16. Written as in RFC 5952. */
  ipv6(isPrivate: boolean): string;
  /** 10 characters for DNS records. */
  code(): string;
  cluster(): string;
  backup(): string;
  password(): string;
  /** ASSUMED: a lease nonce has 32 hexadecimal characters; the samples show 12, which is too short to guard a Machine. */
  nonce(): string;
  accessToken(): string;
}

/** An access token of 32 bytes. The prefix keeps a dash from being first: a command line would read it as a flag. */
export const tokenOf = (bytes: Uint8Array): string => `mcs_${Buffer.from(bytes).toString("base64url")}`;

/** Identifiers from a source of randomness. All are greater than `lastUlid`, even if the clock went backwards (F30). */
export function createIds(random: RandomBytes, lastUlid?: string): Ids {
  const floor = lastUlid ? decodeTime(lastUlid) + 1 : 0;
  const ulid = monotonicFactory(() => {
    const [a = 0, b = 0] = random(2);
    return (a * 256 + b) / 65536;
  });
  // ASSUMED: the id of a Machine begins with its creation time: milliseconds since 1970 in 10 characters, which repeat after 34
  // years. The other four distinguish Machines of the same millisecond.
  let [machineTime, machineCount] = [0, 0];
  const nextMachine = (now: number): string => {
    if (now > machineTime) {
      const [a = 0, b = 0] = random(2);
      [machineTime, machineCount] = [now, (a & 0x7f) * 256 + b];
    } else if (++machineCount > 0xffff) [machineTime, machineCount] = [machineTime + 1, 0];
    return (machineTime % 2 ** 40).toString(16).padStart(10, "0") + machineCount.toString(16).padStart(4, "0");
  };
  const hex = (bytes: number): string => Buffer.from(random(bytes)).toString("hex");
  const letters = (count: number): string => Array.from(random(count), (byte) => alphabet[byte % 36]).join("");
  const group = (): string => (0x1000 + (Number.parseInt(hex(2), 16) % 0xf000)).toString(16);
  const pick = (from: readonly string[]): string => from[(random(1)[0] ?? 0) % from.length] ?? "";
  return {
    app: () => letters(16),
    machine: (now) => nextMachine(Math.max(now, floor)),
    machineName: () => `${pick(adjectives)}-${pick(nouns)}-${1000 + (Number.parseInt(hex(2), 16) % 9000)}`,
    ulid: (now) => ulid(Math.max(now, floor)),
    volume: () => `vol_${letters(16)}`,
    snapshot: () => `vs_${letters(22)}`,
    zone: () => hex(2),
    privateIp: () => `fdaa:0:${hex(2)}:a7b:${hex(2)}:${hex(2)}:${hex(2)}:2`,
    ipv4() {
      const [a = 0, b = 0, c = 0] = random(3);
      return `198.${18 + (a & 1)}.${b}.${1 + (c % 254)}`;
    },
    ipv6: (isPrivate) => `${isPrivate ? "fdaa:0" : "2001:db8"}:${[group(), group(), group(), group()].join(":")}:0:1`,
    code: () => letters(10),
    cluster: () => letters(16),
    backup: () => `bk_${letters(16)}`,
    password: () => letters(24),
    nonce: () => hex(16),
    accessToken: () => tokenOf(random(32)),
  };
}
