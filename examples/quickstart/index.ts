// An App with a Machine that serves the web and one that keeps data on a volume, in two regions.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/hello:1.0.0";
const production = pulumi.getStack() === "prod";

const app = new machines.App("hello");

const data = new machines.Volume("data", {
  app: app.id,
  region: "ams",
  sizeGb: settings.getNumber("volumeSizeGb") ?? 1,
  snapshotRetention: production ? 30 : 5,
});

const web = new machines.Machine("web", {
  app: app.id,
  region: "fra",
  config: {
    image,
    guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 },
    env: { GREETING: "hello" },
    metadata: { role: "web" },
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        autostop: "stop",
        autostart: true,
        ports: [
          { port: 80, handlers: ["http"] },
          { port: 443, handlers: ["http", "tls"] },
        ],
        checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s", gracePeriod: "5s" }],
      },
    ],
  },
});

const store = new machines.Machine("store", {
  app: app.id,
  region: "ams",
  config: {
    image,
    env: { ROLE: "store" },
    metadata: { role: "store" },
    mounts: [{ volume: data.id, path: "/data" }],
    checks: { alive: { type: "tcp", port: 8080, interval: "10s", timeout: "2s" } },
    stopConfig: { signal: "SIGTERM", timeout: "30s" },
  },
});

export const appName = app.name;
export const webMachine = web.id;
export const webVersion = web.version;
export const webAddress = web.privateIp;
export const storeMachine = store.id;
export const volume = data.id;
