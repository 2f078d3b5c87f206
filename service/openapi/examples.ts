// Examples for the description of the service. A test validates each against its schema, and sends the requests.
import type { OperationWithBody, PathParameter } from "../../api/index.ts";

const app = "web";
const machine = "3d8d413b29d089";
const volume = "vol_5vgk4m9qpr2x7dzw";
const version = "01HQ73A7BFFDF1B6WMGHFZZ4E7";
const createdAt = "2026-01-31T12:00:00Z";
const key = Buffer.alloc(32, 7).toString("base64");
const plaintext = Buffer.from("hello").toString("base64");

/** Path parameters by name. */
export const parameterExamples: Readonly<Record<string, string>> = {
  app_name: app,
  machine_id: machine,
  volume_id: volume,
  key: "role",
  ip: "198.18.7.9",
  hostname: "www.example.com",
  secret_name: "DATABASE_URL",
  org_slug: "personal",
  postgres_cluster_id: "z4k69dxd8r31p5mx",
  database: "orders",
  extension: "hstore",
  username: "reporting",
} satisfies Readonly<Record<PathParameter, string>>;

const config = {
  image: "registry.example.com/web:v3",
  env: { LOG_LEVEL: "info" },
  guest: { cpu_kind: "shared", cpus: 1, memory_mb: 512 },
  services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
  restart: { policy: "on-failure", max_retries: 5 },
};

/** Request bodies by operation. */
export const requestExamples: Readonly<Record<string, unknown>> = {
  "apps.create": { name: app, org_slug: "personal" },
  "apps.createDeployToken": { expiry: "720h" },
  "ipAssignments.assign": { type: "v6" },
  "machines.create": { name: "web-1", region: "ams", config },
  "machines.update": { config: { ...config, image: "registry.example.com/web:v4" }, current_version: version },
  "machines.acquireLease": { ttl: 60, description: "deploy" },
  "machines.patchMetadata": { metadata: { role: "primary", old: null } },
  "machines.putMetadata": { metadata: { role: "primary", old: null } },
  "machines.setMetadataKey": { value: "primary" },
  "machines.stop": { signal: "SIGTERM", timeout: "30s" },
  "machines.exec": { command: ["echo", "hello"], timeout: 10 },
  "machines.signal": { signal: "SIGUSR1" },
  "machines.setMemory": { limit_mb: 384 },
  "machines.reclaimMemory": { amount_mb: 64 },
  "certificates.createAcme": { hostname: "www.example.com" },
  "certificates.createCustom": {
    hostname: "www.example.com",
    fullchain: "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n",
    private_key: "-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n",
  },
  "volumes.create": { name: "data", region: "ams", size_gb: 10 },
  "volumes.update": { snapshot_retention: 14 },
  "volumes.extend": { size_gb: 20 },
  "secrets.update": { values: { DATABASE_URL: "postgres://…", OLD_TOKEN: null } },
  "secrets.set": { value: "postgres://…" },
  "secretKeys.set": { type: "hs256", value: key },
  "secretKeys.generate": { type: "nacl_secretbox" },
  "secretKeys.encrypt": { plaintext },
  "secretKeys.decrypt": { ciphertext: key },
  "secretKeys.sign": { plaintext },
  "secretKeys.verify": { plaintext, signature: key },
  "platform.placements": { org_slug: "personal", region: "eu,any", count: 3 },
  "postgres.create": { org_slug: "personal", name: "orders-db", region: "ams", plan: "starter" },
  "postgres.attach": { app_name: app },
  "postgres.createDatabase": { name: "orders" },
  "postgres.installExtension": { name: "hstore" },
  "postgres.createUser": { username: "reporting", role: "reader" },
  "postgres.updateUser": { role: "writer" },
  "postgres.rotatePassword": { kill_sessions: true },
  "postgres.createBackup": { type: "full" },
  "postgres.restore": { backup_id: "bk_5vgk4m9qpr2x7dzw", name: "orders-before" },
  "postgres.fork": { name: "orders-copy" },
} satisfies Readonly<Record<OperationWithBody, unknown>>;

/** Smaller bodies for operations whose example shows more than is required. */
export const smallestRequests: Readonly<Record<string, unknown>> = {
  "machines.create": { config: { image: config.image } },
  "machines.update": { config: { image: "registry.example.com/web:v4" } },
} satisfies Readonly<Partial<Record<OperationWithBody, unknown>>>;

