// A web App that passes the policies in policies/. The baseline `production` is mandatory in production and advisory
// elsewhere.
//
//   pulumi preview --policy-pack policies --policy-pack-config policy.dev.json
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const production = pulumi.getStack() === "prod";
// The digest of a tag is shown by `docker buildx imagetools inspect registry.example.com/shop:1.0.0`.
const image =
  settings.get("image") ??
  "registry.example.com/shop:1.0.0@sha256:9f2c1f3fb1f4a0c2a1c5f7b6b6f0c3b1b4a8f5d2e7c6a9d0e1f2a3b4c5d6e7f8";

const app = new machines.App("shop", {}, { protect: production });

// Secrets go here and not into `env`, because everyone who may read the Machine can read `env`.
const secrets = new machines.AppSecrets("secrets", {
  app: app.id,
  values: { DATABASE_URL: settings.getSecret("databaseUrl") ?? pulumi.secret("postgres://localhost/shop") },
});

const web = ["ams", "fra"].map(
  (region) =>
    new machines.Machine(`web-${region}`, {
      app: app.id,
      region,
      minSecretsVersion: secrets.version,
      config: {
        image,
        env: { LOG_LEVEL: "info" },
        guest: { cpuKind: "shared", cpus: 1, memoryMb: 512 },
        metadata: { team: "shop", environment: production ? "production" : "development" },
        stopConfig: { signal: "SIGTERM", timeout: "30s" },
        services: [
          {
            protocol: "tcp",
            internalPort: 8080,
            autostop: production ? "off" : "stop",
            autostart: true,
            ports: [
              { port: 80, handlers: ["http"], forceHttps: true },
              { port: 443, handlers: ["tls", "http"] },
            ],
            checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s", gracePeriod: "5s" }],
          },
        ],
      },
    }),
);

const uploads = new machines.Volume(
  "uploads",
  { app: app.id, region: "ams", sizeGb: 1, snapshotRetention: 14 },
  { protect: production },
);

export const appName = app.name;
export const machineIds = web.map(({ id }) => id);
export const uploadsVolume = uploads.id;
