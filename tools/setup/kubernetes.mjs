// A Kubernetes cluster for tests: its programs are built once from their Go modules. Its nodes are simulated by kwok.
import crypto from "node:crypto";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startKeeper } from "../lib/keeper.mjs";
import { quiet } from "../lib/process.mjs";
import { freeRange } from "./daemon.mjs";
import { goPrograms } from "./goProgram.mjs";

const programs = {
  etcd: { source: "tools/kubernetes/etcd", package: "go.etcd.io/etcd/server/v3" },
  "kube-apiserver": { source: "tools/kubernetes/control-plane", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
  "kube-scheduler": { source: "tools/kubernetes/control-plane", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
  "kube-controller-manager": {
    source: "tools/kubernetes/control-plane",
    package: "k8s.io/kubernetes/cmd/kube-controller-manager",
  },
  kwok: { source: "tools/kubernetes/kwok", package: "sigs.k8s.io/kwok/cmd/kwok" },
};

/**
 * The programs of a cluster by their names; or the reason why there are none.
 * @param {NodeJS.ProcessEnv} env
 */
export const clusterPrograms = (env) => goPrograms(programs, env);

/** Runs a program as its input says. The input also ends when this process is killed; then nothing remains. */
const keeper = `
left=$1 running=
shift
end() { kill -CONT "$running"; kill "-$1" "$running"; wait "$running"; running=; }
while read -r asked; do
  case $asked in
    start) "$@" & running=$! ;;
    stop) end TERM ;;
    kill) end KILL ;;
    pause) kill -STOP "$running" ;;
    continue) kill -CONT "$running" ;;
  esac
done
[ "$running" ] && end KILL
[ -z "$left" ] || rm -rf "$left"
`;

/** A program of a cluster, which logs into its folder. The last one to end removes the folder. */
export const component = (name, program, args, folder, env) =>
  startKeeper(keeper, [name === "etcd" ? folder : "", program, ...args], path.join(folder, `${name}.log`), env);

/** A port that nothing listens on. */
export const freePort = (address = "127.0.0.1") =>
  new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", reject);
    server.listen(0, address, () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

const startsIn = 120_000;

/**
 * Starts a cluster without nodes. It ends with the process that started it, however that ends.
 * @param {Record<string, string>} found The programs.
 */
export async function startCluster(found) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-cluster-"));
  const at = (name) => path.join(folder, name);
  const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
  const server = `https://127.0.0.1:${secure}`;
  const token = crypto.randomBytes(16).toString("hex");
  // Clusters on the same computer need different addresses once their Services can be reached.
  const services = freeRange();
  const { privateKey, publicKey } = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });
  fs.writeFileSync(at("account.key"), privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  fs.writeFileSync(at("account.pub"), publicKey.export({ type: "spki", format: "pem" }));
  fs.writeFileSync(at("tokens.csv"), `${token},administrator,administrator,system:masters\n`, { mode: 0o600 });
  const ca = at("certificates/apiserver.crt");
  const kubeconfig = at("kubeconfig");
  fs.writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "tests", cluster: { server, "certificate-authority": ca } }],
      users: [{ name: "administrator", user: { token } }],
      contexts: [{ name: "tests", context: { cluster: "tests", user: "administrator" } }],
      "current-context": "tests",
    }),
    { mode: 0o600 },
  );
  const alone = ["--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0"];
  const parts = {
    etcd: [
      ["--data-dir", at("etcd"), "--log-level=error"],
      ["--listen-client-urls", `http://127.0.0.1:${client}`, "--advertise-client-urls", `http://127.0.0.1:${client}`],
      ["--listen-peer-urls", `http://127.0.0.1:${peer}`, "--initial-advertise-peer-urls", `http://127.0.0.1:${peer}`],
      ["--initial-cluster", `default=http://127.0.0.1:${peer}`],
      // Its data lasts as long as the tests; a kill loses nothing that the system has.
      ["--unsafe-no-fsync"],
    ],
    "kube-apiserver": [
      ["--etcd-servers", `http://127.0.0.1:${client}`, "--bind-address=127.0.0.1", `--secure-port=${secure}`],
      ["--cert-dir", at("certificates"), "--token-auth-file", at("tokens.csv"), "--authorization-mode=RBAC"],
      ["--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file", at("account.pub")],
      ["--service-account-signing-key-file", at("account.key"), `--service-cluster-ip-range=${services}.0.0/16`],
      ["--endpoint-reconciler-type=none", "--feature-gates=ContainerStopSignals=true"],
    ],
    "kube-controller-manager": [
      [...alone, "--service-account-private-key-file", at("account.key"), "--root-ca-file", ca],
      // On a slow computer, nodes report late. They must not count as lost.
      ["--node-monitor-grace-period=1h", "--node-startup-grace-period=1h"],
    ],
    "kube-scheduler": [alone],
    kwok: [["--kubeconfig", kubeconfig, "--manage-nodes-with-label-selector=type=kwok"]],
  };
  const components = Object.fromEntries(
    Object.entries(parts).map(([name, args]) => [name, component(name, found[name], args.flat(), folder)]),
  );
  const isReady = async () => {
    if (!fs.existsSync(ca)) return false;
    const { code } = await quiet("curl", [
      ...[
        "-q",
        "-sf",
        "--noproxy",
        "*",
        "--max-time",
        "5",
        "--cacert",
        ca,
        "-H",
        `Authorization: Bearer ${token}`,
        `${server}/readyz`,
      ],
    ]);
    return code === 0;
  };
  const untilReady = async () => {
    for (const until = Date.now() + startsIn; Date.now() < until; await sleep(100)) if (await isReady()) return;
    throw new Error(`the API server did not start:\n${components["kube-apiserver"].log()}`);
  };
  components.etcd.ask("start");
  components["kube-apiserver"].ask("start");
  await untilReady();
  for (const name of ["kube-controller-manager", "kube-scheduler", "kwok"]) components[name].ask("start");
  return {
    server,
    token,
    ca,
    kubeconfig,
    folder,
    /** The first two numbers of the addresses of its Services. */
    services,
    /** Starts, stops, kills, pauses or continues a component. */
    ask: (name, word) => components[name].ask(word),
    /** Resolves once the API server answers. */
    untilReady,
    /** Ends all of it, and removes its folder. */
    async remove() {
      for (const one of Object.values(components).reverse()) await one.remove();
    },
  };
}
