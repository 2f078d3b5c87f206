// Three fleets of one App: a web service, an API that is switched at once, and workers with a volume each.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

const app = new machines.App("shop");

const checks = { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } } as const;

// A quarter of the Machines is updated at a time. If one fails, all have the configuration of before again.
const web = new machines.Fleet("web", {
  app: app.id,
  regions: { ams: 2, iad: 2 },
  config: {
    image,
    checks,
    services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
  },
  strategy: { type: "rolling", maxUnavailable: "25%", minHealthySeconds: 1 },
  onFailure: "rollback",
});

// The database is migrated first. All new Machines run before the first one gets traffic; then all do.
const api = new machines.Fleet("api", {
  app: app.id,
  count: 2,
  spreadOver: ["ams", "fra"],
  config: { image, checks },
  strategy: { type: "bluegreen", drain: "1s" },
  releaseCommand: ["bin/migrate"],
});

// Each Machine has its own volume, which a new Machine of the same name mounts again.
const worker = new machines.Fleet("worker", {
  app: app.id,
  regions: { ams: 2 },
  config: { image, init: { cmd: ["worker"] } },
  volume: { path: "/data", sizeGb: 1 },
  strategy: { maxUnavailable: "1" },
  // So that `pulumi destroy` leaves nothing behind. Without it, the volumes stay.
  deleteVolumes: true,
});

const namesOf = (fleet: machines.Fleet): pulumi.Output<string[]> =>
  fleet.machines.apply((all) => all.map(({ name }) => name));

export const webMachines = namesOf(web);
export const apiMachines = namesOf(api);
export const workerMachines = namesOf(worker);
