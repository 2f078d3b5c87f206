// The tables. A change appends a step; a file written by a newer service is refused (store/database.ts).

/** Steps that bring a data folder's database up to date; `PRAGMA user_version` counts those done. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE orgs (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL
  );
  CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, org INTEGER NOT NULL REFERENCES orgs(id), owner TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER
  ) WITHOUT ROWID;
  CREATE TABLE apps (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id),
    name TEXT NOT NULL UNIQUE, role TEXT, network TEXT NOT NULL, idempotency_key TEXT, deleting INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX apps_key ON apps (org, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX apps_org ON apps (org, number);
  CREATE TABLE machines (
    id TEXT PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, region TEXT NOT NULL, state TEXT NOT NULL, version TEXT NOT NULL, private_ip TEXT NOT NULL,
    image_ref TEXT NOT NULL, config TEXT NOT NULL, metadata TEXT, cordoned INTEGER NOT NULL, launch INTEGER NOT NULL,
    restarts INTEGER NOT NULL, checks TEXT NOT NULL, checked_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, destroyed_at INTEGER
  ) WITHOUT ROWID;
  CREATE INDEX machines_app ON machines (app, created_at, id);
  CREATE UNIQUE INDEX machines_name ON machines (app, name) WHERE destroyed_at IS NULL;
  CREATE TABLE machine_versions (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, version TEXT NOT NULL, config TEXT NOT NULL,
    PRIMARY KEY (machine, version)
  ) WITHOUT ROWID;
  CREATE TABLE events (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, id TEXT NOT NULL,
    type TEXT NOT NULL, status TEXT NOT NULL, source TEXT NOT NULL, timestamp INTEGER NOT NULL, request TEXT,
    version TEXT NOT NULL, moved INTEGER NOT NULL,
    PRIMARY KEY (machine, id)
  ) WITHOUT ROWID;
  CREATE TABLE leases (
    machine TEXT PRIMARY KEY REFERENCES machines(id) ON DELETE CASCADE, nonce TEXT NOT NULL, owner TEXT NOT NULL,
    description TEXT NOT NULL, version TEXT NOT NULL, expires_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE volumes (
    id TEXT PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, state TEXT NOT NULL, region TEXT NOT NULL, zone TEXT NOT NULL, size_gb INTEGER NOT NULL,
    encrypted INTEGER NOT NULL, fstype TEXT NOT NULL, mounted INTEGER NOT NULL, snapshot_retention INTEGER NOT NULL,
    auto_backup INTEGER NOT NULL, machine TEXT, created_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX volumes_app ON volumes (app, created_at, id);
  CREATE INDEX volumes_machine ON volumes (machine) WHERE machine IS NOT NULL;
  CREATE TABLE snapshots (
    id TEXT PRIMARY KEY, volume TEXT NOT NULL, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    status TEXT NOT NULL, digest TEXT NOT NULL, size_gb INTEGER NOT NULL, retention_days INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX snapshots_volume ON snapshots (volume, created_at);
  CREATE TABLE timers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, due INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, data TEXT NOT NULL
  );
  CREATE INDEX timers_due ON timers (due, id);
  CREATE INDEX timers_subject ON timers (subject, kind);

  -- Live Machines per region, so that asking for room does not count them.
  CREATE TABLE region_use (region TEXT PRIMARY KEY, machines INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TRIGGER machine_made AFTER INSERT ON machines BEGIN
    INSERT INTO region_use VALUES (new.region, 1) ON CONFLICT (region) DO UPDATE SET machines = machines + 1;
  END;
  CREATE TRIGGER machine_destroyed AFTER UPDATE OF destroyed_at ON machines
    WHEN old.destroyed_at IS NULL AND new.destroyed_at IS NOT NULL
    BEGIN UPDATE region_use SET machines = machines - 1 WHERE region = new.region; END;
  CREATE TRIGGER machine_removed AFTER DELETE ON machines WHEN old.destroyed_at IS NULL
    BEGIN UPDATE region_use SET machines = machines - 1 WHERE region = old.region; END;
  `,
];