const event = {
  id: version,
  type: "start",
  status: "started",
  source: "flyd",
  timestamp: 1769860800000,
  request: null,
};
const check = { name: "servicecheck-00-tcp-8080", status: "passing", output: "Success", updated_at: createdAt };
const image_ref = {
  registry: "registry.example.com",
  repository: "web",
  tag: "v3",
  digest: `sha256:${"4f".repeat(32)}`,
};
const network = { region: "ams", private_ip: "fdaa:0:18:a7b:7d:f065:2a:2" };
const times = { created_at: createdAt, updated_at: createdAt };
const issued = { certificate_authority: "lets_encrypt", expires_at: "2026-05-01T12:00:00Z", type: "ecdsa" };
const certificate = {
  source: "fly",
  status: "active",
  created_at: createdAt,
  expires_at: "2026-05-01T12:00:00Z",
  issuer: "Let's Encrypt",
  issued: [issued],
};

const shownApp = {
  id: "z4k69dxd8r31p5mx",
  internal_numeric_id: 1,
  name: app,
  network: "default",
  organization: { name: "Personal", slug: "personal", internal_numeric_id: 1 },
  cname_target: `${app}.machines.test`,
};

/** Values of named schemas. */
export const componentExamples: Readonly<Record<string, unknown>> = {
  App: { ...shownApp, status: "deployed", machine_count: 1, volume_count: 1 },
  CreatedApp: { ...shownApp, status: "pending", machine_count: 0, volume_count: 0, created_at: 1769860800000 },
  Machine: {
    id: machine,
    name: "web-1",
    state: "started",
    version,
    instance_id: version,
    ...network,
    ...times,
    cordoned: false,
    image_ref,
    config,
    events: [event],
    checks: [check],
    host_status: "ok",
  },
  MachineEvent: event,
  CheckStatus: check,
  MachineConfig: config,
  MachineConfigRequest: config,
  Lease: {
    nonce: "0f".repeat(16),
    expires_at: 1769860860,
    owner: "4f4f4f4f4f4f@tokens.personal",
    description: "deploy",
    version,
  },
  Volume: {
    id: volume,
    name: "data",
    state: "created",
    region: "ams",
    zone: "4f0a",
    size_gb: 10,
    encrypted: true,
    fstype: "ext4",
    attached_machine_id: machine,
    snapshot_retention: 5,
    auto_backup_enabled: true,
    host_status: "ok",
    created_at: createdAt,
  },
  VolumeSnapshot: {
    id: "vs_5vgk4m9qpr2x7dzw0123ab",
    status: "created",
    size: 0,
    volume_size: 10_737_418_240,
    retention_days: 5,
    created_at: createdAt,
  },
  IpAssignment: { ip: "198.18.7.9", region: "global", shared: false, service_name: "", created_at: createdAt },
  CertificateEntry: certificate,
  CertificateSummary: {
    hostname: "www.example.com",
    status: "active",
    configured: true,
    acme_requested: true,
    ...times,
  },
  CertificateDetail: {
    hostname: "www.example.com",
    status: "active",
    acme_requested: true,
    configured: true,
    certificates: [certificate],
    rate_limited_until: null,
    validation_errors: [],
  },
  Secret: { name: "DATABASE_URL", digest: "b1946ac92492d234", ...times },
  SecretKey: { name: "SESSIONS", type: "hs256", ...times },
  Region: { code: "ams", name: "Amsterdam, Netherlands", geo_region: "europe", latitude: 52.374, longitude: 4.895 },
  Placement: { region: "ams", count: 2, concurrency: 10 },
  TokenInfo: { token_id: "3f9a02c41b7d", org_slug: "personal", organization: "Personal", apps: [app] },
  OrgMachine: { id: machine, name: "web-1", app_name: app, state: "started", version, ...network, ...times },
  OrgVolume: { id: volume, name: "data", app_name: app, state: "created", region: "ams", size_gb: 10, ...times },
  PostgresCluster: {
    id: "z4k69dxd8r31p5mx",
    name: "orders-db",
    region: "ams",
    plan: "starter",
    status: "ready",
    organization: { name: "Personal", slug: "personal" },
    disk_size_gb: 10,
    pg_major_version: "16",
    attached_apps: [{ name: app }],
    created_at: createdAt,
    storage_used_bytes: null,
  },
  PostgresClusterSummary: {
    id: "z4k69dxd8r31p5mx",
    name: "orders-db",
    region: "ams",
    plan: "starter",
    status: "ready",
    created_at: createdAt,
  },
  Error: { error: "app not found" },
  PostgresError: { error: "This cluster is being deleted" },
  LeaseConflict: {
    status: "error",
    message:
      "machine ID 3d8d413b29d089 lease currently held by 4f4f4f4f4f4f@tokens.personal, expires at 2026-01-31T12:01:00Z",
    code: "invalid",
  },
};
