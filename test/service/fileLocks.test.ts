// The locks of SQLite on its files. A process that closes any descriptor of a file loses all of its locks on it. Another process then
// takes the store for one that nobody uses, and cuts its index, which the first one has mapped: that one ends with SIGBUS.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { usualBounds } from "../../service/history/history.ts";
import { HistoryStore } from "../../service/history/historyStore.ts";
import { Store } from "../../service/store/database.ts";
import { hasLocks, locksStore } from "../support/fileLocks.ts";
import { afterThisTest } from "../support/leftovers.ts";

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "machines-locks-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "service.db");
}

test.runIf(hasLocks)("a store that the same process opens again stays locked for other processes", () => {
  const file = newFile();
  const first = new Store(file);
  afterThisTest(() => first.close());
  expect(locksStore(process.pid, file)).toBe(true);
  const second = new Store(file);
  afterThisTest(() => second.close());
  expect(locksStore(process.pid, file)).toBe(true);
});

test.runIf(hasLocks)("a history that is open stays locked for other processes", () => {
  const file = newFile();
  const history = new HistoryStore(file, usualBounds);
  afterThisTest(() => history.close());
  expect(locksStore(process.pid, file)).toBe(true);
  expect([file, `${file}-wal`, `${file}-shm`].map((one) => statSync(one).mode & 0o777)).toEqual([0o600, 0o600, 0o600]);
});
