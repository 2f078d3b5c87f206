// An API as a blue/green fleet: new Machines are created beside the old ones, and get the traffic when all of them pass.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

const app = new machines.App("shop");

const checks = { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } } as const;

const api = new machines.Fleet("api", {
  app: app.id,
  count: 2,
  spreadOver: ["ams", "fra"],
  config: {
    image,
    checks,
    services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
  },
  // The old Machines finish their requests for a second, and are kept, stopped, so that a rollback is quick.
  strategy: { type: "bluegreen", drain: "1s", keepOld: true },
  // The database is migrated before the first new Machine is created.
  releaseCommand: ["bin/migrate"],
});

export const apiMachines = api.machines.apply((all) => all.map(({ name }) => name));
