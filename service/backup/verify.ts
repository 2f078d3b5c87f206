// A rehearsal: restores a backup into a scratch folder, and compares all of it with what was stored.
import { reasonOf } from "../reasonOf.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { storeFile } from "../store/database.ts";
import { reading } from "../store/reading.ts";
import { importStore } from "../store/transfer.ts";
import { countsOf } from "./backUp.ts";
import { clusterPart, files, type Backup, type Manifest } from "./contents.ts";
import { hashOfFile, hashOfFolder, requireSame } from "./hashes.ts";
import { readVolume } from "./restore.ts";
import type { Restic } from "./restic.ts";

/** The result of a rehearsal. */
export interface Verified {
  readonly bytes: number;
  /** What is wrong, as sentences. */
  readonly problems: readonly string[];
}

/** Restores a backup into a scratch folder, and compares it. */
export async function verify(restic: Restic, { manifest, snapshot }: Backup): Promise<Verified> {
  const scratch = await mkdtemp(join(tmpdir(), "machines-verify-"));
  const problems = manifest.missing.map(({ kind, id, reason }) => `${kind} ${id} is missing: ${reason}`);
  let bytes = 0;
  const look = async (what: string, work: () => Promise<number>): Promise<void> => {
    try {
      bytes += await work();
    } catch (error) {
      problems.push(`${what}: ${reasonOf(error)}`);
    }
  };
  try {
    await look("the repository", async () => (await restic.check(), 0));
    const draft = join(scratch, "draft");
    await look("the store", async () => {
      await restic.restore(snapshot, "/", draft);
      return verifyStore(draft, join(scratch, "data"), manifest);
    });
    for (const [id, cluster] of Object.entries(manifest.clusters))
      await look(`cluster ${id}`, async () => {
        const found = await hashOfFolder(join(draft, clusterPart(id)));
        requireSame(found.sha256, cluster.sha256);
        return found.bytes;
      });
    for (const [id, { stored, sha256, bytes: size }] of Object.entries(manifest.volumes))
      await look(`volume ${id}`, async () => {
        await readVolume(restic, id, stored, sha256, drain);
        return size;
      });
    return { bytes, problems };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function verifyStore(draft: string, folder: string, { store, rows }: Manifest): Promise<number> {
  const file = join(draft, files.store);
  requireSame(await hashOfFile(file), store);
  // It reads the whole file, and compares its structure.
  importStore(folder, file);
  return reading(storeFile(folder), (db) => {
    const found: Readonly<Record<string, number>> = { ...countsOf(db), export: rows["export"] ?? 0 };
    for (const [table, count] of Object.entries(rows))
      if (found[table] !== count) throw new Error(`its table ${table} has ${found[table] ?? 0} rows, not ${count}`);
    return Number(
      db.prepare("SELECT page_count * page_size AS n FROM pragma_page_count(), pragma_page_size()").get()?.["n"],
    );
  });
}

const drain = (archive: Readable): Promise<void> =>
  pipeline(
    archive,
    new Writable({
      write(_chunk, _encoding, done) {
        done();
      },
    }),
  );
