// Where the parts of a cluster are.
import { basename, join } from "node:path";

/** The folders and files of a cluster. */
export const pathsOf = (folder: string) => ({
  /** The cluster. */
  id: basename(folder),
  folder,
  data: join(folder, "data"),
  /** The data while it is being written. */
  draft: join(folder, "data.draft"),
  wal: join(folder, "wal"),
  backups: join(folder, "backups"),
  log: join(folder, "server.log"),
  pooler: join(folder, "pooler"),
  /** What a copy recovers from, with the changes themselves. */
  recovery: join(folder, "recovery.json"),
  changes: join(folder, "changes"),
  /** What a backup of the service had of it: `base` and `wal`. */
  restored: join(folder, "restored"),
  /** The first file of changes that the last stored backup of the service needs. */
  storedSince: join(folder, "stored-since"),
  configuration: join(folder, "postgresql.conf"),
  rules: join(folder, "pg_hba.conf"),
  certificate: join(folder, "tls.crt"),
  key: join(folder, "tls.key"),
  /** The certificate with which the service enters as superuser, and the same with its key. */
  entry: join(folder, "superuser.crt"),
  entryKey: join(folder, "superuser.key"),
});

/** The folders and files of a cluster. */
export type Paths = ReturnType<typeof pathsOf>;
