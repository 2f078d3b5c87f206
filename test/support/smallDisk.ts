// A disk that a test fills.
import { execFileSync } from "node:child_process";
import { mkdirSync, statfsSync } from "node:fs";
import { afterThisTest } from "./leftovers.ts";

/** A file system that is mounted until the end of the test. */
export interface SmallDisk {
  resize(size: number): void;
  /** Leaves no space. */
  fill(): void;
}

/** A file system of a size in a folder; undefined if this user may not mount one. */
export function mountSmall(folder: string, size: number): SmallDisk | undefined {
  mkdirSync(folder, { recursive: true });
  const mount = (options: string): void =>
    void execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "pipe" });
  try {
    mount(`size=${size}`);
  } catch {
    return undefined;
  }
  afterThisTest(() => void execFileSync("umount", ["--lazy", folder]));
  const resize = (next: number): void => mount(`remount,size=${next}`);
  const isFilled = (): boolean => {
    const { blocks, bfree, bsize } = statfsSync(folder);
    try {
      resize((blocks - bfree) * bsize);
      return true;
    } catch {
      // More was written in between.
      return false;
    }
  };
  return {
    resize,
    fill() {
      while (!isFilled());
    },
  };
}
