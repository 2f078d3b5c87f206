// Every resource once, and every function. The other examples show their use; this one shows that they all work together.
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/everything:1.0.0";
const text = (words: string): string => Buffer.from(words).toString("base64");

// --- reads before anything is created ---

const regions = machines.getRegionsOutput();
const placements = machines.getPlacementsOutput({
  region: "ams,fra",
  compute: { cpuKind: "shared", cpus: 1, memoryMb: 256 },
});
const apps = machines.getAppsOutput();

// --- an App, its addresses, and a token to deploy it ---

const app = new machines.App("everything");

const address = new machines.IpAssignment("address", { app: app.id, type: "v6" });

const deployToken = new machines.DeployToken("deploy", {
  app: app.id,
  expiry: "720h",
  rotationTriggers: { month: settings.get("tokenOf") ?? "2026-01" },
});

// --- secrets and keys ---

const secrets = new machines.AppSecrets("secrets", { app: app.id, values: { LOG_LEVEL: "info" } });

const apiKey = new machines.Secret("api-key", {
  app: app.id,
  name: "API_KEY",
  value: settings.getSecret("apiKey") ?? pulumi.secret("not-much-of-a-key"),
});

const boxKey = new machines.SecretKey("box", { app: app.id, name: "BOX", type: "xaes256gcm" });

const signingKey = new machines.SecretKey("signing", { app: app.id, name: "SIGNING", type: "es256" });

const letter = new machines.Ciphertext("letter", {
  app: app.id,
  key: boxKey.id,
  plaintext: text("for your eyes only"),
});

const signature = new machines.Signature("signature", { app: app.id, key: signingKey.id, plaintext: text("I agree") });

// --- volumes ---

const data = new machines.Volume("data", { app: app.id, region: "ams", sizeGb: 1 });

const snapshot = new machines.VolumeSnapshot("before-release", {
  app: app.id,
  volume: data.id,
  triggers: { release: "1" },
});

// --- a Machine, its metadata, and a command in it ---

const web = new machines.Machine("web", {
  app: app.id,
  region: "ams",
  // A rotated secret creates a new version of the Machine, which starts with it.
  minSecretsVersion: [secrets.version, apiKey.version],
  onUpdateFailure: "rollback",
  config: {
    image,
    guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 },
    mounts: [{ volume: data.id, path: "/data" }],
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        ports: [{ port: 443, handlers: ["http", "tls"] }],
        checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s" }],
      },
    ],
  },
});

const marks = new machines.MachineMetadata("marks", { app: app.id, machine: web.id, values: { team: "shop" } });

const greeting = new machines.MachineCommand("greeting", { app: app.id, machine: web.id, create: ["echo", "hello"] });

// --- a fleet: equal Machines in two regions, updated one by one ---

const workers = new machines.Fleet("workers", {
  app: app.id,
  regions: { ams: 2, fra: 1 },
  config: { image, guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 } },
  strategy: { type: "rolling", maxUnavailable: "1", minHealthySeconds: 1 },
  onFailure: "rollback",
});

// --- certificates: one issued by ACME, one of your own ---

const issued = new machines.AcmeCertificate("issued", { app: app.id, hostname: "www.example.com" });

const valid = new machines.CertificateValidation("valid", { app: app.id, hostname: issued.hostname });

// This private key may be public, because no client trusts its certificate.
const own = new machines.CustomCertificate("own", {
  app: app.id,
  hostname: "own.example.com",
  fullchain: readFileSync("own.example.com.pem", "utf8"),
  privateKey: readFileSync("own.example.com.key", "utf8"),
});

// --- a database ---

const cluster = new machines.PostgresCluster("shop", {
  region: "fra",
  plan: "basic",
  deletionProtection: settings.getBoolean("protect") ?? false,
});

const database = new machines.PostgresDatabase("shop", { cluster: cluster.id, name: "shop" });

const user = new machines.PostgresUser("shop", { cluster: cluster.id, username: "shop", role: "writer" });

const search = new machines.PostgresExtension("search", {
  cluster: cluster.id,
  database: database.id,
  name: "pg_trgm",
});

const backup = new machines.PostgresBackup("first", { cluster: cluster.id });

const attachment = new machines.PostgresAttachment("shop", {
  cluster: cluster.id,
  app: app.id,
  secretName: "DATABASE_URL",
  user: user.id,
  password: user.password,
  database: database.id,
});

// --- reads of everything created above ---

const inApp = { app: app.id };
const ofMachine = { app: app.id, machine: web.id };
const ofCluster = { cluster: cluster.id };
const afterAll = { dependsOn: [marks, greeting, snapshot, address, own, valid, apiKey, search, backup, attachment] };

