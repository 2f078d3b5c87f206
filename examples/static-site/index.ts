// The folder `site` as a website: a web server with the files, which stops while it has no visitors.
import { readdirSync, readFileSync, statSync } from "node:fs";
import * as path from "node:path";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
// A placeholder: set your own with `pulumi config set hostname www.example.com`.
const hostname = settings.get("hostname") ?? "www.example.invalid";

// A changed file changes the configuration, so `pulumi up` publishes it. Put a large site into an image instead.
const files = readdirSync("site", { recursive: true, encoding: "utf8" })
  .filter((file) => statSync(path.join("site", file)).isFile())
  .sort()
  .map((file) => ({
    guestPath: path.posix.join("/srv", ...file.split(path.sep)),
    rawValue: readFileSync(path.join("site", file), "base64"),
  }));

const app = new machines.App("site");

const web = new machines.Fleet("web", {
  app: app.id,
  regions: { ams: 1, iad: 1 },
  config: {
    image: settings.get("image") ?? "docker.io/library/caddy:2.10-alpine",
    init: { cmd: ["caddy", "file-server", "--root", "/srv", "--listen", ":8080"] },
    files,
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        // The next visitor starts a Machine again.
        autostop: "stop",
        autostart: true,
        ports: [
          { port: 80, handlers: ["http"], forceHttps: true },
          { port: 443, handlers: ["tls", "http"], httpOptions: { compress: true } },
        ],
        checks: [{ type: "http", path: "/", interval: "15s", timeout: "2s" }],
      },
    ],
  },
  strategy: { type: "rolling", maxUnavailable: "1" },
  onFailure: "rollback",
});

const ipv4 = new machines.IpAssignment("ipv4", { app: app.id, type: "shared_v4" });
const ipv6 = new machines.IpAssignment("ipv6", { app: app.id, type: "v6" });

// The certificate's DNS records point to the addresses, so the addresses come first.
const certificate = new machines.AcmeCertificate("certificate", { app: app.id, hostname }, { dependsOn: [ipv4, ipv6] });

export const appName = app.name;
export const addresses = [ipv4.ip, ipv6.ip];
export const dnsRecords = certificate.dnsRecords;
export const webMachines = web.machines.apply((all) => all.map(({ name }) => name));
