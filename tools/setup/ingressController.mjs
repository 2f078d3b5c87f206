// Traefik, an ingress controller for clusters of tests: built once from its Go module. It runs outside of the cluster.
import fs from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { accepts } from "../../service/runtime/probe.ts";
import { inRoot } from "../lib/paths.mjs";
import { goProgram } from "./goProgram.mjs";
import { component, freePort } from "./kubernetes.mjs";

const source = "tools/kubernetes/ingress";
const lego = "github.com/go-acme/lego/v5";

/** Traefik gets a copy of a module, without providers of DNS for ACME: they need hundreds of modules, and take minutes to build. */
async function withoutProviders(folder, go) {
  const { Dir: original } = JSON.parse(await go("mod", "download", "-json", lego));
  const copy = path.join(folder, "lego");
  const providers = path.join("providers", "dns");
  for (const file of fs.readdirSync(original, { recursive: true })) {
    if (file.startsWith(providers + path.sep) || !(file.endsWith(".go") || file === "go.mod")) continue;
    fs.mkdirSync(path.dirname(path.join(copy, file)), { recursive: true });
    fs.copyFileSync(path.join(original, file), path.join(copy, file));
  }
  fs.mkdirSync(path.join(copy, providers));
  fs.copyFileSync(inRoot(source, "providers.go"), path.join(copy, providers, "providers.go"));
  const modfile = path.join(folder, "go.mod");
  for (const name of ["go.mod", "go.sum"]) fs.copyFileSync(inRoot(source, name), path.join(folder, name));
  await go("mod", "edit", "-replace", `${lego}=${copy}`, modfile);
  return ["-modfile", modfile];
}

/**
 * The program of the controller; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 */
export const controllerProgram = (env) =>
  goProgram(
    {
      name: "traefik",
      what: "the ingress controller",
      source,
      package: "github.com/traefik/traefik/v3/cmd/traefik",
      prepare: withoutProviders,
    },
    env,
  );

const startsIn = 60_000;

/**
 * Starts the controller of a cluster, and waits until it listens. It ends with the process that started it.
 * @param {string} program
 * @param {string} kubeconfig The cluster; the log is written beside it.
 * @param {{ port: number, httpPort: number }} [ports] Its ports of 127.0.0.1; free ones if left out.
 */
export async function startController(program, kubeconfig, ports) {
  const { port, httpPort } = ports ?? { port: await freePort(), httpPort: await freePort() };
  const args = [
    ...["--global.checknewversion=false", "--providers.kubernetesingress=true"],
    ...[`--entrypoints.websecure.address=127.0.0.1:${port}`, "--entrypoints.websecure.http.tls=true"],
    `--entrypoints.web.address=127.0.0.1:${httpPort}`,
  ];
  const { KUBERNETES_SERVICE_HOST: _, ...env } = { ...process.env, KUBECONFIG: kubeconfig };
  const traefik = component("traefik", program, args, path.dirname(kubeconfig), env);
  traefik.ask("start");
  for (const until = Date.now() + startsIn; !(await accepts(`127.0.0.1:${port}`)); await sleep(50))
    if (Date.now() > until) {
      await traefik.remove();
      throw new Error(`the ingress controller did not start:\n${traefik.log()}`);
    }
  return {
    /** Its port for HTTPS, of 127.0.0.1. */
    port,
    /** Its port for HTTP. */
    httpPort,
    remove: () => traefik.remove(),
  };
}
