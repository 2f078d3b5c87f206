// A Postgres cluster with its own database and user, and an App whose Machine connects to it with the secret DATABASE_URL.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";
const production = pulumi.getStack() === "prod";

const cluster = new machines.PostgresCluster("shop", {
  region: "fra",
  plan: production ? "launch" : "basic",
  diskSizeGb: settings.getNumber("diskSizeGb") ?? 10,
  pgMajorVersion: "17",
  // With protection the cluster is neither deleted nor replaced. The option `protect` also stops a `destroy` at once.
  deletionProtection: settings.getBoolean("protect") ?? production,
});

const database = new machines.PostgresDatabase("shop", { cluster: cluster.id, name: "shop" });

const user = new machines.PostgresUser("shop", {
  cluster: cluster.id,
  username: "shop",
  role: "schema_admin",
  // A changed value gives the user a new password and updates the Machine's secret.
  rotationTriggers: { date: settings.get("passwordOf") ?? "2026-01" },
});

const search = new machines.PostgresExtension("search", {
  cluster: cluster.id,
  database: database.id,
  name: "pg_trgm",
});

// A changed trigger starts another backup.
const backup = new machines.PostgresBackup("before-release", {
  cluster: cluster.id,
  triggers: { release: settings.get("release") ?? "1" },
});

// A second cluster, restored from the backup, while the setting is true.
const restored = settings.getBoolean("restore")
  ? new machines.PostgresCluster("restored", {
      restore: { cluster: cluster.id, backupId: backup.id },
      deletionProtection: false,
    })
  : undefined;

// A test cluster with a copy of the current data.
const staging = settings.getBoolean("staging")
  ? new machines.PostgresCluster("staging", {
      fork: { cluster: cluster.id },
      deletionProtection: false,
    })
  : undefined;

const app = new machines.App("shop");

const attachment = new machines.PostgresAttachment("shop", {
  cluster: cluster.id,
  app: app.id,
  secretName: "DATABASE_URL",
  user: user.id,
  password: user.password,
  database: database.id,
});

const web = new machines.Machine(
  "web",
  {
    app: app.id,
    region: "fra",
    // The Machine runs with the current connection URI, also after a password change.
    minSecretsVersion: attachment.secretsVersion,
    config: {
      image,
      guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 },
      services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 443, handlers: ["http", "tls"] }] }],
    },
  },
  { dependsOn: search },
);

// Runs in the Machine once, and again with every release. The Machine has the connection URI in its environment.
const migration = new machines.MachineCommand("migration", {
  app: app.id,
  machine: web.id,
  create: ["sh", "-c", settings.get("migrate") ?? "echo up to date"],
  triggers: { release: settings.get("release") ?? "1" },
});

export const appName = app.name;
export const clusterId = cluster.id;
export const restoredId = restored?.id;
export const stagingId = staging?.id;
export const host = cluster.poolerHost;
export const databaseUrl = cluster.poolerUri;
export const webMachine = web.id;
export const migrated = migration.stdout;
