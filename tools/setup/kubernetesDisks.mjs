// Volumes for a cluster of tests, which can be copied: the usual controllers, and a driver whose volumes are folders. All are built
// once from their Go modules.
import { KubeConfig, KubernetesObjectApi, loadAllYaml } from "@kubernetes/client-node";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inRoot } from "../lib/paths.mjs";
import { goEnvironment, goPrograms } from "./goProgram.mjs";
import { component } from "./kubernetes.mjs";

const source = "tools/kubernetes/storage";
const of = (name) => ({ source, package: `github.com/kubernetes-csi/${name}` });
const programs = {
  disks: { source: "tools/kubernetes/disks" },
  "csi-provisioner": of("external-provisioner/v6/cmd/csi-provisioner"),
  "csi-snapshotter": of("external-snapshotter/v8/cmd/csi-snapshotter"),
  "snapshot-controller": of("external-snapshotter/v8/cmd/snapshot-controller"),
  "csi-resizer": of("external-resizer/v2/cmd/csi-resizer"),
};

/** The name of the driver. */
const driver = "disks.tests";

/**
 * The programs of the volumes by their names; or the reason why there are none.
 * @param {NodeJS.ProcessEnv} env
 */
export const diskPrograms = (env) => goPrograms(programs, env);

/** The definitions of snapshots, as their controller's module has them. */
function definitions() {
  const module = "github.com/kubernetes-csi/external-snapshotter/client/v8";
  const described = execFileSync("go", ["mod", "download", "-json", module], {
    cwd: inRoot(source),
    env: goEnvironment(process.env),
    encoding: "utf8",
  });
  const folder = path.join(JSON.parse(described).Dir, "config", "crd");
  return fs
    .readdirSync(folder)
    .filter((name) => name.startsWith("snapshot.storage"))
    .flatMap((name) => loadAllYaml(fs.readFileSync(path.join(folder, name), "utf8")));
}

const isDefault = (group) => ({ annotations: { [`${group}/is-default-class`]: "true" } });

const classes = [
  {
    apiVersion: "storage.k8s.io/v1",
    kind: "CSIDriver",
    metadata: { name: driver },
    spec: { attachRequired: false },
  },
  {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: "disks", ...isDefault("storageclass.kubernetes.io") },
    provisioner: driver,
    allowVolumeExpansion: true,
    // As in most clouds: the volume is made where its first Pod is scheduled.
    volumeBindingMode: "WaitForFirstConsumer",
  },
  {
    apiVersion: "snapshot.storage.k8s.io/v1",
    kind: "VolumeSnapshotClass",
    metadata: { name: "disks", ...isDefault("snapshot.storage.kubernetes.io") },
    driver,
    deletionPolicy: "Delete",
  },
];

const knownIn = 60_000;

/** Creates an object. The cluster accepts those of a new kind after a moment. */
export async function createOnceKnown(objects, object) {
  for (const until = Date.now() + knownIn; ; await sleep(50))
    try {
      return await objects.create(object);
    } catch (error) {
      const isUnknown = error.code === 404 || /Unrecognized API/.test(error.message);
      if (!isUnknown || Date.now() > until) throw error;
    }
}

/**
 * Gives a cluster volumes, which are in its folder and usable on all its nodes.
 * @param {{ kubeconfig: string, folder: string }} cluster
 * @param {Record<string, string>} found The programs.
 */
export async function startDisks({ kubeconfig, folder }, found) {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const objects = KubernetesObjectApi.makeApiClient(config);
  for (const object of definitions()) await objects.create(object);
  for (const object of classes) await createOnceKnown(objects, object);
  const [data, socket] = [path.join(folder, "disks"), path.join(folder, "disks.sock")];
  // One of them prefers the variable to its option.
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const start = (name, ...args) => {
    const started = component(name, found[name], args, folder, env);
    started.ask("start");
    return started;
  };
  const alone = ["--kubeconfig", kubeconfig, "--retry-interval-start", "100ms"];
  const plugin = start("disks", socket, data);
  const controllers = [
    start("snapshot-controller", ...alone),
    ...["csi-provisioner", "csi-snapshotter", "csi-resizer"].map((name) =>
      start(name, ...alone, "--csi-address", socket),
    ),
  ];
  return {
    /** What a node needs to use them. */
    forNodes: [found.disks ?? "", data],
    /** Starts or kills what follows the API server. */
    ask(word) {
      for (const part of controllers) part.ask(word);
    },
    /** Ends all of it. */
    async remove() {
      for (const part of [...controllers.reverse(), plugin]) await part.remove();
    },
  };
}
