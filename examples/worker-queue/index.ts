// A queue, and as many workers as the hour of the day needs. workflows/scale.yml runs `pulumi up` every hour.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();

// How many workers there are from an hour of the day on, in UTC. The last entry lasts until the first one of the next day.
const schedule = settings.getObject<Record<string, number>>("schedule") ?? { 6: 4, 18: 2, 22: 1 };
const hours = Object.keys(schedule).map(Number);
// `pulumi preview --config machines-worker-queue:hour=3` shows another time.
const hour = settings.getNumber("hour") ?? new Date().getUTCHours();
const since = hours.filter((from) => from <= hour).at(-1) ?? hours.at(-1);
const workers = since === undefined ? 1 : (schedule[since] ?? 1);

const app = new machines.App("jobs");

// The queue keeps its jobs on a volume, so that a restart loses none.
const data = new machines.Volume("queue-data", { app: app.id, region: "ams", sizeGb: 1 });

const queue = new machines.Machine("queue", {
  app: app.id,
  region: "ams",
  config: {
    image: settings.get("queueImage") ?? "docker.io/valkey/valkey:8.1-alpine",
    init: { cmd: ["valkey-server", "--appendonly", "yes", "--dir", "/data"] },
    mounts: [{ volume: data.id, path: "/data" }],
    checks: { alive: { type: "tcp", port: 6379, interval: "15s", timeout: "2s" } },
    stopConfig: { signal: "SIGTERM", timeout: "30s" },
  },
});

const worker = new machines.Fleet("worker", {
  app: app.id,
  regions: { ams: workers },
  config: {
    image: settings.get("image") ?? "registry.example.com/shop:1.0.0",
    init: { cmd: ["worker"] },
    // A Machine keeps its id for life. The name resolves on the private network alone.
    env: { QUEUE_URL: pulumi.interpolate`redis://${queue.machineId}.vm.${app.name}.internal:6379` },
    // A worker that is no longer needed finishes its job first.
    stopConfig: { signal: "SIGTERM", timeout: "300s" },
  },
  strategy: { type: "rolling", maxUnavailable: "1" },
});

export const appName = app.name;
export const workerMachines = worker.machines.apply((all) => all.map(({ name }) => name));
