BEGIN;
CREATE TABLE orgs (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL
  );
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
  , memory_mb INTEGER NOT NULL DEFAULT 0);
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
CREATE TABLE trusts (
    id TEXT PRIMARY KEY NOT NULL, org INTEGER NOT NULL REFERENCES orgs(id), name TEXT NOT NULL, issuer TEXT NOT NULL,
    audience TEXT NOT NULL, claims TEXT NOT NULL, role TEXT NOT NULL, network TEXT, of_apps INTEGER NOT NULL,
    is_reusable INTEGER NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER
  , of_people INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE trust_apps (
    trust TEXT NOT NULL REFERENCES trusts(id) ON DELETE CASCADE, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    PRIMARY KEY (trust, app)
  ) WITHOUT ROWID;
CREATE TABLE exchanged (hash TEXT PRIMARY KEY NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE "tokens" (
    hash TEXT PRIMARY KEY NOT NULL, org INTEGER NOT NULL REFERENCES orgs(id), owner TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER, name TEXT, role TEXT NOT NULL, network TEXT, of_apps INTEGER NOT NULL,
    trust TEXT REFERENCES trusts(id) ON DELETE CASCADE, used_at INTEGER
  ) WITHOUT ROWID;
CREATE TABLE token_apps (
    token TEXT NOT NULL REFERENCES tokens(hash) ON DELETE CASCADE, app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE,
    PRIMARY KEY (token, app)
  ) WITHOUT ROWID;
CREATE TABLE own_certificates (
    name TEXT PRIMARY KEY NOT NULL, chain TEXT, key BLOB, issued_by TEXT, issued_at INTEGER, expires_at INTEGER,
    added_at INTEGER NOT NULL, failures INTEGER NOT NULL, again_at INTEGER, limited_until INTEGER, problem TEXT
  ) WITHOUT ROWID;
CREATE TABLE org_quotas (
    org INTEGER NOT NULL REFERENCES orgs(id), kind TEXT NOT NULL, most INTEGER NOT NULL, used INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (org, kind)
  ) WITHOUT ROWID;
CREATE TABLE app_quotas (
    app TEXT NOT NULL REFERENCES apps(id) ON DELETE CASCADE, kind TEXT NOT NULL, most INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (app, kind)
  ) WITHOUT ROWID;
CREATE TABLE written_by (one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1), version TEXT NOT NULL);
INSERT INTO "orgs" VALUES(1,'personal','Personal');
INSERT INTO "orgs" VALUES(2,'team','The team');
INSERT INTO "apps" VALUES(1,'9znzdug1qqrqywhs',2,'of-team',NULL,'default',NULL,0,1795890248594,0);
INSERT INTO "apps" VALUES(2,'8zktp21bt0g00u1h',1,'shop',NULL,'default',NULL,0,1795890249059,3);
INSERT INTO "machines" VALUES('a223667da07226','8zktp21bt0g00u1h','web','fra','started','01M8HPCZDM68JAPTF6WPJDWMP3','fdaa:0:acd2:a7b:e05b:07a8:73dc:2',0,1,0,1795890249120,'shared',NULL,1,0,'passing',1795890249150,1795890249120,1795890249201,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}','{"tier":"one","owner":"ada"}',NULL,NULL,1,1,0,256);
INSERT INTO "machines" VALUES('a223667e0079c9','8zktp21bt0g00u1h','starting','ams','starting','01M8HPCZG0CAHMAGWWEDTB8GCZ','fdaa:0:2f1f:a7b:2ca3:aaa7:5cf0:2',0,1,0,1795890249216,'shared',NULL,1,0,'warning',1795890249216,1795890249216,1795890249216,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}',NULL,NULL,NULL,0,1,0,256);
INSERT INTO "machines" VALUES('a223667e0c0fde','8zktp21bt0g00u1h','job','ams','stopped','01M8HPCZGCS1Y2Z6VHX3C0TPZS','fdaa:0:cb7b:a7b:4640:e243:cd78:2',0,1,0,1795890249228,'shared',NULL,1,0,'warning',1795890249230,1795890249228,1795890249230,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}',NULL,NULL,NULL,0,1,0,256);
INSERT INTO "machines" VALUES('a223667e12390f','8zktp21bt0g00u1h','stopped','ams','stopped','01M8HPCZGJMDF7GPMEGMM7BRFM','fdaa:0:086c:a7b:db87:8d34:4fd7:2',1,1,0,1795890249234,'performance',NULL,1,0,'warning',1795890249240,1795890249234,1795890249248,NULL,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1","guest":{"cpu_kind":"performance","cpus":2,"memory_mb":4096}}',NULL,NULL,NULL,0,1,0,4096);
INSERT INTO "machines" VALUES('a223667e2358aa','8zktp21bt0g00u1h','destroyed','ams','destroyed','01M8HPCZH3TV28PA8PH0YQE3SC','fdaa:0:d047:a7b:f128:bd54:6bc7:2',0,1,0,1795890249251,'shared',NULL,NULL,0,'warning',1795890249257,1795890249251,1795890249257,1795890249257,'{"registry":"registry.example.com","repository":"shop","tag":"1","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","labels":{"commit":"one"}}','{"image":"registry.example.com/shop:1"}',NULL,NULL,NULL,0,1,0,256);
INSERT INTO "machine_versions" VALUES('a223667da07226','01M8HPCZD0SCCC33SR044ZN056',299,'{"tier":"one"}','{"image":"registry.example.com/shop:1","env":{"GREETING":"é \"''"},"checks":{"up":{"type":"http","port":8080,"path":"/up"}},"services":[{"protocol":"tcp","internal_port":8080,"ports":[{"port":443,"handlers":["tls","http"]}]}],"mounts":[{"volume":"vol_5hdd287i385c01ki","path":"/data"}]}');
INSERT INTO "machine_versions" VALUES('a223667da07226','01M8HPCZDM68JAPTF6WPJDWMP3',299,'{"tier":"one"}','{"image":"registry.example.com/shop:1","env":{"GREETING":"hello"},"checks":{"up":{"type":"http","port":8080,"path":"/up"}},"services":[{"protocol":"tcp","internal_port":8080,"ports":[{"port":443,"handlers":["tls","http"]}]}],"mounts":[{"volume":"vol_5hdd287i385c01ki","path":"/data"}]}');
INSERT INTO "machine_versions" VALUES('a223667e0079c9','01M8HPCZG0CAHMAGWWEDTB8GCZ',74,NULL,'{"image":"registry.example.com/shop:1","env":{"MACHINES_SIMULATE":"hang"}}');
INSERT INTO "machine_versions" VALUES('a223667e0c0fde','01M8HPCZGCS1Y2Z6VHX3C0TPZS',102,NULL,'{"image":"registry.example.com/shop:1","env":{"MACHINES_SIMULATE":"exit:3"},"restart":{"policy":"no"}}');
INSERT INTO "machine_versions" VALUES('a223667e12390f','01M8HPCZGJMDF7GPMEGMM7BRFM',100,NULL,'{"image":"registry.example.com/shop:1","guest":{"cpu_kind":"performance","cpus":2,"memory_mb":4096}}');
INSERT INTO "machine_versions" VALUES('a223667e2358aa','01M8HPCZH3TV28PA8PH0YQE3SC',39,NULL,'{"image":"registry.example.com/shop:1"}');
INSERT INTO "events" VALUES('a223667da07226','01M8HPCZD33ZBH8TECHVXMNS70','launch','created','user',1795890249123,NULL,'01M8HPCZD0SCCC33SR044ZN056',1);
INSERT INTO "events" VALUES('a223667da07226','01M8HPCZD4C1YAFSGTYC1V9Q0P','launch','starting','flyd',1795890249124,NULL,'01M8HPCZD0SCCC33SR044ZN056',1);
INSERT INTO "events" VALUES('a223667da07226','01M8HPCZD4C1YAFSGTYC1V9Q0Q','start','started','flyd',1795890249124,NULL,'01M8HPCZD0SCCC33SR044ZN056',1);
INSERT INTO "events" VALUES('a223667da07226','01M8HPCZDNQ98KHKVHAET3CBNW','update','replacing','user',1795890249141,NULL,'01M8HPCZDM68JAPTF6WPJDWMP3',1);
INSERT INTO "events" VALUES('a223667da07226','01M8HPCZDNQ98KHKVHAET3CBNX','update','starting','flyd',1795890249141,NULL,'01M8HPCZDM68JAPTF6WPJDWMP3',1);
INSERT INTO "events" VALUES('a223667da07226','01M8HPCZDXTY25WZSZS7NT35HD','start','started','flyd',1795890249149,NULL,'01M8HPCZDM68JAPTF6WPJDWMP3',1);
INSERT INTO "events" VALUES('a223667e0079c9','01M8HPCZG0CAHMAGWWEDTB8GD0','launch','created','user',1795890249216,NULL,'01M8HPCZG0CAHMAGWWEDTB8GCZ',1);
INSERT INTO "events" VALUES('a223667e0079c9','01M8HPCZG0CAHMAGWWEDTB8GD1','launch','starting','flyd',1795890249216,NULL,'01M8HPCZG0CAHMAGWWEDTB8GCZ',1);
INSERT INTO "events" VALUES('a223667e0c0fde','01M8HPCZGCS1Y2Z6VHX3C0TPZT','launch','created','user',1795890249228,NULL,'01M8HPCZGCS1Y2Z6VHX3C0TPZS',1);
INSERT INTO "events" VALUES('a223667e0c0fde','01M8HPCZGDTA4H113QQ8833NBH','launch','starting','flyd',1795890249229,NULL,'01M8HPCZGCS1Y2Z6VHX3C0TPZS',1);
INSERT INTO "events" VALUES('a223667e0c0fde','01M8HPCZGDTA4H113QQ8833NBJ','start','started','flyd',1795890249229,NULL,'01M8HPCZGCS1Y2Z6VHX3C0TPZS',1);
INSERT INTO "events" VALUES('a223667e0c0fde','01M8HPCZGESDWYE6VBJJZC7W1F','exit','stopped','flyd',1795890249230,'{"exit_event":{"exit_code":3,"guest_exit_code":3,"guest_signal":-1,"signal":-1,"oom_killed":false,"requested_stop":false,"restarting":false,"exited_at":"2026-11-28T18:24:09Z","error":"","last_lines":["the simulated program has started","it ends with code 3, as MACHINES_SIMULATE=exit:3 asks"]},"restart_count":0}','01M8HPCZGCS1Y2Z6VHX3C0TPZS',1);
INSERT INTO "events" VALUES('a223667e12390f','01M8HPCZGJMDF7GPMEGMM7BRFN','launch','created','user',1795890249234,NULL,'01M8HPCZGJMDF7GPMEGMM7BRFM',1);
INSERT INTO "events" VALUES('a223667e12390f','01M8HPCZGKEW097SP78XYE0JAJ','launch','starting','flyd',1795890249235,NULL,'01M8HPCZGJMDF7GPMEGMM7BRFM',1);
INSERT INTO "events" VALUES('a223667e12390f','01M8HPCZGKEW097SP78XYE0JAK','start','started','flyd',1795890249235,NULL,'01M8HPCZGJMDF7GPMEGMM7BRFM',1);
INSERT INTO "events" VALUES('a223667e12390f','01M8HPCZGRNEB08J0FMNQ9M6XH','stop','stopping','user',1795890249240,NULL,'01M8HPCZGJMDF7GPMEGMM7BRFM',1);
INSERT INTO "events" VALUES('a223667e12390f','01M8HPCZGSB3CPM62W97TTSMVZ','exit','stopped','flyd',1795890249241,'{"exit_event":{"exit_code":0,"guest_exit_code":0,"guest_signal":-1,"signal":-1,"oom_killed":false,"requested_stop":true,"restarting":false,"exited_at":"2026-11-28T18:24:09Z","error":""},"restart_count":0}','01M8HPCZGJMDF7GPMEGMM7BRFM',1);
INSERT INTO "events" VALUES('a223667e12390f','01M8HPCZH05HHWQWSNA5JXT8XR','cordon','stopped','user',1795890249248,NULL,'01M8HPCZGJMDF7GPMEGMM7BRFM',0);
INSERT INTO "events" VALUES('a223667e2358aa','01M8HPCZH3TV28PA8PH0YQE3SD','launch','created','user',1795890249251,NULL,'01M8HPCZH3TV28PA8PH0YQE3SC',1);
INSERT INTO "events" VALUES('a223667e2358aa','01M8HPCZH3TV28PA8PH0YQE3SE','launch','starting','flyd',1795890249251,NULL,'01M8HPCZH3TV28PA8PH0YQE3SC',1);
INSERT INTO "events" VALUES('a223667e2358aa','01M8HPCZH3TV28PA8PH0YQE3SF','start','started','flyd',1795890249251,NULL,'01M8HPCZH3TV28PA8PH0YQE3SC',1);
INSERT INTO "events" VALUES('a223667e2358aa','01M8HPCZH9C6JK3K583VP0WHDA','destroy','destroying','user',1795890249257,NULL,'01M8HPCZH3TV28PA8PH0YQE3SC',1);
INSERT INTO "events" VALUES('a223667e2358aa','01M8HPCZH9C6JK3K583VP0WHDB','destroy','destroyed','flyd',1795890249257,NULL,'01M8HPCZH3TV28PA8PH0YQE3SC',1);
INSERT INTO "leases" VALUES('a223667da07226','57b5a6b47e1991e5bb8cdb8fca4174a2','dacfe3e84b8b@tokens.personal','01M8HPCZDM68JAPTF6WPJDWMP3',1795893849211,'a rollout');
INSERT INTO "region_use" VALUES('ams','performance',1);
INSERT INTO "region_use" VALUES('ams','shared',2);
INSERT INTO "region_use" VALUES('fra','shared',1);
INSERT INTO "volumes" VALUES('vol_5hdd287i385c01ki','8zktp21bt0g00u1h','data','created','fra','9bd6',3,1,'ext4',1,5,1,'a223667da07226',1795890249094,1795890249141,NULL,NULL,1);
INSERT INTO "volumes" VALUES('vol_nwjc2gsc3111k2vm','8zktp21bt0g00u1h','gone','pending_destroy','ams','612c',1,1,'ext4',0,5,1,NULL,1795890249264,1795890249271,NULL,NULL,1);
INSERT INTO "snapshots" VALUES('vs_nryu83ggkarml90salwinl','vol_5hdd287i385c01ki','8zktp21bt0g00u1h','created','sha256:8272683e251602a9c2225703a600d5bf91a672f7c59dccd14ce1a84f0843226c',3,5,1795890249098,NULL,0);
INSERT INTO "discarded" VALUES('vol_gone');
INSERT INTO "images" VALUES('registry.example.com/shop:1','sha256:1111111111111111111111111111111111111111111111111111111111111111','{"commit":"one"}');
INSERT INTO "dns" VALUES('other.example.com','{"cname":["elsewhere.example.com"]}');
INSERT INTO "ips" VALUES(1,'8zktp21bt0g00u1h','2001:db8:4b02:f5c4:226d:5919:0:1','v6','global',NULL,NULL,NULL,1795890249274);
INSERT INTO "hostnames" VALUES('8zktp21bt0g00u1h','shop.invalid','5q1plzhz09',1,'pending_validation',1795890249282,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,'[1795890249282]',NULL,1795890249282,1795890249282,'[{"code":"HOSTNAME_NOT_POINTED","message":"shop.invalid does not lead to the app","remediation":"Create a CNAME record shop.invalid with the value shop.machines.test, or A and AAAA records with the app''s addresses.","timestamp":"2026-11-28T18:24:09Z"}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "hostnames" VALUES('8zktp21bt0g00u1h','www.example.com','55cjymwn91',1,'active',1795890249278,1795890249279,1803666249279,NULL,NULL,NULL,NULL,NULL,1,1,'[]',NULL,1795890249277,1795890249279,'[]',NULL,NULL,NULL,NULL,'simulated',NULL,1795890249279);
INSERT INTO "secrets" VALUES('8zktp21bt0g00u1h','DATABASE_URL','d339f47919d76ba399d46602979fea9e',1795890249076,1795890249076,X'B1F23CEF11DFF3F0A1588BA685BC82B85B77CDA09B1E7CF29AFFA909C7DAE652C53C6BA5DB3E05C0F2A3E061E8ACDDE5B898F562D3DA1E073FB56D375E59D6832C');
INSERT INTO "secret_keys" VALUES('8zktp21bt0g00u1h','sealing','nacl_secretbox',1795890249089,1795890249089,NULL,X'0952EA0617DED792D2347E0034CFED990A7516C478AC27E195B519736D27B1882BE10B8F08EA38D825127E904FB646DD7213BA8C4915C8527CADD466');
INSERT INTO "secret_keys" VALUES('8zktp21bt0g00u1h','signing','hs256',1795890249083,1795890249083,NULL,X'1DCF7BD51EA8DF000EEC60DA76645BDFDF2080538CE73CEC701DAE39E78D9266839EF4BED7ACDC0FD97FEC376E90CD0ABD176771A4484094933208D7');
INSERT INTO "secret_sets" VALUES(1,'8zktp21bt0g00u1h',3,NULL,X'042BF298A8E1C10A05A314E62BA0702B045ECFD697C618AECC7171864CD1C47564682E8AF088819FA4224E13BB7E5E409F396AE675DBFAADDC89006534A489AA5A38E9A4400387DD5E973E463AFF2AA37F4D0CF6');
INSERT INTO "clusters" VALUES('4x90hap3acm600vc',1,1,'data','fra','basic','ready',10,'16','session',0,'{"primary":{"direct":{"host":"direct.4x90hap3acm600vc.postgres.machines.test","port":5432},"pooler":{"host":"pgbouncer.4x90hap3acm600vc.postgres.machines.test","port":5432}}}',NULL,1795890249294,NULL,NULL);
INSERT INTO "clusters" VALUES('ugtgsxutqj2l69q5',2,1,'waits-simulate-stuck','fra','basic','initializing',10,'16','session',0,NULL,NULL,1795890249318,NULL,NULL);
INSERT INTO "attachments" VALUES('4x90hap3acm600vc','8zktp21bt0g00u1h',1795890249307);
INSERT INTO "databases" VALUES('4x90hap3acm600vc','fly-db',1795890249294);
INSERT INTO "databases" VALUES('4x90hap3acm600vc','shop',1795890249300);
INSERT INTO "databases" VALUES('ugtgsxutqj2l69q5','fly-db',1795890249318);
INSERT INTO "extensions" VALUES('4x90hap3acm600vc','shop','pgcrypto','public','1.3');
INSERT INTO "database_users" VALUES('4x90hap3acm600vc','fly-user','schema_admin',X'51745D704337F423DA3F68CEF84858EBC620C72BFAC6D11AD4ACD6F35296694C93440C79F70537E1676EAEE3CEFB1A93A4649D6F',1795890249295);
INSERT INTO "database_users" VALUES('4x90hap3acm600vc','reports','reader',X'213EA5202580CA00D1A7415E782B38F882C7B7E3CF5BE90BD92B011D26CC9227E08CA768C513F203BA68DD523C3C27240773E9F5',1795890249305);
INSERT INTO "database_users" VALUES('ugtgsxutqj2l69q5','fly-user','schema_admin',X'DE4F3CFEF663058C2ABD0436FE3C02C25F5291B3C01D619D2C633556F8860108BEB21CF060DE0BAE6DC4A0AA13B531983B17FAD9',1795890249318);
INSERT INTO "backups" VALUES('bk_kbe514nwfqzoxptn',1,'4x90hap3acm600vc','full','completed',33554432,1795890249316,1795890249316,'{"databases":[{"name":"fly-db","created_at":1795890249294},{"name":"shop","created_at":1795890249300}],"extensions":[{"database":"shop","name":"pgcrypto","schema":"public","version":"1.3"}],"users":[{"name":"fly-user","role":"schema_admin","created_at":1795890249295,"password":"UXRdcEM39CPaP2jO+EhY68Ygxyv6xtEa1KzW81KWaUyTRAx59wU34WduruPO+xqTpGSdbw=="},{"name":"reports","role":"reader","created_at":1795890249305,"password":"IT6lICWAygDRp0FeeCs4+ILHt+PPW+kL2SsBHSbMkifgjKdoxRPyA7po3VI8PCckB3Pp9Q=="}]}');
INSERT INTO "cluster_changes" VALUES(1,'4x90hap3acm600vc','{}');
INSERT INTO "timers" VALUES('4x90hap3acm600vc','cluster.measure',1795893849295,33,'');
INSERT INTO "timers" VALUES('8zktp21bt0g00u1h/www.example.com','certificate.renew',1801074249279,30,'');
INSERT INTO "timers" VALUES('a223667e2358aa','machine.forget',1795976649257,24,'');
INSERT INTO "timers" VALUES('vol_5hdd287i385c01ki','volume.backup',1795976649094,1,'');
INSERT INTO "timers" VALUES('vol_nwjc2gsc3111k2vm','volume.remove',1795976649271,28,'');
INSERT INTO "timers" VALUES('vs_nryu83ggkarml90salwinl','snapshot.expire',1796322249098,4,'');
INSERT INTO "written" VALUES(3);
INSERT INTO "trusts" VALUES('rw3aw4oocjpw',1,'acme/shop','http://127.0.0.1:42709','https://machines.example.com','{"repository":"acme/shop"}','deploy',NULL,1,0,1795890250418,1795890250499,0);
INSERT INTO "trust_apps" VALUES('rw3aw4oocjpw','8zktp21bt0g00u1h');
INSERT INTO "exchanged" VALUES('cc0eacc58953cb8002dde3d78581b0bc1f47f702fec21333f1f76191a905bc2d',1795890670000);
INSERT INTO "tokens" VALUES('cc446d8e7ae6de88a04a498809858e7bf0d95400a86cb32ef215d52032298901',1,'cc446d8e7ae6@tokens.personal',1795890249630,NULL,'ci','deploy',NULL,1,NULL,NULL);
INSERT INTO "tokens" VALUES('dacfe3e84b8b747c61cbbf644d0ca63acbc7654376422dee92b19973dacc4dc3',1,'dacfe3e84b8b@tokens.personal',1795890248430,NULL,'first','own',NULL,0,NULL,1795890250678);
INSERT INTO "tokens" VALUES('f04687bc96482f47fd63ffe1ed2bb89b464a8cc79634346aae4d340679b43195',1,'f04687bc9648@tokens.personal',1795890249288,1827426249288,NULL,'deploy',NULL,1,NULL,NULL);
INSERT INTO "tokens" VALUES('f28dd60b982f55826c07bb35e7eab273c4d172b6b155741aa760f90f3e0fc5c7',1,'f28dd60b982f@tokens.personal',1795890250499,1795891150499,'repo:acme/shop','deploy',NULL,1,'rw3aw4oocjpw',1795890250505);
INSERT INTO "token_apps" VALUES('cc446d8e7ae6de88a04a498809858e7bf0d95400a86cb32ef215d52032298901','8zktp21bt0g00u1h');
INSERT INTO "token_apps" VALUES('f04687bc96482f47fd63ffe1ed2bb89b464a8cc79634346aae4d340679b43195','8zktp21bt0g00u1h');
INSERT INTO "token_apps" VALUES('f28dd60b982f55826c07bb35e7eab273c4d172b6b155741aa760f90f3e0fc5c7','8zktp21bt0g00u1h');
INSERT INTO "own_certificates" VALUES('machines.example.com',NULL,NULL,NULL,NULL,NULL,1,0,NULL,NULL,NULL);
INSERT INTO "org_quotas" VALUES(1,'clusters',4,2);
INSERT INTO "org_quotas" VALUES(1,'machines',20,4);
INSERT INTO "app_quotas" VALUES('8zktp21bt0g00u1h','volume-gb',50,3);
INSERT INTO "written_by" VALUES(1,'0.1.0');
DELETE FROM sqlite_sequence;
INSERT INTO "sqlite_sequence" VALUES('apps',2);
INSERT INTO "sqlite_sequence" VALUES('cluster_changes',1);
INSERT INTO "sqlite_sequence" VALUES('ips',1);
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
CREATE INDEX trust_apps_app ON trust_apps (app);
CREATE INDEX token_apps_app ON token_apps (app);
CREATE INDEX tokens_trust ON tokens (trust) WHERE trust IS NOT NULL;
CREATE INDEX tokens_expires ON tokens (expires_at) WHERE trust IS NOT NULL;
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
CREATE TRIGGER trust_without_apps AFTER DELETE ON trust_apps
    WHEN NOT EXISTS (SELECT 1 FROM trust_apps WHERE trust = old.trust)
    BEGIN DELETE FROM trusts WHERE id = old.trust; END;
CREATE TRIGGER token_without_apps AFTER DELETE ON token_apps
    WHEN NOT EXISTS (SELECT 1 FROM token_apps WHERE token = old.token)
    BEGIN DELETE FROM tokens WHERE hash = old.token; END;
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
PRAGMA user_version = 18;
COMMIT;
