// A web service with a canary and a gate: a new image first reaches one Machine, and the others after you promote it.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

const app = new machines.App("shop");

const web = new machines.Fleet("web", {
  app: app.id,
  regions: { ams: 2, iad: 2 },
  config: {
    image,
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        ports: [{ port: 443, handlers: ["tls", "http"] }],
        checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s" }],
      },
    ],
  },
  // The canary must pass its check for this time. Then the rollout waits at its gate.
  strategy: { type: "canary", count: 1, observe: settings.get("observe") ?? "5m", promote: "manual" },
  // Opens the gate for the configuration that waits.
  promoted: settings.getBoolean("promoted") ?? false,
  // A failure before or after the gate restores the previous configuration on all Machines.
  onFailure: "rollback",
});

export const rollout = web.rollout;
export const webMachines = web.machines.apply((all) => all.map(({ name }) => name));
