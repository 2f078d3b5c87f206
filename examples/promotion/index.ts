// One program for three stacks. A release begins in `dev`, with an image and its settings; `staging` and `prod` adopt it by
// its digest.
//
//   npm run promote -- dev staging
//   npm run promote -- staging prod
//   npm run promote -- prod --rollback
//   npm run status
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const production = pulumi.getStack() === "prod";
// The stack that a release comes from, also as `organization/project/stack`; the first stack has none.
const before = settings.get("before");
const project = `${pulumi.getOrganization()}/${pulumi.getProject()}`;
// A token that may read the Machines of that stack, if it belongs to another organization.
const sourceToken = settings.getSecret("sourceToken");

const release = new machines.Release(
  "release",
  before === undefined
    ? {
        image: settings.get("image") ?? "registry.example.com/shop:1.0.0",
        settings: { LOG_FORMAT: "json", CHECKOUT: settings.get("checkout") ?? "classic" },
      }
    : {
        from: new pulumi.StackReference(before.includes("/") ? before : `${project}/${before}`).getOutput("release"),
        // Written by `promote`, which checks `from` first.
        pinned: settings.getObject<machines.ReleaseRecord[]>("releases")?.[0],
        source: sourceToken === undefined ? undefined : { token: sourceToken },
      },
);

const app = new machines.App("shop", {}, { protect: production });
const address = new machines.IpAssignment("public", { app: app.id, type: "v6" });

// Settings that differ between stacks stay here and are never promoted.
const web = new machines.Fleet("web", {
  app: app.id,
  regions: settings.getObject<Record<string, number>>("regions") ?? { ams: 1 },
  config: {
    image: release.image,
    env: release.settings,
    guest: { cpuKind: "shared", cpus: 1, memoryMb: settings.getNumber("memoryMb") ?? 512 },
    metadata: { team: "shop", environment: pulumi.getStack() },
    stopConfig: { signal: "SIGTERM", timeout: "30s" },
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        ports: [
          { port: 80, handlers: ["http"], forceHttps: true },
          { port: 443, handlers: ["tls", "http"] },
        ],
        checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s", gracePeriod: "5s" }],
      },
    ],
  },
  strategy: { type: "rolling" },
  onFailure: "rollback",
});

const runs = release.runBy(web);

// The next stack reads this output.
export { runs as release };
export const appName = app.name;
export const publicAddress = address.ip;
