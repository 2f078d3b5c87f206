-- A store with a row in every table, as the last service wrote it whose store was made by 13 migrations: never change it.
BEGIN;
CREATE TABLE apps (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id),
    name TEXT NOT NULL UNIQUE, role TEXT, network TEXT NOT NULL, idempotency_key TEXT, deleting INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
  , secrets_version INTEGER NOT NULL DEFAULT 0);
INSERT INTO "apps" VALUES(1,'a',1,'web',NULL,'default',NULL,0,0,4);
CREATE TABLE attachments (
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, attached_at INTEGER NOT NULL, PRIMARY KEY (cluster, app)
  ) WITHOUT ROWID;
INSERT INTO "attachments" VALUES('6lzp2slpdia4bmxq','a',1795725465205);
CREATE TABLE "backups" (
    id TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL UNIQUE,
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, type TEXT NOT NULL, status TEXT NOT NULL,
    size_bytes INTEGER, started_at INTEGER NOT NULL, finished_at INTEGER, contents TEXT NOT NULL
  );
INSERT INTO "backups" VALUES('bk_chatxgyfe1s5xluz',1,'6lzp2slpdia4bmxq','full','completed',33554432,1795725465226,1795725465227,'{"databases":[{"name":"fly-db","created_at":1795725464864},{"name":"shop","created_at":1795725465223}],"extensions":[{"database":"fly-db","name":"pgcrypto","schema":"public","version":"1.3"}],"users":[{"name":"fly-user","role":"schema_admin","created_at":1795725464867,"password":"Iuln7/v98hFqPLmjZabwX4nhCXQJeT3GP7VoYv8iX/8/ZmtFySFH1nrpwzaaQB0izx1SNA=="}]}');
CREATE TABLE cluster_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    change TEXT NOT NULL
  );
INSERT INTO "cluster_changes" VALUES(1,'6lzp2slpdia4bmxq','{}');
CREATE TABLE clusters (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id), name TEXT NOT NULL,
    region TEXT NOT NULL, plan TEXT NOT NULL, status TEXT NOT NULL, disk_size_gb INTEGER NOT NULL,
    pg_major_version TEXT NOT NULL, pool_mode TEXT NOT NULL, postgis_enabled INTEGER NOT NULL, endpoints TEXT,
    storage_used_bytes INTEGER, created_at INTEGER NOT NULL, deleted_at INTEGER
  , source TEXT) WITHOUT ROWID;
INSERT INTO "clusters" VALUES('6lzp2slpdia4bmxq',1,1,'main','ams','basic','ready',10,'16','session',0,'{"primary":{"direct":{"host":"direct.6lzp2slpdia4bmxq.postgres.machines.test","port":5432},"pooler":{"host":"pgbouncer.6lzp2slpdia4bmxq.postgres.machines.test","port":5432}}}',NULL,1795725464864,NULL,NULL);
CREATE TABLE database_users (
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, name TEXT NOT NULL, role TEXT NOT NULL,
    password BLOB NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (cluster, name)
  ) WITHOUT ROWID;
INSERT INTO "database_users" VALUES('6lzp2slpdia4bmxq','fly-user','schema_admin',X'22E967EFFBFDF2116A3CB9A365A6F05F89E1097409793DC63FB56862FF225FFF3F666B45C92147D67AE9C3369A401D22CF1D5234',1795725464867);
CREATE TABLE databases (
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, name TEXT NOT NULL, created_at INTEGER NOT NULL,
    PRIMARY KEY (cluster, name)
  ) WITHOUT ROWID;
