// The Services of a cluster of tests at their own addresses, and their names in the DNS: what kube-proxy and CoreDNS do on other
// clusters. Both of kube-proxy's tables belong to the whole computer, so the tests that run at the same time could not have one each.
// Instead the range of a cluster's Services belongs to the loopback interface, and a process passes the connections on.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { startKeeper } from "../lib/keeper.mjs";
import { inRoot } from "../lib/paths.mjs";

/** The address in a range of Services at which their names are asked; by custom it is the tenth. */
export const dnsOf = (range) => `${range}.0.10`;

/** All of a range are addresses of this computer while the process runs, so that it can listen at each of them. */
const keeper = `
range=$1
shift
ip address add "$range.0.1/16" dev lo || exit
"$@" </dev/null & running=$!
while read -r asked; do :; done
kill "$running"
wait "$running"
ip address del "$range.0.1/16" dev lo
`;

const startsIn = 60_000;

/**
 * Lets this computer and the Pods of its nodes reach the Services of a cluster. It ends with the process that started it.
 * @param {{ kubeconfig: string, folder: string, services: string }} cluster
 */
export async function startServices({ kubeconfig, folder, services }) {
  const program = fileURLToPath(new URL("kubernetesServicesProcess.mjs", import.meta.url));
  const args = [services, process.execPath, program, kubeconfig, services];
  const keeping = startKeeper(keeper, args, path.join(folder, "services.log"), { ...process.env, PWD: inRoot() });
  const { Resolver } = await import("node:dns/promises");
  const resolver = new Resolver({ timeout: 1000, tries: 1 });
  resolver.setServers([dnsOf(services)]);
  const answers = () => resolver.resolve4("kubernetes.default.svc.cluster.local").catch(() => undefined);
  for (const until = Date.now() + startsIn; !(await answers());)
    if (Date.now() > until || !keeping.isRunning()) {
      const said = keeping.log();
      await keeping.remove();
      throw new Error(`the Services of the cluster cannot be reached:\n${said}`);
    } else await new Promise((resolve) => setTimeout(resolve, 100));
  return { remove: () => keeping.remove() };
}
