// Workers as a fleet: each Machine has its own volume, which a new Machine of the same name mounts again.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

const app = new machines.App("shop");

const worker = new machines.Fleet("worker", {
  app: app.id,
  regions: { ams: settings.getNumber("workers") ?? 2 },
  config: { image, init: { cmd: ["worker"] } },
  volume: { path: "/data", sizeGb: 1 },
  strategy: { type: "rolling", maxUnavailable: "1" },
  // So that `pulumi destroy` leaves nothing behind. Without it, the volumes stay.
  deleteVolumes: true,
});

export const workerMachines = worker.machines.apply((all) => all.map(({ name }) => name));
