// A web service in two regions. If one of them fails, the other one answers, and the next `up` moves its Machines elsewhere.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

const app = new machines.App("shop");

// Each address leads to the nearest Machine that passes its checks, in any region.
const ipv4 = new machines.IpAssignment("ipv4", { app: app.id, type: "shared_v4" });
const ipv6 = new machines.IpAssignment("ipv6", { app: app.id, type: "v6" });

const web = new machines.Fleet("web", {
  app: app.id,
  regions: settings.getObject<Record<string, number>>("regions") ?? { ams: 2, iad: 2 },
  // Where Machines are created while a region takes none.
  fallbackRegions: ["fra", "ewr"],
  config: {
    image,
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        concurrency: { type: "requests", softLimit: 200, hardLimit: 250 },
        ports: [
          { port: 80, handlers: ["http"], forceHttps: true },
          { port: 443, handlers: ["tls", "http"] },
        ],
        checks: [{ type: "http", path: "/healthz", interval: "10s", timeout: "2s", gracePeriod: "5s" }],
      },
    ],
  },
  strategy: { type: "rolling", maxUnavailable: "1" },
  onFailure: "rollback",
});

// Only one of these may run at a time. The service starts the standby when it has failed.
const worker = new machines.Fleet("worker", {
  app: app.id,
  regions: { ams: 1 },
  standbys: 1,
  config: { image, init: { cmd: ["worker"] }, restart: { policy: "on-failure", maxRetries: 3 } },
});

export const appName = app.name;
export const addresses = [ipv4.ip, ipv6.ip];
export const webMachines = web.machines.apply((all) => all.map(({ name, region }) => `${name} in ${region}`));
export const workerMachines = worker.machines.apply((all) => all.map(({ name }) => name));
