// A Volume with data, a snapshot, a copy from the snapshot, a fork, and the move of the data into another region. Each step
// is one `pulumi up`: `pulumi config set step copied`, then `switched`, then `removed`.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const steps = ["start", "copied", "switched", "removed"];
const step = settings.get("step") ?? "start";
if (!steps.includes(step)) throw new Error(`step is one of ${steps.join(", ")}`);
const reached = (other: string): boolean => steps.indexOf(step) >= steps.indexOf(other);

const app = new machines.App("shop");

// The data. After the move the volume is removed from the program and thereby deleted.
const data = reached("removed")
  ? undefined
  : new machines.Volume("data", {
      app: app.id,
      region: "ams",
      sizeGb: settings.getNumber("sizeGb") ?? 2,
      snapshotRetention: 14,
      finalSnapshot: settings.getBoolean("finalSnapshot") ?? false,
    });

// An extra snapshot for every release, in addition to the daily ones.
const snapshot =
  data &&
  new machines.VolumeSnapshot("before-release", {
    app: app.id,
    volume: data.id,
    triggers: { release: settings.get("release") ?? "1" },
  });

// A copy of the snapshot. The source of a volume matters only at creation.
const restored = new machines.Volume("restored", {
  app: app.id,
  region: "ams",
  snapshotId: snapshot?.id,
});

// A copy of the current data for tests.
const staging = new machines.Volume("staging", {
  app: app.id,
  region: "ams",
  sourceVolumeId: data?.id,
});

// copied: the data in its new region, forked while nothing writes to it.
const fork = (options?: pulumi.CustomResourceOptions) =>
  new machines.Volume(
    "moved",
    { app: app.id, region: "fra", snapshotRetention: 14, sourceVolumeId: data?.id },
    options,
  );

// switched: the Machine mounts the existing fork.
const moved = reached("switched") ? fork() : undefined;
const mounted = moved ?? data;

const store = new machines.Machine("store", {
  app: app.id,
  region: moved ? "fra" : "ams",
  state: step === "copied" ? "stopped" : "started",
  config: {
    image: settings.get("image") ?? "registry.example.com/store:1.0.0",
    mounts: mounted ? [{ volume: mounted.id, path: "/data" }] : [],
  },
});

if (step === "copied") fork({ dependsOn: [store] });

export const appName = app.name;
export const machine = store.id;
export const volume = mounted?.id;
export const copies = [restored.id, staging.id];
