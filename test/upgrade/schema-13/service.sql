BEGIN;
CREATE TABLE orgs (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL
  );
CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, org INTEGER NOT NULL REFERENCES orgs(id), owner TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER, name TEXT,
    app TEXT REFERENCES apps(id) ON DELETE CASCADE, read_only INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
CREATE TABLE apps (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id),
    name TEXT NOT NULL UNIQUE, role TEXT, network TEXT NOT NULL, idempotency_key TEXT, deleting INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL, secrets_version INTEGER NOT NULL DEFAULT 0
  );
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
CREATE TABLE region_use (
    region TEXT NOT NULL, cpu_kind TEXT NOT NULL, machines INTEGER NOT NULL, PRIMARY KEY (region, cpu_kind)
  ) WITHOUT ROWID;
CREATE TABLE volumes (
    id TEXT PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    name TEXT NOT NULL, state TEXT NOT NULL, region TEXT NOT NULL, zone TEXT NOT NULL, size_gb INTEGER NOT NULL,
    encrypted INTEGER NOT NULL, fstype TEXT NOT NULL, mounted INTEGER NOT NULL, snapshot_retention INTEGER NOT NULL,
    auto_backup INTEGER NOT NULL, machine TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL DEFAULT 0,
    source TEXT, written INTEGER, org INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
CREATE TABLE snapshots (
    id TEXT PRIMARY KEY, volume TEXT NOT NULL, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    status TEXT NOT NULL, digest TEXT NOT NULL, size_gb INTEGER NOT NULL, retention_days INTEGER NOT NULL,
    created_at INTEGER NOT NULL, written INTEGER, bytes INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
CREATE TABLE discarded (id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
CREATE TABLE images (
    reference TEXT PRIMARY KEY, digest TEXT NOT NULL, labels TEXT NOT NULL
  ) WITHOUT ROWID;
CREATE TABLE dns (hostname TEXT PRIMARY KEY, records TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE ips (
    number INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    ip TEXT NOT NULL, type TEXT NOT NULL, region TEXT NOT NULL, service_name TEXT, network TEXT, network_org TEXT,
    created_at INTEGER NOT NULL
  );
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
CREATE TABLE secrets (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, digest TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
CREATE TABLE secret_keys (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, name TEXT NOT NULL, type TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, public_key BLOB, value BLOB NOT NULL, PRIMARY KEY (app, name)
  );
CREATE TABLE secret_sets (
    id INTEGER PRIMARY KEY, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, version INTEGER, machine TEXT,
    value BLOB NOT NULL
  );
CREATE TABLE clusters (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, org INTEGER NOT NULL REFERENCES orgs(id), name TEXT NOT NULL,
    region TEXT NOT NULL, plan TEXT NOT NULL, status TEXT NOT NULL, disk_size_gb INTEGER NOT NULL,
    pg_major_version TEXT NOT NULL, pool_mode TEXT NOT NULL, postgis_enabled INTEGER NOT NULL, endpoints TEXT,
    storage_used_bytes INTEGER, created_at INTEGER NOT NULL, deleted_at INTEGER, source TEXT
  ) WITHOUT ROWID;
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
    id TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL UNIQUE,
    cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE, type TEXT NOT NULL, status TEXT NOT NULL,
    size_bytes INTEGER, started_at INTEGER NOT NULL, finished_at INTEGER, contents TEXT NOT NULL
  );
CREATE TABLE cluster_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, cluster TEXT NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
    change TEXT NOT NULL
  );
CREATE TABLE timers (
    subject TEXT NOT NULL, kind TEXT NOT NULL, due INTEGER NOT NULL, id INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (subject, kind)
  ) WITHOUT ROWID;
CREATE TABLE written (count INTEGER NOT NULL);
INSERT INTO "orgs" VALUES(1,'personal','Personal');
INSERT INTO "orgs" VALUES(2,'team','The team');
INSERT INTO "tokens" VALUES('7736f420f8df0eaf40594e28fa57af4f9fb0046518dde7de69e25eaa808d62d6',1,'7736f420f8df@tokens.personal',1795890245646,NULL,'first',NULL,0);
INSERT INTO "tokens" VALUES('ada73f3cfa655ff27ff0112f6906e1130e87f1729d49703454c1f9f9bdbeffbc',1,'ada73f3cfa65@tokens.personal',1795890246278,1827426246278,NULL,'zkknxtpynga6so1c',0);
INSERT INTO "tokens" VALUES('d955307be04d2c39e620de5a1e0a0c9986c3b14cea420ac45ad1dffca1c8381f',1,'d955307be04d@tokens.personal',1795890246536,NULL,'ci','zkknxtpynga6so1c',0);
INSERT INTO "apps" VALUES(1,'iujb4c45e731u0te',2,'of-team',NULL,'default',NULL,0,1795890245733,0);
INSERT INTO "apps" VALUES(2,'zkknxtpynga6so1c',1,'shop',NULL,'default',NULL,0,1795890246104,3);
INSERT INTO "machines" VALUES('a2236672130f69','zkknxtpynga6so1c','web','fra','started','01M8HPCWGWQSZZXXEN9RVTVHHN','fdaa:0:471c:a7b:ca20:3a0a:433f:2',0,1,0,1795890246163,'shared',NULL,1,0,'passing',1795890246173,1795890246163,1795890246180,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}','{"tier":"one","owner":"ada"}',NULL,NULL,1,1,0);
INSERT INTO "machines" VALUES('a223667232122e','zkknxtpynga6so1c','starting','ams','starting','01M8HPCWHJFPYGDGNTPGKV9WY5','fdaa:0:4138:a7b:8e32:f932:520e:2',0,1,0,1795890246194,'shared',NULL,1,0,'warning',1795890246194,1795890246194,1795890246195,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}',NULL,NULL,NULL,0,1,0);
INSERT INTO "machines" VALUES('a22366723a1afe','zkknxtpynga6so1c','job','ams','stopped','01M8HPCWHT6H5M6Z8AKKT3TXAY','fdaa:0:ab3b:a7b:ffe0:8a74:0a73:2',0,1,0,1795890246202,'shared',NULL,1,0,'warning',1795890246203,1795890246202,1795890246203,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}',NULL,NULL,NULL,0,1,0);
INSERT INTO "machines" VALUES('a22366724473bb','zkknxtpynga6so1c','stopped','ams','stopped','01M8HPCWJ4DCXVBZ01869SZKZF','fdaa:0:4e9f:a7b:046e:9642:8084:2',1,1,0,1795890246212,'performance',NULL,1,0,'warning',1795890246216,1795890246212,1795890246225,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1","guest":{"cpu_kind":"performance","cpus":2,"memory_mb":4096}}',NULL,NULL,NULL,0,1,0);
INSERT INTO "machines" VALUES('a2236672575096','zkknxtpynga6so1c','destroyed','ams','destroyed','01M8HPCWJQK60190CST65PKXYT','fdaa:0:b050:a7b:e86d:ba0a:0b0f:2',0,1,0,1795890246231,'shared',NULL,NULL,0,'warning',1795890246241,1795890246231,1795890246242,1795890246242,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}',NULL,NULL,NULL,0,1,0);
INSERT INTO "machine_versions" VALUES('a2236672130f69','01M8HPCWGK9EEF64PV0SR0APF6',299,'{"tier":"one"}','{"image":"registry.example.com/shop:1","env":{"GREETING":"é \"''"},"checks":{"up":{"type":"http","port":8080,"path":"/up"}},"services":[{"protocol":"tcp","internal_port":8080,"ports":[{"port":443,"handlers":["tls","http"]}]}],"mounts":[{"volume":"vol_kdf3u19qsy0hvle7","path":"/data"}]}');
INSERT INTO "machine_versions" VALUES('a2236672130f69','01M8HPCWGWQSZZXXEN9RVTVHHN',299,'{"tier":"one"}','{"image":"registry.example.com/shop:1","env":{"GREETING":"hello"},"checks":{"up":{"type":"http","port":8080,"path":"/up"}},"services":[{"protocol":"tcp","internal_port":8080,"ports":[{"port":443,"handlers":["tls","http"]}]}],"mounts":[{"volume":"vol_kdf3u19qsy0hvle7","path":"/data"}]}');
INSERT INTO "machine_versions" VALUES('a223667232122e','01M8HPCWHJFPYGDGNTPGKV9WY5',74,NULL,'{"image":"registry.example.com/shop:1","env":{"MACHINES_SIMULATE":"hang"}}');
INSERT INTO "machine_versions" VALUES('a22366723a1afe','01M8HPCWHT6H5M6Z8AKKT3TXAY',102,NULL,'{"image":"registry.example.com/shop:1","env":{"MACHINES_SIMULATE":"exit:3"},"restart":{"policy":"no"}}');
INSERT INTO "machine_versions" VALUES('a22366724473bb','01M8HPCWJ4DCXVBZ01869SZKZF',100,NULL,'{"image":"registry.example.com/shop:1","guest":{"cpu_kind":"performance","cpus":2,"memory_mb":4096}}');
INSERT INTO "machine_versions" VALUES('a2236672575096','01M8HPCWJQK60190CST65PKXYT',39,NULL,'{"image":"registry.example.com/shop:1"}');
INSERT INTO "events" VALUES('a2236672130f69','01M8HPCWGN8HFJE5HZGSWGX2V0','launch','created','user',1795890246165,NULL,'01M8HPCWGK9EEF64PV0SR0APF6',1);
INSERT INTO "events" VALUES('a2236672130f69','01M8HPCWGPDZ4HG0XAER5GRZX3','launch','starting','flyd',1795890246166,NULL,'01M8HPCWGK9EEF64PV0SR0APF6',1);
INSERT INTO "events" VALUES('a2236672130f69','01M8HPCWGQ40E80A7YM7TC6DE5','start','started','flyd',1795890246167,NULL,'01M8HPCWGK9EEF64PV0SR0APF6',1);
INSERT INTO "events" VALUES('a2236672130f69','01M8HPCWGX1969PMV3GXFXGSBG','update','replacing','user',1795890246173,NULL,'01M8HPCWGWQSZZXXEN9RVTVHHN',1);
INSERT INTO "events" VALUES('a2236672130f69','01M8HPCWGX1969PMV3GXFXGSBH','update','starting','flyd',1795890246173,NULL,'01M8HPCWGWQSZZXXEN9RVTVHHN',1);
INSERT INTO "events" VALUES('a2236672130f69','01M8HPCWGX1969PMV3GXFXGSBJ','start','started','flyd',1795890246173,NULL,'01M8HPCWGWQSZZXXEN9RVTVHHN',1);
INSERT INTO "events" VALUES('a223667232122e','01M8HPCWHK4F4V3DX1MYJA4MDP','launch','created','user',1795890246195,NULL,'01M8HPCWHJFPYGDGNTPGKV9WY5',1);
INSERT INTO "events" VALUES('a223667232122e','01M8HPCWHK4F4V3DX1MYJA4MDQ','launch','starting','flyd',1795890246195,NULL,'01M8HPCWHJFPYGDGNTPGKV9WY5',1);
INSERT INTO "events" VALUES('a22366723a1afe','01M8HPCWHT6H5M6Z8AKKT3TXAZ','launch','created','user',1795890246202,NULL,'01M8HPCWHT6H5M6Z8AKKT3TXAY',1);
INSERT INTO "events" VALUES('a22366723a1afe','01M8HPCWHT6H5M6Z8AKKT3TXB0','launch','starting','flyd',1795890246202,NULL,'01M8HPCWHT6H5M6Z8AKKT3TXAY',1);
INSERT INTO "events" VALUES('a22366723a1afe','01M8HPCWHT6H5M6Z8AKKT3TXB1','start','started','flyd',1795890246202,NULL,'01M8HPCWHT6H5M6Z8AKKT3TXAY',1);
INSERT INTO "events" VALUES('a22366723a1afe','01M8HPCWHVR4Q3SP369F3G3Z0K','exit','stopped','flyd',1795890246203,'{"exit_event":{"exit_code":3,"guest_exit_code":3,"guest_signal":-1,"signal":-1,"oom_killed":false,"requested_stop":false,"restarting":false,"exited_at":"2026-11-28T18:24:06Z","error":"","last_lines":["the simulated program has started","it ends with code 3, as MACHINES_SIMULATE=exit:3 asks"]},"restart_count":0}','01M8HPCWHT6H5M6Z8AKKT3TXAY',1);
INSERT INTO "events" VALUES('a22366724473bb','01M8HPCWJ4DCXVBZ01869SZKZG','launch','created','user',1795890246212,NULL,'01M8HPCWJ4DCXVBZ01869SZKZF',1);
INSERT INTO "events" VALUES('a22366724473bb','01M8HPCWJ4DCXVBZ01869SZKZH','launch','starting','flyd',1795890246212,NULL,'01M8HPCWJ4DCXVBZ01869SZKZF',1);
INSERT INTO "events" VALUES('a22366724473bb','01M8HPCWJ4DCXVBZ01869SZKZJ','start','started','flyd',1795890246212,NULL,'01M8HPCWJ4DCXVBZ01869SZKZF',1);
INSERT INTO "events" VALUES('a22366724473bb','01M8HPCWJ8F6AS1JB231PXR32W','stop','stopping','user',1795890246216,NULL,'01M8HPCWJ4DCXVBZ01869SZKZF',1);
INSERT INTO "events" VALUES('a22366724473bb','01M8HPCWJ8F6AS1JB231PXR32X','exit','stopped','flyd',1795890246216,'{"exit_event":{"exit_code":0,"guest_exit_code":0,"guest_signal":-1,"signal":-1,"oom_killed":false,"requested_stop":true,"restarting":false,"exited_at":"2026-11-28T18:24:06Z","error":""},"restart_count":0}','01M8HPCWJ4DCXVBZ01869SZKZF',1);
INSERT INTO "events" VALUES('a22366724473bb','01M8HPCWJH65AGZMXFJCFMD4WQ','cordon','stopped','user',1795890246225,NULL,'01M8HPCWJ4DCXVBZ01869SZKZF',0);
INSERT INTO "events" VALUES('a2236672575096','01M8HPCWJR6TTFJSTPN4MW9A7N','launch','created','user',1795890246232,NULL,'01M8HPCWJQK60190CST65PKXYT',1);
INSERT INTO "events" VALUES('a2236672575096','01M8HPCWJR6TTFJSTPN4MW9A7P','launch','starting','flyd',1795890246232,NULL,'01M8HPCWJQK60190CST65PKXYT',1);
INSERT INTO "events" VALUES('a2236672575096','01M8HPCWJR6TTFJSTPN4MW9A7Q','start','started','flyd',1795890246232,NULL,'01M8HPCWJQK60190CST65PKXYT',1);
INSERT INTO "events" VALUES('a2236672575096','01M8HPCWK19538FN9MC9JCGT88','destroy','destroying','user',1795890246241,NULL,'01M8HPCWJQK60190CST65PKXYT',1);
INSERT INTO "events" VALUES('a2236672575096','01M8HPCWK2VD1JV9HW59X9WADM','destroy','destroyed','flyd',1795890246242,NULL,'01M8HPCWJQK60190CST65PKXYT',1);
INSERT INTO "leases" VALUES('a2236672130f69','f8f3d0e3f73d16cbbf70a57a4e098cff','7736f420f8df@tokens.personal','01M8HPCWGWQSZZXXEN9RVTVHHN',1795893846189,'a rollout');
INSERT INTO "region_use" VALUES('ams','performance',1);
INSERT INTO "region_use" VALUES('ams','shared',2);
INSERT INTO "region_use" VALUES('fra','shared',1);
INSERT INTO "volumes" VALUES('vol_kdf3u19qsy0hvle7','zkknxtpynga6so1c','data','created','fra','366a',3,1,'ext4',1,5,1,'a2236672130f69',1795890246146,1795890246173,NULL,NULL,1);
INSERT INTO "volumes" VALUES('vol_xbz6szoupuihjrxf','zkknxtpynga6so1c','gone','pending_destroy','ams','480f',1,1,'ext4',0,5,1,NULL,1795890246245,1795890246248,NULL,NULL,1);
INSERT INTO "snapshots" VALUES('vs_b7jw16cob7fr76bsh7fl5s','vol_kdf3u19qsy0hvle7','zkknxtpynga6so1c','created','sha256:363a5792387623c25823611358c725599608d69443b269f59af94b036bd98d8d',3,5,1795890246152,NULL,0);
INSERT INTO "discarded" VALUES('vol_gone');
INSERT INTO "images" VALUES('registry.example.com/shop:1','sha256:1111111111111111111111111111111111111111111111111111111111111111','{"commit":"one"}');
INSERT INTO "dns" VALUES('other.example.com','{"cname":["elsewhere.example.com"]}');
INSERT INTO "ips" VALUES(1,'zkknxtpynga6so1c','2001:db8:8f46:8cf2:3f21:bc45:0:1','v6','global',NULL,NULL,NULL,1795890246255);
INSERT INTO "hostnames" VALUES('zkknxtpynga6so1c','shop.invalid','g6ym01fa6i',1,'pending_validation',1795890246275,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,'[1795890246275]',NULL,1795890246275,1795890246275,'[{"code":"HOSTNAME_NOT_POINTED","message":"shop.invalid does not lead to the app","remediation":"Create a CNAME record shop.invalid with the value shop.machines.test, or A and AAAA records with the app''s addresses.","timestamp":"2026-11-28T18:24:06Z"}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "hostnames" VALUES('zkknxtpynga6so1c','www.example.com','unp59vf55o',1,'active',1795890246265,1795890246267,1803666246267,NULL,NULL,NULL,NULL,NULL,1,1,'[]',NULL,1795890246265,1795890246267,'[]',NULL,NULL,NULL,NULL,'simulated',NULL,1795890246266);
INSERT INTO "secrets" VALUES('zkknxtpynga6so1c','DATABASE_URL','058cd01334bc68b2be58489b227742f1',1795890246129,1795890246129,X'F191301E58DF89C51CF6522E08BA0997958289E7FA4503ED801F2B56AA587E423517FBD38FF1490A77BBDF87B86B5C37614AF40D032E3C03B13FABE3A2D0E447F3');
INSERT INTO "secret_keys" VALUES('zkknxtpynga6so1c','sealing','nacl_secretbox',1795890246139,1795890246139,NULL,X'B7056EC1FD72BCC38B2F17B86D1C140AFECEBEC3BAA0205C057C77BDBCCC5AD64763C03827FAE99A0BAFD0D2A4D2741A40B4A35D19B7269DE3C3F54C');
INSERT INTO "secret_keys" VALUES('zkknxtpynga6so1c','signing','hs256',1795890246135,1795890246135,NULL,X'79291F9E8A9E7DE48600D153C71283CFB194212A7A46FEC39E44FA56F75C9293DAF1E69DA53E77185742AD1AF7304E551C3935D79DF7F7752F4030E5');
INSERT INTO "secret_sets" VALUES(1,'zkknxtpynga6so1c',3,NULL,X'AEE739DA937724241DCC986D067419598DC4D6A14F0FA6D3456A599C5C6B743B3997BE2CDD878055E1F2EA51F727AFC5373826594642FBEE9ECEBF6A6963EA1D1C84B68E69E7F63C5B0B8F9682AE326B0C1E58B0');
INSERT INTO "clusters" VALUES('ppkybv94pzv0b7u9',2,1,'waits-simulate-stuck','fra','basic','initializing',10,'16','session',0,NULL,NULL,1795890246297,NULL,NULL);
INSERT INTO "clusters" VALUES('r1k9nq4gj4z39urp',1,1,'data','fra','basic','ready',10,'16','session',0,'{"primary":{"direct":{"host":"direct.r1k9nq4gj4z39urp.postgres.machines.test","port":5432},"pooler":{"host":"pgbouncer.r1k9nq4gj4z39urp.postgres.machines.test","port":5432}}}',NULL,1795890246281,NULL,NULL);
INSERT INTO "attachments" VALUES('r1k9nq4gj4z39urp','zkknxtpynga6so1c',1795890246292);
INSERT INTO "databases" VALUES('ppkybv94pzv0b7u9','fly-db',1795890246297);
INSERT INTO "databases" VALUES('r1k9nq4gj4z39urp','fly-db',1795890246281);
INSERT INTO "databases" VALUES('r1k9nq4gj4z39urp','shop',1795890246285);
INSERT INTO "extensions" VALUES('r1k9nq4gj4z39urp','shop','pgcrypto','public','1.3');
INSERT INTO "database_users" VALUES('ppkybv94pzv0b7u9','fly-user','schema_admin',X'29DDED9D4A29938366E5E1D558F29AD03190FADB18A5D61DE4471F7A8E663F25D4345F220A2AC1E9ED035CBA071AECB2104729C5',1795890246297);
INSERT INTO "database_users" VALUES('r1k9nq4gj4z39urp','fly-user','schema_admin',X'7EB7454AA181504F55AA50D4DC77CC85109C33A426285E37870AD678AD8E82BE767B4918724B43E53E2562238D44BBD2FB16D513',1795890246281);
INSERT INTO "database_users" VALUES('r1k9nq4gj4z39urp','reports','reader',X'7B5F150720D5202D6AF706E5496F9F8675DA7F33797E24DFFC5F53A04AC37964DEEBFC17C7A28A4AD043A559C0489C456176CAF2',1795890246290);
INSERT INTO "backups" VALUES('bk_7cxj7oh1jxn22eck',1,'r1k9nq4gj4z39urp','full','completed',33554432,1795890246294,1795890246295,'{"databases":[{"name":"fly-db","created_at":1795890246281},{"name":"shop","created_at":1795890246285}],"extensions":[{"database":"shop","name":"pgcrypto","schema":"public","version":"1.3"}],"users":[{"name":"fly-user","role":"schema_admin","created_at":1795890246281,"password":"frdFSqGBUE9VqlDU3HfMhRCcM6QmKF43hwrWeK2Ogr52e0kYcktD5T4lYiONRLvS+xbVEw=="},{"name":"reports","role":"reader","created_at":1795890246290,"password":"e18VByDVIC1q9wblSW+fhnXafzN5fiTf/F9ToErDeWTe6/wXx6KKStBDpVnASJxFYXbK8g=="}]}');
INSERT INTO "cluster_changes" VALUES(1,'r1k9nq4gj4z39urp','{}');
INSERT INTO "timers" VALUES('a2236672575096','machine.forget',1795976646242,24,'');
INSERT INTO "timers" VALUES('r1k9nq4gj4z39urp','cluster.measure',1795893846282,33,'');
INSERT INTO "timers" VALUES('vol_kdf3u19qsy0hvle7','volume.backup',1795976646147,1,'');
INSERT INTO "timers" VALUES('vol_xbz6szoupuihjrxf','volume.remove',1795976646248,28,'');
INSERT INTO "timers" VALUES('vs_b7jw16cob7fr76bsh7fl5s','snapshot.expire',1796322246152,4,'');
INSERT INTO "timers" VALUES('zkknxtpynga6so1c/www.example.com','certificate.renew',1801074246267,30,'');
INSERT INTO "written" VALUES(2);
DELETE FROM sqlite_sequence;
INSERT INTO "sqlite_sequence" VALUES('apps',2);
INSERT INTO "sqlite_sequence" VALUES('cluster_changes',1);
INSERT INTO "sqlite_sequence" VALUES('ips',1);
CREATE INDEX tokens_app ON tokens (app) WHERE app IS NOT NULL;
CREATE UNIQUE INDEX apps_key ON apps (org, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX apps_org ON apps (org, number);
CREATE INDEX machines_app ON machines (app, created_at, id);
CREATE UNIQUE INDEX machines_name ON machines (app, name) WHERE destroyed_at IS NULL;
CREATE INDEX machines_updated ON machines (org, updated_at, id);
CREATE INDEX machines_standby ON machines (app) WHERE standby = 1;
CREATE INDEX machines_secret_set ON machines (secret_set) WHERE secret_set IS NOT NULL;
CREATE INDEX volumes_app ON volumes (app, created_at, id);
CREATE INDEX volumes_machine ON volumes (machine) WHERE machine IS NOT NULL;
CREATE INDEX volumes_updated ON volumes (org, updated_at, id);
CREATE INDEX snapshots_volume ON snapshots (volume, created_at);
CREATE INDEX snapshots_app ON snapshots (app);
CREATE INDEX ips_app ON ips (app);
CREATE UNIQUE INDEX ips_own ON ips (ip) WHERE type <> 'shared_v4';
CREATE UNIQUE INDEX hostnames_owner ON hostnames (hostname) WHERE owned_at IS NOT NULL;
CREATE INDEX hostnames_below ON hostnames (substr(hostname, instr(hostname, '.') + 1)) WHERE owned_at IS NOT NULL;
CREATE UNIQUE INDEX secret_sets_version ON secret_sets (app, version);
CREATE INDEX secret_sets_machine ON secret_sets (machine) WHERE machine IS NOT NULL;
CREATE INDEX clusters_org ON clusters (org, number);
CREATE UNIQUE INDEX clusters_name ON clusters (org, name) WHERE status NOT IN ('deleting', 'deleted');
CREATE INDEX attachments_app ON attachments (app);
CREATE INDEX backups_cluster ON backups (cluster, number);
CREATE INDEX cluster_changes_cluster ON cluster_changes (cluster, number);
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
CREATE TRIGGER volume_discarded AFTER DELETE ON volumes WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;
CREATE TRIGGER snapshot_discarded AFTER DELETE ON snapshots WHEN old.written IS NOT NULL
    BEGIN INSERT OR IGNORE INTO discarded VALUES (old.id); END;
PRAGMA user_version = 13;
COMMIT;
