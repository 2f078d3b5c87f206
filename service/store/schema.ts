// The tables. A change appends a step; a file of a newer service is refused (store/database.ts).

/** Steps that upgrade a data folder's database; `PRAGMA user_version` is the number of completed ones. */
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
  `
  -- Tokens of one App, tokens that only read.
  ALTER TABLE tokens ADD COLUMN name TEXT;
  ALTER TABLE tokens ADD COLUMN app TEXT REFERENCES apps(id) ON DELETE CASCADE;
  ALTER TABLE tokens ADD COLUMN read_only INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX tokens_app ON tokens (app) WHERE app IS NOT NULL;

  ALTER TABLE apps ADD COLUMN secrets_version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE machines ADD COLUMN cpu_kind TEXT NOT NULL DEFAULT 'shared';
  UPDATE machines SET cpu_kind = coalesce(json_extract(config, '$.guest.cpu_kind'),
    iif(json_extract(config, '$.size') LIKE 'performance-%', 'performance', 'shared'));
  ALTER TABLE machines ADD COLUMN memory_limit_mb INTEGER;
  ALTER TABLE machines ADD COLUMN secrets BLOB;
  ALTER TABLE machines ADD COLUMN retried_from INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX machines_updated ON machines (updated_at, id);
  ALTER TABLE volumes ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
  UPDATE volumes SET updated_at = created_at;
  CREATE INDEX volumes_updated ON volumes (updated_at, id);
  UPDATE timers SET kind = CASE
    WHEN kind = 'machine.step' AND subject IN (SELECT id FROM machines WHERE state = 'stopped') THEN 'machine.retry'
    WHEN kind = 'machine.step' THEN 'runtime.step'
    WHEN kind = 'machine.exit' THEN 'runtime.exit'
    WHEN kind = 'machine.checks' THEN 'runtime.checks'
    ELSE kind END;

  -- Room is counted for each kind of CPU.
  DROP TRIGGER machine_made;
  DROP TRIGGER machine_destroyed;
  DROP TRIGGER machine_removed;
  DROP TABLE region_use;
  CREATE TABLE region_use (
    region TEXT NOT NULL, cpu_kind TEXT NOT NULL, machines INTEGER NOT NULL, PRIMARY KEY (region, cpu_kind)
  ) WITHOUT ROWID;
  INSERT INTO region_use SELECT region, cpu_kind, count(*) FROM machines WHERE destroyed_at IS NULL GROUP BY region, cpu_kind;
  CREATE TRIGGER machine_made AFTER INSERT ON machines BEGIN
    INSERT INTO region_use VALUES (new.region, new.cpu_kind, 1)
      ON CONFLICT (region, cpu_kind) DO UPDATE SET machines = machines + 1;
  END;
  CREATE TRIGGER machine_destroyed AFTER UPDATE OF destroyed_at ON machines
    WHEN old.destroyed_at IS NULL AND new.destroyed_at IS NOT NULL
    BEGIN UPDATE region_use SET machines = machines - 1 WHERE region = new.region AND cpu_kind = new.cpu_kind; END;
  CREATE TRIGGER machine_resized AFTER UPDATE OF cpu_kind ON machines
    WHEN new.destroyed_at IS NULL AND old.cpu_kind <> new.cpu_kind BEGIN
    UPDATE region_use SET machines = machines - 1 WHERE region = old.region AND cpu_kind = old.cpu_kind;
    INSERT INTO region_use VALUES (new.region, new.cpu_kind, 1)
      ON CONFLICT (region, cpu_kind) DO UPDATE SET machines = machines + 1;
  END;
  CREATE TRIGGER machine_removed AFTER DELETE ON machines WHEN old.destroyed_at IS NULL
    BEGIN UPDATE region_use SET machines = machines - 1 WHERE region = old.region AND cpu_kind = old.cpu_kind; END;

  -- What images name: tag to digest and labels. What is not listed gets a digest derived from its name.
  CREATE TABLE images (
    reference TEXT PRIMARY KEY, digest TEXT NOT NULL, labels TEXT NOT NULL
  ) WITHOUT ROWID;
  -- What the DNS answers for a hostname. What is not listed is set up as it must be.
  CREATE TABLE dns (hostname TEXT PRIMARY KEY, records TEXT NOT NULL) WITHOUT ROWID;

  CREATE TABLE ips (
    number INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    ip TEXT NOT NULL, type TEXT NOT NULL, region TEXT NOT NULL, service_name TEXT, network TEXT, network_org TEXT,
    created_at INTEGER NOT NULL
  );
  CREATE INDEX ips_app ON ips (app);
  -- An address that is shared is many Apps'; every other one is one App's.
  CREATE UNIQUE INDEX ips_own ON ips (ip) WHERE type <> 'shared_v4';

  CREATE TABLE hostnames (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, hostname TEXT NOT NULL,
    owner_code TEXT NOT NULL, acme_requested INTEGER NOT NULL, acme_status TEXT, acme_created_at INTEGER,
    issued_at INTEGER, expires_at INTEGER,
    custom_chain TEXT, custom_key BLOB, custom_status TEXT, custom_created_at INTEGER, custom_expires_at INTEGER,
    custom_issuer TEXT, custom_type TEXT,
    dns_seen INTEGER NOT NULL, ownership_seen INTEGER NOT NULL, attempts TEXT NOT NULL,
    rate_limited_until INTEGER, problems TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (app, hostname)
  ) WITHOUT ROWID;

  -- Values are sealed with the key beside the data.
  CREATE TABLE secrets (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, value BLOB NOT NULL,
    digest TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (app, name)
  ) WITHOUT ROWID;
  CREATE TABLE secret_keys (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, type TEXT NOT NULL,
    value BLOB NOT NULL, public_key BLOB, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (app, name)
  ) WITHOUT ROWID;

  CREATE TABLE clusters (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id), name TEXT NOT NULL,
    region TEXT NOT NULL, plan TEXT NOT NULL, status TEXT NOT NULL, disk_size_gb INTEGER NOT NULL,
    pg_major_version TEXT NOT NULL, pool_mode TEXT NOT NULL, postgis_enabled INTEGER NOT NULL, endpoints TEXT,
    storage_used_bytes INTEGER, created_at INTEGER NOT NULL, deleted_at INTEGER
  ) WITHOUT ROWID;
  CREATE INDEX clusters_org ON clusters (org, number);
  CREATE UNIQUE INDEX clusters_name ON clusters (org, name) WHERE status NOT IN ('deleting', 'deleted');
  CREATE TABLE attachments (
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, attached_at INTEGER NOT NULL, PRIMARY KEY (cluster, app)
  ) WITHOUT ROWID;
  CREATE TABLE databases (
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, name TEXT NOT NULL, created_at INTEGER NOT NULL,
    PRIMARY KEY (cluster, name)
  ) WITHOUT ROWID;
  CREATE TABLE extensions (
    cluster TEXT NOT NULL, database TEXT NOT NULL, name TEXT NOT NULL, schema TEXT NOT NULL, version TEXT NOT NULL,
    PRIMARY KEY (cluster, database, name),
    FOREIGN KEY (cluster, database) REFERENCES databases (cluster, name) ON DELETE CASCADE
  ) WITHOUT ROWID;
  CREATE TABLE database_users (
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, name TEXT NOT NULL, role TEXT NOT NULL,
    password BLOB NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (cluster, name)
  ) WITHOUT ROWID;
  CREATE TABLE backups (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    type TEXT NOT NULL, status TEXT NOT NULL, size_bytes INTEGER, contents TEXT NOT NULL,
    started_at INTEGER NOT NULL, finished_at INTEGER
  ) WITHOUT ROWID;
  CREATE INDEX backups_cluster ON backups (cluster, number);
  `,
  `
  -- SQLite reads a row without a rowid whole for every key it compares, large values too. Here rows have a rowid, their keys
  -- lie in indexes, and what may be large stands last in its row or in a table of its own: one client's large values cost
  -- nobody else anything.

  -- The secrets of an App as they were at a version, sealed, once for all Machines that have them. Those of before were
  -- sealed for one Machine each, and stay so.
  CREATE TABLE secret_sets (
    id INTEGER PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, version INTEGER, machine TEXT,
    value BLOB NOT NULL
  );
  CREATE UNIQUE INDEX secret_sets_version ON secret_sets (app, version);
  CREATE INDEX secret_sets_machine ON secret_sets (machine) WHERE machine IS NOT NULL;
  INSERT INTO secret_sets (app, machine, value)
    SELECT app, id, secrets FROM machines WHERE secrets IS NOT NULL AND destroyed_at IS NULL;

  CREATE TABLE new_machines (
    id TEXT PRIMARY KEY NOT NULL, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, region TEXT NOT NULL, state TEXT NOT NULL, version TEXT NOT NULL, private_ip TEXT NOT NULL,
    cordoned INTEGER NOT NULL, launch INTEGER NOT NULL, restarts INTEGER NOT NULL, retried_from INTEGER NOT NULL,
    cpu_kind TEXT NOT NULL, memory_limit_mb INTEGER, secret_set INTEGER, standby INTEGER NOT NULL,
    checks TEXT NOT NULL, checked_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, destroyed_at INTEGER,
    image_ref TEXT NOT NULL, brief TEXT NOT NULL, metadata TEXT
  );
  INSERT INTO new_machines SELECT id, app, name, region, state, version, private_ip,
      cordoned, launch, restarts, retried_from, cpu_kind, memory_limit_mb,
      (SELECT s.id FROM secret_sets s WHERE s.machine = m.id), instr(config, '"standbys"') > 0,
      checks, checked_at, created_at, updated_at, destroyed_at, image_ref,
      iif(json_valid(config),
        '{"image":' || (config -> '$.image') || coalesce(',"guest":' || (config -> '$.guest'), '') || '}', '{"image":""}'),
      metadata
    FROM machines m;

  -- The configuration of a version lies here alone, and apart from the metadata it came with.
  CREATE TABLE new_machine_versions (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, version TEXT NOT NULL, size INTEGER NOT NULL,
    metadata TEXT, config TEXT NOT NULL, PRIMARY KEY (machine, version)
  );
  INSERT INTO new_machine_versions SELECT machine, version, length(config),
      iif(json_valid(config), config -> '$.metadata', NULL), iif(json_valid(config), json_remove(config, '$.metadata'), config)
    FROM machine_versions;

  DROP TABLE machines;
  ALTER TABLE new_machines RENAME TO machines;
  DROP TABLE machine_versions;
  ALTER TABLE new_machine_versions RENAME TO machine_versions;
  CREATE INDEX machines_app ON machines (app, created_at, id);
  CREATE UNIQUE INDEX machines_name ON machines (app, name) WHERE destroyed_at IS NULL;
  CREATE INDEX machines_updated ON machines (updated_at, id);
  CREATE INDEX machines_standby ON machines (app) WHERE standby = 1;
  CREATE INDEX machines_secret_set ON machines (secret_set) WHERE secret_set IS NOT NULL;
  CREATE TRIGGER machine_made AFTER INSERT ON machines BEGIN
    INSERT INTO region_use VALUES (new.region, new.cpu_kind, 1)
      ON CONFLICT (region, cpu_kind) DO UPDATE SET machines = machines + 1;
  END;
  CREATE TRIGGER machine_destroyed AFTER UPDATE OF destroyed_at ON machines
    WHEN old.destroyed_at IS NULL AND new.destroyed_at IS NOT NULL
    BEGIN UPDATE region_use SET machines = machines - 1 WHERE region = new.region AND cpu_kind = new.cpu_kind; END;
  CREATE TRIGGER machine_resized AFTER UPDATE OF cpu_kind ON machines
    WHEN new.destroyed_at IS NULL AND old.cpu_kind <> new.cpu_kind BEGIN
    UPDATE region_use SET machines = machines - 1 WHERE region = old.region AND cpu_kind = old.cpu_kind;
    INSERT INTO region_use VALUES (new.region, new.cpu_kind, 1)
      ON CONFLICT (region, cpu_kind) DO UPDATE SET machines = machines + 1;
  END;
  CREATE TRIGGER machine_removed AFTER DELETE ON machines WHEN old.destroyed_at IS NULL
    BEGIN UPDATE region_use SET machines = machines - 1 WHERE region = old.region AND cpu_kind = old.cpu_kind; END;

  CREATE TABLE new_leases (
    machine TEXT PRIMARY KEY NOT NULL REFERENCES machines(id) ON DELETE CASCADE, nonce TEXT NOT NULL, owner TEXT NOT NULL,
    version TEXT NOT NULL, expires_at INTEGER NOT NULL, description TEXT NOT NULL
  );
  INSERT INTO new_leases SELECT machine, nonce, owner, version, expires_at, description FROM leases;
  DROP TABLE leases;
  ALTER TABLE new_leases RENAME TO leases;

  CREATE TABLE new_secrets (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, digest TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
  INSERT INTO new_secrets SELECT app, name, digest, created_at, updated_at, value FROM secrets;
  DROP TABLE secrets;
  ALTER TABLE new_secrets RENAME TO secrets;
  CREATE TABLE new_secret_keys (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, type TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, public_key BLOB, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
  INSERT INTO new_secret_keys SELECT app, name, type, created_at, updated_at, public_key, value FROM secret_keys;
  DROP TABLE secret_keys;
  ALTER TABLE new_secret_keys RENAME TO secret_keys;

  CREATE TABLE new_hostnames (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, hostname TEXT NOT NULL,
    owner_code TEXT NOT NULL, acme_requested INTEGER NOT NULL, acme_status TEXT, acme_created_at INTEGER,
    issued_at INTEGER, expires_at INTEGER,
    custom_status TEXT, custom_created_at INTEGER, custom_expires_at INTEGER, custom_issuer TEXT, custom_type TEXT,
    dns_seen INTEGER NOT NULL, ownership_seen INTEGER NOT NULL, attempts TEXT NOT NULL,
    rate_limited_until INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    problems TEXT NOT NULL, custom_key BLOB, custom_chain TEXT, PRIMARY KEY (app, hostname)
  );
  INSERT INTO new_hostnames SELECT app, hostname, owner_code, acme_requested, acme_status, acme_created_at,
      issued_at, expires_at, custom_status, custom_created_at, custom_expires_at, custom_issuer, custom_type,
      dns_seen, ownership_seen, attempts, rate_limited_until, created_at, updated_at, problems, custom_key, custom_chain
    FROM hostnames;
  DROP TABLE hostnames;
  ALTER TABLE new_hostnames RENAME TO hostnames;

  CREATE TABLE new_backups (
    id TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL UNIQUE,
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, type TEXT NOT NULL, status TEXT NOT NULL,
    size_bytes INTEGER, started_at INTEGER NOT NULL, finished_at INTEGER, contents TEXT NOT NULL
  );
  INSERT INTO new_backups SELECT id, number, cluster, type, status, size_bytes, started_at, finished_at, contents FROM backups;
  DROP TABLE backups;
  ALTER TABLE new_backups RENAME TO backups;
  CREATE INDEX backups_cluster ON backups (cluster, number);

  -- Deleting an App looks for what is its own; without these it would read what is everybody's.
  CREATE INDEX snapshots_app ON snapshots (app);
  CREATE INDEX attachments_app ON attachments (app);
  `,
  `
  -- Grows with what is written; the mark beside the store tells how far it was.
  CREATE TABLE written (count INTEGER NOT NULL);
  INSERT INTO written VALUES (0);
  `,
  `
  -- Timers are looked for in memory. A subject has one of a kind, and no index beside its row has to be kept up to date.
  CREATE TABLE new_timers (
    subject TEXT NOT NULL, kind TEXT NOT NULL, due INTEGER NOT NULL, id INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (subject, kind)
  ) WITHOUT ROWID;
  INSERT OR REPLACE INTO new_timers SELECT subject, kind, due, id, data FROM timers ORDER BY id;
  DROP TABLE timers;
  ALTER TABLE new_timers RENAME TO timers;
  `,
  `
  -- The result of each check, for runtimes that make them.
  ALTER TABLE machines ADD COLUMN check_results TEXT;
  `,
  `
  -- For runtimes that keep data: where it comes from, whether it is written (NULL: the runtime keeps none), and what to discard.
  ALTER TABLE volumes ADD COLUMN source TEXT;
  ALTER TABLE volumes ADD COLUMN written INTEGER;
  ALTER TABLE snapshots ADD COLUMN written INTEGER;
  ALTER TABLE snapshots ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE discarded (id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
  CREATE TRIGGER volume_discarded AFTER DELETE ON volumes WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;
  CREATE TRIGGER snapshot_discarded AFTER DELETE ON snapshots WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;
  `,
  `
  -- For lists of many Machines, which do not read the configurations.
  ALTER TABLE machines ADD COLUMN size TEXT;
  ALTER TABLE machines ADD COLUMN has_checks INTEGER NOT NULL DEFAULT 0;
  UPDATE machines SET size = v.config ->> '$.size',
      has_checks = EXISTS (SELECT 1 FROM json_each(v.config, '$.checks'))
        OR EXISTS (SELECT 1 FROM json_each(v.config, '$.services') s, json_each(s.value, '$.checks'))
    FROM machine_versions v
    WHERE v.machine = machines.id AND v.version = machines.version AND json_valid(v.config)
      AND (instr(v.config, '"size":') > 0 OR instr(v.config, '"checks":') > 0);
  `,
  `
  -- For engines that run servers: what a cluster begins with, and the changes that its server does not have yet.
  ALTER TABLE clusters ADD COLUMN source TEXT;
  CREATE TABLE cluster_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    change TEXT NOT NULL
  );
  CREATE INDEX cluster_changes_cluster ON cluster_changes (cluster, number);
  `,
  `
  -- For issuers of certificates that can be served.
  ALTER TABLE hostnames ADD COLUMN issued_chain TEXT;
  ALTER TABLE hostnames ADD COLUMN issued_key BLOB;
  ALTER TABLE hostnames ADD COLUMN issued_by TEXT;
  ALTER TABLE hostnames ADD COLUMN acme_order TEXT;
  `,
  `
  -- For pages of an organization, which do not read what other organizations have.
  ALTER TABLE machines ADD COLUMN org INTEGER NOT NULL DEFAULT 0;
  UPDATE machines SET org = (SELECT a.org FROM apps a WHERE a.id = machines.app);
  DROP INDEX machines_updated;
  CREATE INDEX machines_updated ON machines (org, updated_at, id);
  ALTER TABLE volumes ADD COLUMN org INTEGER NOT NULL DEFAULT 0;
  UPDATE volumes SET org = (SELECT a.org FROM apps a WHERE a.id = volumes.app);
  DROP INDEX volumes_updated;
  CREATE INDEX volumes_updated ON volumes (org, updated_at, id);
  `,
  `
  -- For exit events: restarts since the last start on request, also those that no longer count as recent.
  ALTER TABLE machines ADD COLUMN restarted INTEGER NOT NULL DEFAULT 0;
  UPDATE machines SET restarted = restarts;
  `,
  `
  -- A hostname belongs to one App at a time. Of several Apps, it is the one with a certificate, or the first that asked.
  ALTER TABLE hostnames ADD COLUMN owned_at INTEGER;
  UPDATE hostnames SET owned_at = created_at WHERE (app, hostname) IN (
    SELECT app, hostname FROM (
      SELECT h.app, h.hostname, row_number() OVER (PARTITION BY h.hostname ORDER BY
          ifnull(h.acme_status, '') = 'active' OR ifnull(h.custom_status, '') = 'active' DESC, h.created_at, h.app) AS place
        FROM hostnames h JOIN apps a ON a.id = h.app
        WHERE a.deleting < 2 AND h.hostname NOT LIKE '%.localhost' AND h.hostname NOT LIKE '%.machines.test'
          AND (h.dns_seen = 1 OR h.ownership_seen = 1 OR h.acme_status = 'active' OR h.custom_status = 'active'))
      WHERE place = 1);
  UPDATE hostnames SET
      acme_status = iif(acme_status IS NULL, NULL, 'pending_ownership'),
      custom_status = iif(custom_status IS NULL, NULL, 'pending_ownership'),
      issued_at = NULL, expires_at = NULL, issued_chain = NULL, issued_key = NULL, issued_by = NULL, acme_order = NULL
    WHERE owned_at IS NULL AND (hostname LIKE '%.localhost' OR hostname LIKE '%.machines.test'
      OR hostname IN (SELECT hostname FROM hostnames WHERE owned_at IS NOT NULL));
  CREATE UNIQUE INDEX hostnames_owner ON hostnames (hostname) WHERE owned_at IS NOT NULL;
  -- For the names that a wildcard stands for.
  CREATE INDEX hostnames_below ON hostnames (substr(hostname, instr(hostname, '.') + 1)) WHERE owned_at IS NOT NULL;
  `,
];
