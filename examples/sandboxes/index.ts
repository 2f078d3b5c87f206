// A computer for each user: an App on a network of its own, a disk, and a token that can change nothing else.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/sandbox:1.0.0";
// A user who is removed loses the sandbox, with its data.
const users = settings.getObject<string[]>("users") ?? ["ada", "grace"];

function createSandbox(user: string) {
  // Machines reach only those of the same network.
  const app = new machines.App(user, { network: `sandbox-${user}` });

  const home = new machines.Volume(`${user}-home`, { app: app.id, region: "ams", sizeGb: 2, snapshotRetention: 7 });

  const machine = new machines.Machine(`${user}-sandbox`, {
    app: app.id,
    region: "ams",
    config: {
      image,
      guest: { cpuKind: "shared", cpus: 1, memoryMb: 512 },
      mounts: [{ volume: home.id, path: "/home" }],
      metadata: { user },
      services: [
        {
          protocol: "tcp",
          internalPort: 8080,
          // It costs nothing while it is not used, and continues where it was.
          autostop: "suspend",
          autostart: true,
          ports: [{ port: 443, handlers: ["tls", "http"] }],
        },
      ],
      checks: { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } },
    },
  });

  const address = new machines.IpAssignment(`${user}-address`, { app: app.id, type: "v6" });

  // A new month is a new token; the old one ends by itself.
  const token = new machines.DeployToken(`${user}-token`, {
    app: app.id,
    expiry: "1000h",
    rotationTriggers: { month: settings.get("tokensOf") ?? "2026-01" },
  });

  return { app: app.name, machine: machine.id, address: address.ip, token: token.token };
}

export const sandboxes = Object.fromEntries(users.map((user) => [user, createSandbox(user)]));