INSERT INTO "databases" VALUES('6lzp2slpdia4bmxq','fly-db',1795725464864);
INSERT INTO "databases" VALUES('6lzp2slpdia4bmxq','shop',1795725465223);
CREATE TABLE discarded (id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
INSERT INTO "discarded" VALUES('vol_2');
CREATE TABLE dns (hostname TEXT PRIMARY KEY, records TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "dns" VALUES('www.example.com','{}');
CREATE TABLE events (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, id TEXT NOT NULL,
    type TEXT NOT NULL, status TEXT NOT NULL, source TEXT NOT NULL, timestamp INTEGER NOT NULL, request TEXT,
    version TEXT NOT NULL, moved INTEGER NOT NULL,
    PRIMARY KEY (machine, id)
  ) WITHOUT ROWID;
INSERT INTO "events" VALUES('00000000000001','01HQ73A7BFFDF1B6WMGHFZZ4E9','start','started','flyd',0,NULL,'01HQ73A7BFFDF1B6WMGHFZZ4E8',1);
INSERT INTO "events" VALUES('00000000000002','01HQ73A7BFFDF1B6WMGHFZZ4E9','start','started','flyd',0,NULL,'01HQ73A7BFFDF1B6WMGHFZZ4E8',1);
CREATE TABLE extensions (
    cluster TEXT NOT NULL, database TEXT NOT NULL, name TEXT NOT NULL, schema TEXT NOT NULL, version TEXT NOT NULL,
    PRIMARY KEY (cluster, database, name),
    FOREIGN KEY (cluster, database) REFERENCES databases (cluster, name) ON DELETE CASCADE
  ) WITHOUT ROWID;
INSERT INTO "extensions" VALUES('6lzp2slpdia4bmxq','fly-db','pgcrypto','public','1.3');
CREATE TABLE "hostnames" (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, hostname TEXT NOT NULL,
    owner_code TEXT NOT NULL, acme_requested INTEGER NOT NULL, acme_status TEXT, acme_created_at INTEGER,
    issued_at INTEGER, expires_at INTEGER,
    custom_status TEXT, custom_created_at INTEGER, custom_expires_at INTEGER, custom_issuer TEXT, custom_type TEXT,
    dns_seen INTEGER NOT NULL, ownership_seen INTEGER NOT NULL, attempts TEXT NOT NULL,
    rate_limited_until INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    problems TEXT NOT NULL, custom_key BLOB, custom_chain TEXT, issued_chain TEXT, issued_key BLOB, issued_by TEXT, acme_order TEXT, owned_at INTEGER, PRIMARY KEY (app, hostname)
  );
INSERT INTO "hostnames" VALUES('a','www.example.com','c',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,'[]',NULL,0,0,'[]',X'7DF91409B7CE6A2A3A72CE7EC6BB8E2242A69FD1462C1E55F441B02085','chain',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE images (
    reference TEXT PRIMARY KEY, digest TEXT NOT NULL, labels TEXT NOT NULL
  ) WITHOUT ROWID;
INSERT INTO "images" VALUES('shop:1','sha256:1','{}');
CREATE TABLE ips (
    number INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    ip TEXT NOT NULL, type TEXT NOT NULL, region TEXT NOT NULL, service_name TEXT, network TEXT, network_org TEXT,
    created_at INTEGER NOT NULL
  );
INSERT INTO "ips" VALUES(1,'a','2001:db8:e397:5302:ba89:1ef3:0:1','v6','global',NULL,NULL,NULL,1795725464887);
CREATE TABLE "leases" (
    machine TEXT PRIMARY KEY NOT NULL REFERENCES machines(id) ON DELETE CASCADE, nonce TEXT NOT NULL, owner TEXT NOT NULL,
    version TEXT NOT NULL, expires_at INTEGER NOT NULL, description TEXT NOT NULL
  );
INSERT INTO "leases" VALUES('00000000000001','n','o','01HQ73A7BFFDF1B6WMGHFZZ4E8',4000000000000,'mine');
CREATE TABLE "machine_versions" (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, version TEXT NOT NULL, size INTEGER NOT NULL,
    metadata TEXT, config TEXT NOT NULL, PRIMARY KEY (machine, version)
  );
INSERT INTO "machine_versions" VALUES('00000000000001','01HQ73A7BFFDF1B6WMGHFZZ4E7',45,'{"role":"old"}','{"image":"nginx:1"}');
INSERT INTO "machine_versions" VALUES('00000000000001','01HQ73A7BFFDF1B6WMGHFZZ4E8',120,'{"role":"new"}','{"image":"nginx:2","env":{"A":"é \"''"},"guest":{"cpu_kind":"shared","cpus":1,"memory_mb":256}}');
INSERT INTO "machine_versions" VALUES('00000000000002','01HQ73A7BFFDF1B6WMGHFZZ4E7',118,NULL,'{"image":"nginx","size":"performance-2x","services":[{"protocol":"tcp","internal_port":80,"checks":[{"type":"tcp"}]}]}');
CREATE TABLE "machines" (
    id TEXT PRIMARY KEY NOT NULL, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, region TEXT NOT NULL, state TEXT NOT NULL, version TEXT NOT NULL, private_ip TEXT NOT NULL,
    cordoned INTEGER NOT NULL, launch INTEGER NOT NULL, restarts INTEGER NOT NULL, retried_from INTEGER NOT NULL,
    cpu_kind TEXT NOT NULL, memory_limit_mb INTEGER, secret_set INTEGER, standby INTEGER NOT NULL,
    checks TEXT NOT NULL, checked_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, destroyed_at INTEGER,
    image_ref TEXT NOT NULL, brief TEXT NOT NULL, metadata TEXT
  , check_results TEXT, size TEXT, has_checks INTEGER NOT NULL DEFAULT 0, org INTEGER NOT NULL DEFAULT 0, restarted INTEGER NOT NULL DEFAULT 0);
INSERT INTO "machines" VALUES('00000000000001','a','one','ams','started','01HQ73A7BFFDF1B6WMGHFZZ4E8','fdaa::1',0,1,0,0,'shared',NULL,1,0,'passing',0,0,1,NULL,'{}','{"image":"nginx:2","guest":{"cpu_kind":"shared","cpus":1,"memory_mb":256}}','{"role":"leader"}',NULL,NULL,0,1,0);
INSERT INTO "machines" VALUES('00000000000002','a','two','ams','stopped','01HQ73A7BFFDF1B6WMGHFZZ4E7','fdaa::1',0,1,0,0,'shared',NULL,NULL,1,'warning',0,0,1,NULL,'{}','{"image":"nginx"}',NULL,NULL,'performance-2x',1,1,0);
CREATE TABLE orgs (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL
  );
INSERT INTO "orgs" VALUES(1,'personal','Personal');
CREATE TABLE region_use (
    region TEXT NOT NULL, cpu_kind TEXT NOT NULL, machines INTEGER NOT NULL, PRIMARY KEY (region, cpu_kind)
  ) WITHOUT ROWID;
INSERT INTO "region_use" VALUES('ams','shared',2);
CREATE TABLE "secret_keys" (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, type TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, public_key BLOB, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
INSERT INTO "secret_keys" VALUES('a','signing','nacl_sign',1795725464893,1795725464893,X'08CBE92C92965E43F0C961864F903D861797AE105C0B180230980A605163C4EE',X'52B79420E95D1812F8AA5B1A4865D0119CCC8C1F836F02BF7B2CD3FC17DEAA5A734DF3B7755CFD4DAD47E5DCDA1DBE7DC321319600EBB78E9AC5C111');
CREATE TABLE secret_sets (
    id INTEGER PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, version INTEGER, machine TEXT,
    value BLOB NOT NULL
  );
INSERT INTO "secret_sets" VALUES(1,'a',NULL,'00000000000001',X'69409198909FD08DBBAF56E47BDBD9388BD3CDDCE75C45DFF69F3DBCEC8B8B0F60F22D49FE3ADF6399CD27');
CREATE TABLE "secrets" (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, digest TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
INSERT INTO "secrets" VALUES('a','ONE','d',0,0,X'D5905E7DBEE7166ACEF86714C4CCE5FB5D2F59AB87AC379BDF550BD01D8DD3C352');
INSERT INTO "secrets" VALUES('a','TWO','d',0,0,X'E8411E6652F2069F22DC2098B13186B69729A76E86B295B5600C9834C1DBC593FC91');
CREATE TABLE snapshots (
    id TEXT PRIMARY KEY, volume TEXT NOT NULL, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    status TEXT NOT NULL, digest TEXT NOT NULL, size_gb INTEGER NOT NULL, retention_days INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  , written INTEGER, bytes INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "snapshots" VALUES('vs_j923knw3cvz9e4rvtbutsb','vol_1','a','created','sha256:93f36964e3d4591ebe7ead02bba9da951f64eb26fbcf6fcfb33d10c34fc149a3',1,5,1795725464900,NULL,0);
CREATE TABLE "timers" (
    subject TEXT NOT NULL, kind TEXT NOT NULL, due INTEGER NOT NULL, id INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (subject, kind)
  ) WITHOUT ROWID;
INSERT INTO "timers" VALUES('6lzp2slpdia4bmxq','cluster.measure',1795729064869,3,'');
INSERT INTO "timers" VALUES('vs_j923knw3cvz9e4rvtbutsb','snapshot.expire',1796157464900,5,'');
CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, org INTEGER NOT NULL REFERENCES orgs(id), owner TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER
  , name TEXT, app TEXT REFERENCES apps(id) ON DELETE CASCADE, read_only INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "tokens" VALUES('eafa386301e21be4bbfd7cd4487e150127586000d590f8694179e44e18ec29d5',1,'eafa386301e2@tokens.personal',1795725464680,NULL,'first',NULL,0);
CREATE TABLE volumes (
    id TEXT PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, state TEXT NOT NULL, region TEXT NOT NULL, zone TEXT NOT NULL, size_gb INTEGER NOT NULL,
    encrypted INTEGER NOT NULL, fstype TEXT NOT NULL, mounted INTEGER NOT NULL, snapshot_retention INTEGER NOT NULL,
    auto_backup INTEGER NOT NULL, machine TEXT, created_at INTEGER NOT NULL
  , updated_at INTEGER NOT NULL DEFAULT 0, source TEXT, written INTEGER, org INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "volumes" VALUES('vol_1','a','data','created','ams','z',1,1,'ext4',0,5,0,NULL,0,1,NULL,NULL,1);
CREATE TABLE written (count INTEGER NOT NULL);
INSERT INTO "written" VALUES(1);
CREATE UNIQUE INDEX apps_key ON apps (org, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX apps_org ON apps (org, number);
CREATE INDEX volumes_app ON volumes (app, created_at, id);
CREATE INDEX volumes_machine ON volumes (machine) WHERE machine IS NOT NULL;
CREATE INDEX snapshots_volume ON snapshots (volume, created_at);
CREATE INDEX tokens_app ON tokens (app) WHERE app IS NOT NULL;
CREATE INDEX ips_app ON ips (app);
CREATE UNIQUE INDEX ips_own ON ips (ip) WHERE type <> 'shared_v4';
CREATE INDEX clusters_org ON clusters (org, number);
CREATE UNIQUE INDEX clusters_name ON clusters (org, name) WHERE status NOT IN ('deleting', 'deleted');
CREATE UNIQUE INDEX secret_sets_version ON secret_sets (app, version);
CREATE INDEX secret_sets_machine ON secret_sets (machine) WHERE machine IS NOT NULL;
CREATE INDEX machines_app ON machines (app, created_at, id);
CREATE UNIQUE INDEX machines_name ON machines (app, name) WHERE destroyed_at IS NULL;
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
CREATE INDEX backups_cluster ON backups (cluster, number);
CREATE INDEX snapshots_app ON snapshots (app);
CREATE INDEX attachments_app ON attachments (app);
CREATE TRIGGER volume_discarded AFTER DELETE ON volumes WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;
CREATE TRIGGER snapshot_discarded AFTER DELETE ON snapshots WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;
CREATE INDEX cluster_changes_cluster ON cluster_changes (cluster, number);
CREATE INDEX machines_updated ON machines (org, updated_at, id);
CREATE INDEX volumes_updated ON volumes (org, updated_at, id);
CREATE UNIQUE INDEX hostnames_owner ON hostnames (hostname) WHERE owned_at IS NOT NULL;
CREATE INDEX hostnames_below ON hostnames (substr(hostname, instr(hostname, '.') + 1)) WHERE owned_at IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('apps',1);
INSERT INTO "sqlite_sequence" VALUES('ips',1);
INSERT INTO "sqlite_sequence" VALUES('cluster_changes',1);
PRAGMA user_version = 13;
COMMIT;
