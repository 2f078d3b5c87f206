// Clocks of processes that a test sets, by libfaketime. It needs Linux.
import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { folder } from "../command.ts";

// Debian and Fedora install it here.
const folders = ["/usr/lib", "/usr/lib64"];

/** The installed library; undefined if there is none. */
export function findFaketime(): string | undefined {
  const within = folders.flatMap((one) => (existsSync(one) ? readdirSync(one).map((name) => join(one, name)) : []));
  return [...folders, ...within]
    .map((one) => join(one, "faketime/libfaketimeMT.so.1"))
    .find((library) => existsSync(library));
}

/** The clock of one or more processes. */
export class WrongClock {
  readonly #file = join(dirname(folder()), "clock");
  /** The variables of their environment. */
  readonly env: NodeJS.ProcessEnv;

  constructor(library: string) {
    this.set("+0");
    this.env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: "1",
      // What cannot be set on a computer stays right. The name differs between versions.
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      DONT_FAKE_MONOTONIC: "1",
    };
  }

  /** By how much it is wrong from now on: `+3d`, `-5h`. */
  set(by: string): void {
    // A process never reads a half.
    writeFileSync(`${this.#file}.new`, `${by}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