const theApp = machines.getAppOutput({ name: app.id }, afterAll);
const started = machines.waitForMachineOutput({ ...ofMachine, states: ["started"], timeoutSeconds: 60 });
const theMachine = machines.getMachineOutput(ofMachine, afterAll);
const ofTheTeam = machines.getMachinesOutput({ ...inApp, metadata: { team: "shop" } }, afterAll);
const events = machines.getMachineEventsOutput({ ...ofMachine, limit: 5 }, afterAll);
const versions = machines.getMachineVersionsOutput(ofMachine, afterAll);
const processes = machines.getMachineProcessesOutput({ ...ofMachine, sortBy: "rss", order: "desc" }, afterAll);
const memory = machines.getMachineMemoryOutput(ofMachine, afterAll);
const metadata = machines.getMachineMetadataOutput(ofMachine, afterAll);
const lease = machines.getMachineLeaseOutput(ofMachine, afterAll);
const inOrganization = machines.getOrgMachinesOutput({ region: "ams" }, afterAll);
const volumesOfOrganization = machines.getOrgVolumesOutput({ updatedAfter: "2026-01-01T00:00:00Z" }, afterAll);
const theVolume = machines.getVolumeOutput({ ...inApp, volume: data.id }, afterAll);
const volumes = machines.getVolumesOutput(inApp, afterAll);
const snapshots = machines.getVolumeSnapshotsOutput({ ...inApp, volume: data.id }, afterAll);
const addresses = machines.getIpAssignmentsOutput(inApp, afterAll);
const certificate = machines.getCertificateOutput({ ...inApp, hostname: issued.hostname }, afterAll);
const hostnames = machines.getCertificatesOutput({ ...inApp, filter: "example.com" }, afterAll);
const checked = machines.checkCertificateOutput({ ...inApp, hostname: issued.hostname }, afterAll);
const secretNames = machines.getSecretsOutput(inApp, afterAll);
const oneSecret = machines.getSecretOutput({ ...inApp, name: apiKey.name }, afterAll);
const keys = machines.getSecretKeysOutput({ ...inApp, types: ["es256"] }, afterAll);
const oneKey = machines.getSecretKeyOutput({ ...inApp, key: signingKey.id }, afterAll);
const opened = machines.decryptOutput({ ...inApp, key: boxKey.id, ciphertext: letter.ciphertext });
const verified = machines.verifyOutput({
  ...inApp,
  key: signingKey.id,
  plaintext: signature.plaintext,
  signature: signature.signature,
});
const theCluster = machines.getPostgresClusterOutput(ofCluster, afterAll);
const clusters = machines.getPostgresClustersOutput({}, afterAll);
const databases = machines.getPostgresDatabasesOutput(ofCluster, afterAll);
const users = machines.getPostgresUsersOutput(ofCluster, afterAll);
const credentials = machines.getPostgresCredentialsOutput({ ...ofCluster, user: user.id }, afterAll);
const extensions = machines.getPostgresExtensionsOutput({ ...ofCluster, database: database.id }, afterAll);
const backups = machines.getPostgresBackupsOutput(ofCluster, afterAll);
const running = machines.getPostgresActiveQueriesOutput(ofCluster, afterAll);
const slow = machines.getPostgresSlowQueriesOutput({ ...ofCluster, range: "24h" }, afterAll);

export const before = {
  region: regions.nearest,
  room: placements.regions.apply((all) => all.length > 0),
  apps: apps.apps.apply((all) => all.length),
};
export const theAppIs = { name: theApp.name, machines: theApp.machineCount, volumes: theApp.volumeCount };
export const theMachineIs = {
  state: started.state,
  image: theMachine.apply(({ imageRef }) => imageRef?.tag),
  team: metadata.metadata.apply((found) => found["team"]),
  ofTheTeam: ofTheTeam.machines.apply((found) => found.length),
  versions: versions.versions.apply((found) => found.length > 0),
  events: events.events.apply((found) => found.length > 0),
  processes: processes.processes.apply((found) => found.length > 0),
  memoryMb: memory.limitMb,
  leased: lease.held,
  inOrganization: inOrganization.machines.apply((found) => found.length),
  said: greeting.stdout,
};
export const storage = {
  size: theVolume.sizeGb,
  volumes: volumes.volumes.apply((found) => found.length),
  ofOrganization: volumesOfOrganization.volumes.apply((found) => found.length),
  snapshots: snapshots.snapshots.apply((found) => found.length > 0),
};
export const workerNames = workers.machines.apply((found) => found.map(({ name }) => name));
export const reachedAt = {
  addresses: addresses.ips.apply((found) => found.length),
  hostnames: hostnames.certificates.apply((found) => found.map(({ hostname }) => hostname)),
  status: certificate.status,
  configured: checked.configured,
  dnsRecords: issued.dnsRecords,
  validUntil: valid.expiresAt,
};
export const keptSecret = {
  names: secretNames.secrets.apply((found) => found.map(({ name }) => name)),
  one: oneSecret.name,
  keys: keys.keys.apply((found) => found.map(({ name }) => name)),
  publicKey: oneKey.publicKey,
  letter: opened.plaintext,
  agreed: verified.valid,
  token: deployToken.token,
};
export const theDatabase = {
  status: theCluster.status,
  clusters: clusters.clusters.apply((found) => found.length),
  databases: databases.databases.apply((found) => found.map(({ name }) => name)),
  users: users.users.apply((found) => found.map(({ username }) => username)),
  extensions: extensions.extensions.apply((found) =>
    found.filter(({ installed }) => installed).map(({ name }) => name),
  ),
  backups: backups.backups.apply((found) => found.length > 0),
  running: running.queries.apply((found) => found.length),
  slow: slow.queries.apply((found) => found.length),
  url: credentials.poolerUri,
};
