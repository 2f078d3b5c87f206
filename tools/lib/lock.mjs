// A lock between processes: a file that contains its owner's pid, and is taken over when the owner is gone.
import fs from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { heartbeat, say } from "./process.mjs";

const STALE = 60_000; // an owner touches its lock every 5 s, because its pid could be reused

/** Whether a process of that id runs. One that has exited and was not reaped by its parent does not. */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return error.code === "EPERM";
  }
}

function isZombie(pid) {
  try {
    return /^\d+ \(.*\) Z/s.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false; // not Linux
  }
}

/** Acquires the lock if it is free; otherwise returns the pid of its owner. */
export function tryLock(file) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const mine = `${file}.${process.pid}`; // written separately and linked into place, so that a lock is never empty
  fs.writeFileSync(mine, `${process.pid}`);
  try {
    fs.linkSync(mine, file);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    const owner = currentOwner(file);
    if (owner !== undefined) return { owner };
    // Gone: move the old lock away. If another process has taken it over in between, restore its lock.
    const old = `${file}.old-${process.pid}`;
    try {
      fs.renameSync(file, old);
      if (currentOwner(old) !== undefined) fs.linkSync(old, file);
    } catch {
      // another process was faster; it has the lock now
    }
    fs.rmSync(old, { force: true });
    return tryLock(file);
  } finally {
    fs.rmSync(mine, { force: true });
  }
  const touch = setInterval(() => {
    try {
      fs.utimesSync(file, new Date(), new Date());
    } catch {
      // removed under us: nothing to keep alive
    }
  }, 5_000);
  touch.unref();
  const release = () => {
    clearInterval(touch);
    process.off("exit", release);
    try {
      if (fs.readFileSync(file, "utf8") === `${process.pid}`) fs.rmSync(file);
    } catch {
      // gone already
    }
  };
  process.on("exit", release);
  return { release };
}

function currentOwner(file) {
  try {
    const owner = Number(fs.readFileSync(file, "utf8"));
    const fresh = Date.now() - fs.statSync(file).mtimeMs < STALE;
    return fresh && Number.isInteger(owner) && owner > 0 && isAlive(owner) ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Runs `work` while holding the lock, after waiting for its owner. */
export async function withLock(file, what, work) {
  let lock = tryLock(file);
  if (lock.owner !== undefined) {
    say(`Waiting for process ${lock.owner}, which is ${what} …`);
    const end = heartbeat(() => `still waiting for process ${lock.owner ?? ""}`);
    try {
      while (lock.owner !== undefined) {
        await sleep(200);
        lock = tryLock(file);
      }
    } finally {
      end();
    }
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}
