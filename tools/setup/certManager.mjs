// cert-manager for clusters of tests: its controllers are built once from its Go module, and run outside of the cluster.
import { KubeConfig, KubernetesObjectApi, loadAllYaml } from "@kubernetes/client-node";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";
import { goEnvironment, goProgram } from "./goProgram.mjs";
import { component } from "./kubernetes.mjs";
import { createOnceKnown } from "./kubernetesDisks.mjs";

const source = "tools/kubernetes/cert-manager";

/** The namespace of the Secrets of ClusterIssuers. */
const secrets = "default";

/**
 * The program of the controllers; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 */
export const certManagerProgram = (env) => goProgram({ name: "cert-manager", what: "cert-manager", source }, env);

/** The definitions, as the module has them. */
function definitions() {
  const module = "github.com/cert-manager/cert-manager";
  const described = execFileSync("go", ["mod", "download", "-json", module], {
    cwd: inRoot(source),
    env: goEnvironment(process.env),
    encoding: "utf8",
  });
  const folder = path.join(JSON.parse(described).Dir, "deploy", "crds");
  return fs
    .readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .flatMap((name) => loadAllYaml(fs.readFileSync(path.join(folder, name), "utf8")));
}

const issuer = (name, spec) => ({
  ...{ apiVersion: "cert-manager.io/v1", kind: "ClusterIssuer", metadata: { name }, spec },
});

/** An authority of its own: the issuer `tests` signs with the key of a Certificate. */
const authority = [
  issuer("bootstrap", { selfSigned: {} }),
  {
    apiVersion: "cert-manager.io/v1",
    kind: "Certificate",
    metadata: { name: "authority", namespace: secrets },
    spec: {
      isCA: true,
      commonName: "Test Authority",
      secretName: "authority",
      privateKey: { algorithm: "ECDSA", size: 256 },
      issuerRef: { group: "cert-manager.io", kind: "ClusterIssuer", name: "bootstrap" },
    },
  },
  issuer("tests", { ca: { secretName: "authority" } }),
];

/**
 * Gives a cluster cert-manager, with a ClusterIssuer named `tests`. It ends with the process that started it.
 * @param {string} kubeconfig The cluster; the log is written beside it.
 * @param {string} program
 */
export async function startCertManager(kubeconfig, program) {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const objects = KubernetesObjectApi.makeApiClient(config);
  for (const object of definitions()) await objects.create(object);
  for (const object of authority) await createOnceKnown(objects, object);
  const started = component("cert-manager", program, [kubeconfig, secrets], path.dirname(kubeconfig));
  started.ask("start");
  return { log: () => started.log(), remove: () => started.remove() };
}
