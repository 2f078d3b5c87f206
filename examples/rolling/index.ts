// A web service as a fleet: a new image reaches a quarter of its Machines at a time.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

const app = new machines.App("shop");

const checks = { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } } as const;

// If one Machine fails, all have the previous configuration again.
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

export const webMachines = web.machines.apply((all) => all.map(({ name }) => name));
