// A real node for a cluster of tests: containerd and kubelet, built once from their Go modules. The cluster's other nodes are simulated.
import { KubeConfig, CoreV1Api } from "@kubernetes/client-node";
import crypto from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tarOf } from "../../service/runtime/docker/tar.ts";
import { startKeeper } from "../lib/keeper.mjs";
import { quiet, tail } from "../lib/process.mjs";
import { freeRange } from "./daemon.mjs";
import { goPrograms } from "./goProgram.mjs";
import { freePort } from "./kubernetes.mjs";
import { dnsOf } from "./kubernetesServices.mjs";

const containerd = "tools/kubernetes/containerd";
const programs = {
  kubelet: { source: "tools/kubernetes/control-plane", package: "k8s.io/kubernetes/cmd/kubelet" },
  containerd: { source: containerd, package: "github.com/containerd/containerd/v2/cmd/containerd" },
  "containerd-shim-runc-v2": {
    source: containerd,
    package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
  },
  ctr: { source: containerd, package: "github.com/containerd/containerd/v2/cmd/ctr" },
  ptp: { source: containerd, package: "github.com/containernetworking/plugins/plugins/main/ptp" },
  "host-local": { source: containerd, package: "github.com/containernetworking/plugins/plugins/ipam/host-local" },
  pause: { source: "tools/kubernetes/pause" },
};

/** Why this computer cannot run a real node; undefined if it can. */
export async function nodeProblem() {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "a real node needs Linux and root";
  for (const [program, flag] of [
    ["runc", "--version"],
    ["unshare", "--version"],
  ])
    if ((await quiet(program, [flag])).code !== 0) return `${program} is not installed`;
  // Containers in a container need more than root.
  const { code } = await quiet("unshare", ["--mount", "--pid", "--fork", "--mount-proc", "true"]);
  return code === 0 ? undefined : "this computer does not let root make namespaces";
}

/**
 * The programs of a node by their names; or the reason why there are none.
 * @param {NodeJS.ProcessEnv} env
 */
export const nodePrograms = (env) => goPrograms(programs, env);

/**
 * Runs the node as its input says. The input also ends when the process that started it is killed; then nothing remains. All its
 * processes are in a namespace that ends with its first one, and its mounts in another; the interfaces end with the Pods. Docker
 * closes the firewall between interfaces, so a rule opens it between Pods.
 */
const keeper = `
folder=$1 cgroup=$2 range=$3 inside=$4 opened=
shift 4
hierarchies=$(awk '$3 ~ /^cgroup/ { print $2 }' /proc/mounts | sort -u)
for each in $hierarchies; do mkdir "$each/$cgroup" || exit; done
iptables -w -I FORWARD -s "$range" -d "$range" -j ACCEPT && opened=1
unshare --mount --pid --fork --kill-child --mount-proc sh -c "$inside" sh "$folder" "$@"
[ "$opened" ] && iptables -w -D FORWARD -s "$range" -d "$range" -j ACCEPT
for each in $hierarchies; do find "$each/$cgroup" -depth -type d -exec rmdir {} ';'; done
rm -rf "$folder"
`;

/**
 * The first process of the node. Its programs use their usual folders, which are folders of its own here. It must not change the
 * settings of this computer's kernel: the kubelet reads that they are as it wants them.
 */
const inside = `
folder=$1 containerd=$2 name=$3 disks=$4 data=$5 running=
shift 5
for each in lib log; do mount --bind "$folder/$each" "/var/$each" || exit; done
mount --bind "$folder/run" /run || exit
for each in "$folder"/kernel/*; do
  mount --bind "$each" "/proc/sys/$(basename "$each" | tr . /)" || exit
done
mount --make-rshared / || exit
"$containerd" --config "$folder/containerd.toml" </dev/null &
kubelet=/var/lib/kubelet
[ -z "$disks" ] || "$disks" $kubelet/plugins/disks.sock "$data" "$name" $kubelet/plugins_registry </dev/null &
while read -r asked; do
  case $asked in
    start) "$@" </dev/null & running=$! ;;
    kill) kill -KILL "$running"; wait "$running" ;;
    pause) kill -STOP "$running" ;;
    continue) kill -CONT "$running" ;;
  esac
done
`;

/** What the kubelet sets, by the names of the kernel. */
const kernelSettings = {
  "vm.overcommit_memory": 1,
  "vm.panic_on_oom": 0,
  "kernel.panic": 10,
  "kernel.panic_on_oops": 1,
  "kernel.keys.root_maxkeys": 1_000_000,
  "kernel.keys.root_maxbytes": 25_000_000,
};

const pauseImage = "localhost/pause:1";

const containerdConfig = (found, folder) => `
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '${pauseImage}'
[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
# Without CAP_SYS_RESOURCE, root cannot protect a process from the end of memory.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
runtime_path = '${found["containerd-shim-runc-v2"]}'
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['${path.dirname(found.ptp)}', '${path.dirname(found["host-local"])}']
conf_dir = '${folder}/network'
use_internal_loopback = true
`;

/** Each Pod has a cable to this computer, which passes packets between Pods. */
const networkConfig = (range) => ({
  cniVersion: "1.0.0",
  name: "pods",
  plugins: [
    {
      type: "ptp",
      ipam: { type: "host-local", ranges: [[{ subnet: range }]], routes: [{ dst: "0.0.0.0/0" }] },
    },
  ],
});

