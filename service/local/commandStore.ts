// The store that a command reads and changes: that of a data folder, or a draft of the store that members share.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { changesBody, changesHeaders, changesPath } from "../http/changesRoute.ts";
import { MemberKey } from "../http/memberKey.ts";
import { RemoteLog } from "../replication/remoteLog.ts";
import { copyStore } from "../store/copy.ts";
import { copyOfStore, Store } from "../store/database.ts";
import { readKey } from "../store/keyFile.ts";
import type { Running } from "../store/lock.ts";
import { isCopyFile } from "../store/memberCopy.ts";
import { openForCommand, requireStore } from "../store/openForCommand.ts";
import { keyFile } from "../store/vault.ts";
import { findRunning } from "./daemon.ts";
import { Problem } from "./problem.ts";
import { sendTo } from "./send.ts";

/** Opens the store of a data folder. Throws a StoreError, or a Problem, if it cannot be used. */
export function commandStore(folder: string): Store {
  const file = requireStore(folder);
  if (!isCopyFile(file)) return openForCommand(folder);
  const running = findRunning(folder);
  if (!running) throw copyOfStore(folder);
  return new DraftStore(file, running, memberKeyOf(folder));
}

/** The key that members and commands sign with. */
export function memberKeyOf(folder: string): MemberKey {
  const key = readKey(keyFile(folder));
  if (key === undefined) throw new Problem(`${keyFile(folder)} is damaged; restart the member`);
  return new MemberKey(key);
}

/** A draft of a member's copy: the leader makes what is changed here. */
class DraftStore extends Store {
  readonly #folder: string;

  constructor(copy: string, running: Running, key: MemberKey) {
    const folder = mkdtempSync(join(tmpdir(), "machines-command-"));
    const file = join(folder, "service.db");
    const source = new DatabaseSync(copy, { readOnly: true });
    copyStore(source, file);
    source.close();
    super(file, (db) => new RemoteLog(db, (changes) => send(running, key, changes)));
    this.#folder = folder;
  }

  override close(): void {
    super.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function send(running: Running, key: MemberKey, changes: Uint8Array): Promise<void> {
  const headers = { host: "localhost", ...changesHeaders(key, changes, Date.now()) };
  const answer = await sendTo(running, { method: "POST", path: changesPath, headers, body: changesBody(changes) });
  if (answer.status === 204) return;
  const { error } = JSON.parse(answer.text) as { readonly error?: string };
  throw new Problem(error ?? `the service answered ${answer.status}`);
}
