// An App with a Machine that keeps its data on a volume.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const region = settings.require("region");

const app = new machines.App("app");

const data = new machines.Volume("data", { app: app.id, region, sizeGb: 1 });

const web = new machines.Machine("web", {
  app: app.id,
  region,
  config: {
    image: settings.require("image"),
    env: { GREETING: "hello" },
    mounts: [{ volume: data.id, path: "/data" }],
    checks: { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } },
  },
});

export const appName = app.name;
export const machine = web.id;
export const version = web.version;