const kubeletConfig = (address, port, cgroup, featureGates, services) => ({
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  address,
  port,
  healthzPort: 0,
  // Only this computer reaches the address; the API server has no certificate for it.
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
  cgroupRoot: `/${cgroup}`,
  failCgroupV1: false,
  failSwapOn: false,
  featureGates,
  clusterDomain: "cluster.local",
  clusterDNS: [dnsOf(services)],
  makeIPTablesUtilChains: false,
  // The disk of this computer is not the node's.
  evictionHard: { "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%" },
  imageGCHighThresholdPercent: 100,
});

/** The client of the containerd of a node. */
const ctrOf = (program, folder) => (words, options) =>
  quiet(
    program,
    ["--address", path.join(folder, "run/containerd/containerd.sock"), "--namespace", "k8s.io", ...words],
    options,
  );

/**
 * Puts an image into a node: a tar archive of its files, and a configuration with the names of Docker.
 * @param {string} program The client, `ctr`.
 * @param {string} folder The folder of the node.
 */
export async function importInto(program, folder, image, layer, config) {
  const ctr = ctrOf(program, folder);
  const { code, output } = await ctr(["images", "import", "-"], { input: await imageArchive(image, layer, config) });
  if (code !== 0) throw new Error(`the image ${image} could not be imported:\n${tail(output, 5)}`);
  // With a name that has the digest, it is as if a registry had it.
  const { stdout } = await ctr(["images", "list"]);
  const [, name, digest] = new RegExp(`^(\\S*${image}) +\\S+ +(sha256:\\S+)`, "m").exec(stdout) ?? [];
  await ctr(["images", "tag", name, `${name.replace(/:[^:]*$/, "")}@${digest}`]);
}

const startsIn = 60_000;

/**
 * Starts a node of a cluster, and waits until it is ready. It ends with the process that started it, however that ends. Its name is
 * the address of its kubelet, so two nodes need two of 127.0.0.0/8.
 * @param {{ kubeconfig: string, services: string }} cluster
 * @param {{
 *   found: Record<string, string>,
 *   name?: string,
 *   labels?: Record<string, string>,
 *   featureGates?: Record<string, boolean>,
 *   disks?: string[],
 * }} options The programs, the settings of the kubelet, and the driver of the cluster's disks with its folder.
 */
export async function startNode(
  cluster,
  {
    found,
    name = "127.0.0.1",
    labels = { "topology.kubernetes.io/region": "ams" },
    featureGates = {},
    disks = ["", ""],
  },
) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-node-"));
  const at = (file) => path.join(folder, file);
  const cgroup = path.basename(folder);
  const range = `${freeRange()}.0.0/16`;
  for (const each of ["lib", "log", "run", "kernel", "network"]) fs.mkdirSync(at(each));
  for (const [setting, value] of Object.entries(kernelSettings))
    fs.writeFileSync(at(`kernel/${setting}`), `${value}\n`);
  fs.writeFileSync(at("containerd.toml"), containerdConfig(found, folder));
  fs.writeFileSync(at("network/pods.conflist"), JSON.stringify(networkConfig(range)));
  const settings = kubeletConfig(name, await freePort(name), cgroup, featureGates, cluster.services);
  fs.writeFileSync(at("kubelet.json"), JSON.stringify(settings));
  const kubelet = [
    ...[found.kubelet, "--config", at("kubelet.json"), "--kubeconfig", cluster.kubeconfig, "--hostname-override", name],
    ...[
      "--node-labels",
      Object.entries(labels)
        .map((label) => label.join("="))
        .join(","),
    ],
  ];
  const args = [folder, cgroup, range, inside, found.containerd, name, ...disks, ...kubelet];
  const { ask, isRunning, log, remove } = startKeeper(keeper, args, at("node.log"));
  const until = async (what, isSo) => {
    for (const end = Date.now() + startsIn; Date.now() < end && isRunning(); await sleep(100)) if (await isSo()) return;
    const said = log();
    await remove();
    throw new Error(`${what}:\n${said}`);
  };
  const ctr = ctrOf(found.ctr, folder);
  const importImage = (image, layer, config) => importInto(found.ctr, folder, image, layer, config);
  await until("containerd did not start", async () => (await ctr(["version"])).code === 0);
  const pause = await tarOf([{ name: "pause", mode: 0o755, contents: fs.readFileSync(found.pause) }]);
  await importImage(pauseImage, pause, { Entrypoint: ["/pause"] });
  ask("start");
  await until("the node did not become ready", () => isReady(cluster.kubeconfig, name));
  return {
    name,
    folder,
    /** Starts, kills, pauses or continues the kubelet. */
    ask,
    /** Puts an image into the node: a tar archive of its files, and a configuration with the names of Docker. */
    importImage,
    /** Ends all of it, and removes its folder. The cluster still has the node's object. */
    remove,
  };
}

/** Whether Pods can be scheduled to a node. */
async function isReady(kubeconfig, name) {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  try {
    const { spec, status } = await config.makeApiClient(CoreV1Api).readNode({ name });
    const isTrue = status.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True");
    return isTrue === true && spec.taints === undefined;
  } catch (error) {
    if (error.code === 404) return false; // it has not registered yet
    throw error;
  }
}

/** An image of one layer, as `docker save` writes it. */
async function imageArchive(image, layer, config) {
  const id = crypto.createHash("sha256").update(layer).digest("hex");
  const architecture = { x64: "amd64" }[process.arch] ?? process.arch;
  const described = { architecture, os: "linux", config, rootfs: { type: "layers", diff_ids: [`sha256:${id}`] } };
  const manifest = [{ Config: "config.json", RepoTags: [image], Layers: ["layer.tar"] }];
  return tarOf([
    { name: "manifest.json", contents: Buffer.from(JSON.stringify(manifest)) },
    { name: "config.json", contents: Buffer.from(JSON.stringify(described)) },
    { name: "layer.tar", contents: layer },
  ]);
}
