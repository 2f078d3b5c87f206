// The tables, and the steps to them from older stores. A file of a newer service is refused (store/database.ts).
//
// SQLite reads a row without a rowid whole for every key it compares, large values too. Rows that may be large have a rowid
// therefore, their keys lie in indexes, and what may be large stands last in its row or in a table of its own: the large values of one
// client do not slow down others.

/** The tables of {@link firstSchema}. A released text never changes: a store that exists has them already. */
const tables = `
  CREATE TABLE orgs (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL
  );
  -- Of one App, with \`app\`.
  CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, org INTEGER NOT NULL REFERENCES orgs(id), owner TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER, name TEXT,
    app TEXT REFERENCES apps(id) ON DELETE CASCADE, read_only INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE INDEX tokens_app ON tokens (app) WHERE app IS NOT NULL;
  CREATE TABLE apps (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id),
    name TEXT NOT NULL UNIQUE, role TEXT, network TEXT NOT NULL, idempotency_key TEXT, deleting INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL, secrets_version INTEGER NOT NULL DEFAULT 0
  );
  CREATE UNIQUE INDEX apps_key ON apps (org, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX apps_org ON apps (org, number);

  -- check_results: of each check, for runtimes that make them. size, has_checks: for lists of many Machines, which do not read
  -- the configurations. restarted: restarts since the last start on request, also those that no longer count as recent.
  CREATE TABLE machines (
    id TEXT PRIMARY KEY NOT NULL, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, region TEXT NOT NULL, state TEXT NOT NULL, version TEXT NOT NULL, private_ip TEXT NOT NULL,
    cordoned INTEGER NOT NULL, launch INTEGER NOT NULL, restarts INTEGER NOT NULL, retried_from INTEGER NOT NULL,
    cpu_kind TEXT NOT NULL, memory_limit_mb INTEGER, secret_set INTEGER, standby INTEGER NOT NULL,
    checks TEXT NOT NULL, checked_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, destroyed_at INTEGER,
    image_ref TEXT NOT NULL, brief TEXT NOT NULL, metadata TEXT, check_results TEXT, size TEXT,
    has_checks INTEGER NOT NULL DEFAULT 0, org INTEGER NOT NULL DEFAULT 0, restarted INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX machines_app ON machines (app, created_at, id);
  CREATE UNIQUE INDEX machines_name ON machines (app, name) WHERE destroyed_at IS NULL;
  -- For pages of an organization, which do not read what other organizations have.
  CREATE INDEX machines_updated ON machines (org, updated_at, id);
  CREATE INDEX machines_standby ON machines (app) WHERE standby = 1;
  CREATE INDEX machines_secret_set ON machines (secret_set) WHERE secret_set IS NOT NULL;
  -- The configuration of a version lies here alone, and apart from the metadata it came with.
  CREATE TABLE machine_versions (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, version TEXT NOT NULL, size INTEGER NOT NULL,
    metadata TEXT, config TEXT NOT NULL, PRIMARY KEY (machine, version)
  );
  CREATE TABLE events (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, id TEXT NOT NULL,
    type TEXT NOT NULL, status TEXT NOT NULL, source TEXT NOT NULL, timestamp INTEGER NOT NULL, request TEXT,
    version TEXT NOT NULL, moved INTEGER NOT NULL,
    PRIMARY KEY (machine, id)
  ) WITHOUT ROWID;
  CREATE TABLE leases (
    machine TEXT PRIMARY KEY NOT NULL REFERENCES machines(id) ON DELETE CASCADE, nonce TEXT NOT NULL, owner TEXT NOT NULL,
    version TEXT NOT NULL, expires_at INTEGER NOT NULL, description TEXT NOT NULL
  );

  -- Live Machines per region and kind of CPU, so that asking for room does not count them.
  CREATE TABLE region_use (
    region TEXT NOT NULL, cpu_kind TEXT NOT NULL, machines INTEGER NOT NULL, PRIMARY KEY (region, cpu_kind)
  ) WITHOUT ROWID;
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

  -- For runtimes that keep data: source says where it comes from, written whether it is written (NULL: the runtime keeps none).
  CREATE TABLE volumes (
    id TEXT PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, state TEXT NOT NULL, region TEXT NOT NULL, zone TEXT NOT NULL, size_gb INTEGER NOT NULL,
    encrypted INTEGER NOT NULL, fstype TEXT NOT NULL, mounted INTEGER NOT NULL, snapshot_retention INTEGER NOT NULL,
    auto_backup INTEGER NOT NULL, machine TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL DEFAULT 0,
    source TEXT, written INTEGER, org INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE INDEX volumes_app ON volumes (app, created_at, id);
  CREATE INDEX volumes_machine ON volumes (machine) WHERE machine IS NOT NULL;
  CREATE INDEX volumes_updated ON volumes (org, updated_at, id);
  CREATE TABLE snapshots (
    id TEXT PRIMARY KEY, volume TEXT NOT NULL, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    status TEXT NOT NULL, digest TEXT NOT NULL, size_gb INTEGER NOT NULL, retention_days INTEGER NOT NULL,
    created_at INTEGER NOT NULL, written INTEGER, bytes INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE INDEX snapshots_volume ON snapshots (volume, created_at);
  -- Deleting an App looks for what is its own; without an index it would read what is everybody's.
  CREATE INDEX snapshots_app ON snapshots (app);
  -- What the runtime has to discard.
  CREATE TABLE discarded (id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
  CREATE TRIGGER volume_discarded AFTER DELETE ON volumes WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;
  CREATE TRIGGER snapshot_discarded AFTER DELETE ON snapshots WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;

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

  -- issued_chain, issued_key, issued_by, acme_order: for issuers of certificates that can be served.
  CREATE TABLE hostnames (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, hostname TEXT NOT NULL,
    owner_code TEXT NOT NULL, acme_requested INTEGER NOT NULL, acme_status TEXT, acme_created_at INTEGER,
    issued_at INTEGER, expires_at INTEGER,
    custom_status TEXT, custom_created_at INTEGER, custom_expires_at INTEGER, custom_issuer TEXT, custom_type TEXT,
    dns_seen INTEGER NOT NULL, ownership_seen INTEGER NOT NULL, attempts TEXT NOT NULL,
    rate_limited_until INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    problems TEXT NOT NULL, custom_key BLOB, custom_chain TEXT,
    issued_chain TEXT, issued_key BLOB, issued_by TEXT, acme_order TEXT, owned_at INTEGER, PRIMARY KEY (app, hostname)
  );
  -- A hostname belongs to one App at a time.
  CREATE UNIQUE INDEX hostnames_owner ON hostnames (hostname) WHERE owned_at IS NOT NULL;
  -- For the names that a wildcard stands for.
  CREATE INDEX hostnames_below ON hostnames (substr(hostname, instr(hostname, '.') + 1)) WHERE owned_at IS NOT NULL;

  -- Values are sealed with the key beside the data.
  CREATE TABLE secrets (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, digest TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
  CREATE TABLE secret_keys (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, type TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, public_key BLOB, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
  -- The secrets of an App as they were at a version, sealed, once for all Machines that have them. A store that is older than
  -- such sets has some that were sealed for one Machine each, and no version.
  CREATE TABLE secret_sets (
    id INTEGER PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, version INTEGER, machine TEXT,
    value BLOB NOT NULL
  );
  CREATE UNIQUE INDEX secret_sets_version ON secret_sets (app, version);
  CREATE INDEX secret_sets_machine ON secret_sets (machine) WHERE machine IS NOT NULL;

  -- source: what a cluster begins with, for engines that run servers.
  CREATE TABLE clusters (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id), name TEXT NOT NULL,
    region TEXT NOT NULL, plan TEXT NOT NULL, status TEXT NOT NULL, disk_size_gb INTEGER NOT NULL,
    pg_major_version TEXT NOT NULL, pool_mode TEXT NOT NULL, postgis_enabled INTEGER NOT NULL, endpoints TEXT,
    storage_used_bytes INTEGER, created_at INTEGER NOT NULL, deleted_at INTEGER, source TEXT
  ) WITHOUT ROWID;
  CREATE INDEX clusters_org ON clusters (org, number);
  CREATE UNIQUE INDEX clusters_name ON clusters (org, name) WHERE status NOT IN ('deleting', 'deleted');
  CREATE TABLE attachments (
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, attached_at INTEGER NOT NULL, PRIMARY KEY (cluster, app)
  ) WITHOUT ROWID;
  CREATE INDEX attachments_app ON attachments (app);
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
    id TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL UNIQUE,
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, type TEXT NOT NULL, status TEXT NOT NULL,
    size_bytes INTEGER, started_at INTEGER NOT NULL, finished_at INTEGER, contents TEXT NOT NULL
  );
  CREATE INDEX backups_cluster ON backups (cluster, number);
  -- The changes that the server of a cluster does not have yet.
  CREATE TABLE cluster_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    change TEXT NOT NULL
  );
  CREATE INDEX cluster_changes_cluster ON cluster_changes (cluster, number);

  -- Timers are looked for in memory. A subject has one of a kind, and no index beside its row has to be kept up to date.
  CREATE TABLE timers (
    subject TEXT NOT NULL, kind TEXT NOT NULL, due INTEGER NOT NULL, id INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (subject, kind)
  ) WITHOUT ROWID;
  -- Grows with what is written; the mark beside the store tells how far it was.
  CREATE TABLE written (count INTEGER NOT NULL);
  INSERT INTO written VALUES (0);
`;

/** The number of the schema that {@link tables} makes. Stores of older ones were never released, and are refused. */
export const firstSchema = 13;

/** Steps from {@link firstSchema} on, each to the next schema. A change of a table appends one; new stores run all of them. */
export const migrations: readonly string[] = [
  // Tokens have a role, an end, a last use, and may be for several Apps or a network; trusts give them to workflows.
  `
  CREATE TABLE trusts (
    id TEXT PRIMARY KEY NOT NULL, org INTEGER NOT NULL REFERENCES orgs(id), name TEXT NOT NULL, issuer TEXT NOT NULL,
    audience TEXT NOT NULL, claims TEXT NOT NULL, role TEXT NOT NULL, network TEXT, of_apps INTEGER NOT NULL,
    is_reusable INTEGER NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER
  ) WITHOUT ROWID;
  CREATE TABLE trust_apps (
    trust TEXT NOT NULL REFERENCES trusts(id) ON DELETE CASCADE, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    PRIMARY KEY (trust, app)
  ) WITHOUT ROWID;
  CREATE INDEX trust_apps_app ON trust_apps (app);
  CREATE TRIGGER trust_without_apps AFTER DELETE ON trust_apps
    WHEN NOT EXISTS (SELECT 1 FROM trust_apps WHERE trust = old.trust)
    BEGIN DELETE FROM trusts WHERE id = old.trust; END;
  -- Identity tokens that were exchanged, until they expire.
  CREATE TABLE exchanged (hash TEXT PRIMARY KEY NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;

  -- of_apps: whether it is restricted to Apps.
  CREATE TABLE tokens_with_roles (
    hash TEXT PRIMARY KEY NOT NULL, org INTEGER NOT NULL REFERENCES orgs(id), owner TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER, name TEXT, role TEXT NOT NULL, network TEXT, of_apps INTEGER NOT NULL,
    trust TEXT REFERENCES trusts(id) ON DELETE CASCADE, used_at INTEGER
  ) WITHOUT ROWID;
  CREATE TABLE token_apps (
    token TEXT NOT NULL REFERENCES tokens(hash) ON DELETE CASCADE, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    PRIMARY KEY (token, app)
  ) WITHOUT ROWID;
  INSERT INTO token_apps SELECT hash, app FROM tokens WHERE app IS NOT NULL;
  INSERT INTO tokens_with_roles
    SELECT hash, org, owner, created_at, expires_at, name,
      CASE WHEN read_only = 1 THEN 'read' WHEN app IS NULL THEN 'own' ELSE 'deploy' END, NULL, app IS NOT NULL, NULL, NULL
    FROM tokens;
  DROP TABLE tokens;
  ALTER TABLE tokens_with_roles RENAME TO tokens;
  CREATE INDEX token_apps_app ON token_apps (app);
  CREATE INDEX tokens_trust ON tokens (trust) WHERE trust IS NOT NULL;
  CREATE INDEX tokens_expires ON tokens (expires_at) WHERE trust IS NOT NULL;
  CREATE TRIGGER token_without_apps AFTER DELETE ON token_apps
    WHEN NOT EXISTS (SELECT 1 FROM token_apps WHERE token = old.token)
    BEGIN DELETE FROM tokens WHERE hash = old.token; END;
  `,
  // Certificates of the service's own names: its hostname, and those of Apps below its domain.
  `
  CREATE TABLE own_certificates (
    name TEXT PRIMARY KEY NOT NULL, chain TEXT, key BLOB, issued_by TEXT, issued_at INTEGER, expires_at INTEGER,
    added_at INTEGER NOT NULL, failures INTEGER NOT NULL, again_at INTEGER, limited_until INTEGER, problem TEXT
  ) WITHOUT ROWID;
  `,
  // A trust may be for people who sign in to the console, instead of workflows.
  "ALTER TABLE trusts ADD COLUMN of_people INTEGER NOT NULL DEFAULT 0",
  // Quotas of organizations and Apps. `used` is counted when a quota is set, and then kept by triggers.
  `
  ALTER TABLE machines ADD COLUMN memory_mb INTEGER NOT NULL DEFAULT 0;
  UPDATE machines SET memory_mb = coalesce(
    brief ->> '$.guest.memory_mb',
    iif(cpu_kind = 'performance', 2048, 256) * coalesce(
      brief ->> '$.guest.cpus',
      CAST(replace(replace(size, 'shared-cpu-', ''), 'performance-', '') AS INTEGER),
      1
    )
  );
  CREATE TABLE org_quotas (
    org INTEGER NOT NULL REFERENCES orgs(id), kind TEXT NOT NULL, most INTEGER NOT NULL, used INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (org, kind)
  ) WITHOUT ROWID;
  CREATE TABLE app_quotas (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, kind TEXT NOT NULL, most INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (app, kind)
  ) WITHOUT ROWID;

  -- A command of a member sets a quota in a copy that may be older: the leader counts.
  CREATE TRIGGER org_quota_set AFTER INSERT ON org_quotas BEGIN
    UPDATE org_quotas SET used = CASE new.kind
      WHEN 'machines' THEN (SELECT count(*) FROM machines WHERE org = new.org AND destroyed_at IS NULL)
      WHEN 'memory' THEN (SELECT coalesce(sum(memory_mb), 0) FROM machines WHERE org = new.org AND destroyed_at IS NULL)
      WHEN 'volumes' THEN (SELECT count(*) FROM volumes
        WHERE org = new.org AND state NOT IN ('scheduling_destroy', 'pending_destroy'))
      WHEN 'volume-gb' THEN (SELECT coalesce(sum(size_gb), 0) FROM volumes
        WHERE org = new.org AND state NOT IN ('scheduling_destroy', 'pending_destroy'))
      WHEN 'clusters' THEN (SELECT count(*) FROM clusters WHERE org = new.org AND status NOT IN ('deleting', 'deleted'))
      ELSE 0 END
    WHERE org = new.org AND kind = new.kind;
  END;
  CREATE TRIGGER app_quota_set AFTER INSERT ON app_quotas BEGIN
    UPDATE app_quotas SET used = CASE new.kind
      WHEN 'machines' THEN (SELECT count(*) FROM machines WHERE app = new.app AND destroyed_at IS NULL)
      WHEN 'memory' THEN (SELECT coalesce(sum(memory_mb), 0) FROM machines WHERE app = new.app AND destroyed_at IS NULL)
      WHEN 'volumes' THEN (SELECT count(*) FROM volumes
        WHERE app = new.app AND state NOT IN ('scheduling_destroy', 'pending_destroy'))
      WHEN 'volume-gb' THEN (SELECT coalesce(sum(size_gb), 0) FROM volumes
        WHERE app = new.app AND state NOT IN ('scheduling_destroy', 'pending_destroy'))
      ELSE 0 END
    WHERE app = new.app AND kind = new.kind;
  END;

  -- Without any quota, a change costs no more than the look whether there is one.
  CREATE TRIGGER machine_counted AFTER INSERT ON machines
    WHEN new.destroyed_at IS NULL AND (EXISTS (SELECT 1 FROM org_quotas) OR EXISTS (SELECT 1 FROM app_quotas)) BEGIN
    UPDATE org_quotas SET used = used + iif(kind = 'machines', 1, new.memory_mb)
      WHERE org = new.org AND kind IN ('machines', 'memory');
    UPDATE app_quotas SET used = used + iif(kind = 'machines', 1, new.memory_mb)
      WHERE app = new.app AND kind IN ('machines', 'memory');
  END;
  CREATE TRIGGER machine_recounted AFTER UPDATE OF destroyed_at, memory_mb ON machines
    WHEN ((old.destroyed_at IS NULL) <> (new.destroyed_at IS NULL) OR old.memory_mb <> new.memory_mb)
      AND (EXISTS (SELECT 1 FROM org_quotas) OR EXISTS (SELECT 1 FROM app_quotas)) BEGIN
    UPDATE org_quotas SET used = used + iif(new.destroyed_at IS NULL, iif(kind = 'machines', 1, new.memory_mb), 0)
        - iif(old.destroyed_at IS NULL, iif(kind = 'machines', 1, old.memory_mb), 0)
      WHERE org = new.org AND kind IN ('machines', 'memory');
    UPDATE app_quotas SET used = used + iif(new.destroyed_at IS NULL, iif(kind = 'machines', 1, new.memory_mb), 0)
        - iif(old.destroyed_at IS NULL, iif(kind = 'machines', 1, old.memory_mb), 0)
      WHERE app = new.app AND kind IN ('machines', 'memory');
  END;
  CREATE TRIGGER machine_uncounted AFTER DELETE ON machines WHEN old.destroyed_at IS NULL BEGIN
    UPDATE org_quotas SET used = used - iif(kind = 'machines', 1, old.memory_mb)
      WHERE org = old.org AND kind IN ('machines', 'memory');
    UPDATE app_quotas SET used = used - iif(kind = 'machines', 1, old.memory_mb)
      WHERE app = old.app AND kind IN ('machines', 'memory');
  END;

  CREATE TRIGGER volume_counted AFTER INSERT ON volumes BEGIN
    UPDATE org_quotas SET used = used + iif(kind = 'volumes', 1, new.size_gb)
      WHERE org = new.org AND kind IN ('volumes', 'volume-gb');
    UPDATE app_quotas SET used = used + iif(kind = 'volumes', 1, new.size_gb)
      WHERE app = new.app AND kind IN ('volumes', 'volume-gb');
  END;
  CREATE TRIGGER volume_recounted AFTER UPDATE OF state, size_gb ON volumes
    WHEN old.size_gb <> new.size_gb OR (old.state IN ('scheduling_destroy', 'pending_destroy'))
      <> (new.state IN ('scheduling_destroy', 'pending_destroy')) BEGIN
    UPDATE org_quotas SET used = used
        + iif(new.state IN ('scheduling_destroy', 'pending_destroy'), 0, iif(kind = 'volumes', 1, new.size_gb))
        - iif(old.state IN ('scheduling_destroy', 'pending_destroy'), 0, iif(kind = 'volumes', 1, old.size_gb))
      WHERE org = new.org AND kind IN ('volumes', 'volume-gb');
    UPDATE app_quotas SET used = used
        + iif(new.state IN ('scheduling_destroy', 'pending_destroy'), 0, iif(kind = 'volumes', 1, new.size_gb))
        - iif(old.state IN ('scheduling_destroy', 'pending_destroy'), 0, iif(kind = 'volumes', 1, old.size_gb))
      WHERE app = new.app AND kind IN ('volumes', 'volume-gb');
  END;
  CREATE TRIGGER volume_uncounted AFTER DELETE ON volumes
    WHEN old.state NOT IN ('scheduling_destroy', 'pending_destroy') BEGIN
    UPDATE org_quotas SET used = used - iif(kind = 'volumes', 1, old.size_gb)
      WHERE org = old.org AND kind IN ('volumes', 'volume-gb');
    UPDATE app_quotas SET used = used - iif(kind = 'volumes', 1, old.size_gb)
      WHERE app = old.app AND kind IN ('volumes', 'volume-gb');
  END;

  CREATE TRIGGER cluster_counted AFTER INSERT ON clusters
    WHEN new.status NOT IN ('deleting', 'deleted')
    BEGIN UPDATE org_quotas SET used = used + 1 WHERE org = new.org AND kind = 'clusters'; END;
  CREATE TRIGGER cluster_recounted AFTER UPDATE OF status ON clusters
    WHEN (old.status IN ('deleting', 'deleted')) <> (new.status IN ('deleting', 'deleted')) BEGIN
    UPDATE org_quotas SET used = used + iif(new.status IN ('deleting', 'deleted'), -1, 1)
      WHERE org = new.org AND kind = 'clusters';
  END;
  CREATE TRIGGER cluster_uncounted AFTER DELETE ON clusters WHEN old.status NOT IN ('deleting', 'deleted')
    BEGIN UPDATE org_quotas SET used = used - 1 WHERE org = old.org AND kind = 'clusters'; END;
  `,
  // The version that wrote last: an older one names it if it cannot read the store (store/writer.ts).
  "CREATE TABLE written_by (one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1), version TEXT NOT NULL)",
  // The next step comes here.
];

/** The number of this version's schema, which a store has as its `PRAGMA user_version`. */
export const currentSchema = (): number => firstSchema + migrations.length;

/** The steps from a schema to another one, by default the current one; 0 is an empty file. */
export const stepsFrom = (schema: number, to = currentSchema()): readonly string[] => {
  const steps = migrations.slice(Math.max(0, schema - firstSchema), to - firstSchema);
  return schema === 0 ? [tables, ...steps] : steps;
};
