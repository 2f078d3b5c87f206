// npm run bench:runtimes [-- --runtimes simulated,docker,kubernetes --rounds N]: measures what runs the Machines side by side: the
// time until a Machine is started, updated, stopped and destroyed, and reads of it meanwhile. The floor is the command `docker`, in
// turn with the runtimes. Without an engine, one is started; for `kubernetes`, a cluster with one real node is.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { demoImage } from "../../tools/setup/demoImage.mjs";
import { provideEngine } from "../../tools/setup/engine.mjs";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { nodePrograms, startNode } from "../../tools/setup/kubernetesNode.mjs";
import { ask } from "./ask.ts";
import { start, stop, type Local } from "./command.ts";
import { load } from "./load.ts";
import { folder, median, milliseconds, report, run } from "./run.ts";

const { values: options } = parseArgs({
  options: {
    runtimes: { type: "string", default: "simulated,docker" },
    rounds: { type: "string", default: "10" },
  },
});
const rounds = Number(options.rounds);

const steps = ["create", "update", "stop", "destroy"] as const;
type Step = (typeof steps)[number];

/** A way to run a Machine; each step resolves when its effect is there. */
type Way = Readonly<Record<Step, () => Promise<unknown>>>;

const path = "/v1/apps/bench/machines";

/** A Machine of a service. */
function byService(local: Local, image: string): Way {
  let id = "";
  let count = 0;
  const send = async (to: string, method: string, body?: object): Promise<{ readonly id: string }> =>
    JSON.parse((await ask(local, to, method, body)) || "{}") as { readonly id: string };
  const until = (state: string): Promise<unknown> => send(`${path}/${id}/wait?state=${state}&timeout=60`, "GET");
  // Every update changes something; otherwise the Machine would not be replaced.
  const config = () => ({ image, env: { ROUND: String(count++) } });
  return {
    async create() {
      ({ id } = await send(path, "POST", { config: config() }));
      await until("started");
    },
    async update() {
      const answer = (await send(`${path}/${id}`, "POST", { config: config() })) as { readonly instance_id?: string };
      await send(`${path}/${id}/wait?state=started&timeout=60&instance_id=${answer.instance_id ?? ""}`, "GET");
    },
    async stop() {
      await send(`${path}/${id}/stop`, "POST", {});
      await until("stopped");
    },
    async destroy() {
      await send(`${path}/${id}`, "DELETE");
      await until("destroyed");
    },
  };
}

/** A container of the command `docker`. */
function byCommand(image: string): Way {
  let id = "";
  let count = 0;
  const docker = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)("docker", args)).stdout.trim();
  const create = async (): Promise<void> => {
    id = await docker("run", "--detach", "--init", "--env", `ROUND=${count++}`, image);
  };
  return {
    create,
    async update() {
      await docker("stop", id);
      await docker("rm", id);
      await create();
    },
    stop: () => docker("stop", id),
    destroy: () => docker("rm", id),
  };
}

/** Starts a cluster whose node has the image, and makes it the one of this process. Returns what ends it. */
async function startKubernetes(image: string): Promise<() => Promise<void>> {
  const [programs, ofNode] = [await clusterPrograms(process.env), await nodePrograms(process.env)];
  if (!programs.found || !ofNode.found) throw new Error(programs.reason ?? ofNode.reason);
  const cluster = await startCluster(programs.found);
  const node = await startNode(cluster, { found: ofNode.found });
  const docker = async (...args: string[]): Promise<Buffer> =>
    (await promisify(execFile)("docker", args, { encoding: "buffer", maxBuffer: 2 ** 30 })).stdout;
  const container = String(await docker("create", image)).trim();
  const files = await docker("export", container);
  const [{ Config }] = JSON.parse(String(await docker("inspect", container))) as [{ readonly Config: object }];
  await docker("rm", container);
  await node.importImage(image, files, Config);
  process.env["KUBECONFIG"] = cluster.kubeconfig;
  return async () => {
    await node.remove();
    await cluster.remove();
  };
}

async function bench(): Promise<void> {
  const engine = await provideEngine();
  if (engine.host === undefined) throw new Error(engine.reason);
  process.env["DOCKER_HOST"] = engine.host;
  const names = options.runtimes.split(",");
  const services: Local[] = [];
  let endKubernetes = async (): Promise<void> => {};
  try {
    const image = await demoImage(process.env);
    if (names.includes("kubernetes")) endKubernetes = await startKubernetes(image);
    for (const name of names) {
      const local = await start(join(folder, name), "--runtime", name, "--delays", "none");
      services.push(local);
      await ask(local, "/v1/apps", "POST", { name: "bench", org_slug: "personal" });
      // The network of an App is removed with its last Machine; this one stays.
      await ask(local, path, "POST", { config: { image } });
    }
    await measure([...services.map((local) => byService(local, image)), byCommand(image)]);
    const rates: string[] = [];
    for (const local of services) rates.push(`${(await reads(local, image)).toFixed(0)}/s`);
    const [first = "", ...rest] = rates;
    report("reads of a Machine", first, ...rest, "");
    for (const local of services) await ask(local, "/v1/apps/bench?force=true", "DELETE");
  } finally {
    for (const name of names) await stop(join(folder, name));
    await endKubernetes();
    await engine.stop();
  }
}

/** Measures each step in each way, one after the other in every round. */
async function measure(ways: readonly Way[]): Promise<void> {
  const times = ways.map(() => new Map<Step, number[]>(steps.map((step) => [step, []])));
  for (let round = 0; round < rounds; round++)
    for (const [at, way] of ways.entries())
      for (const step of steps) times[at]?.get(step)?.push(await milliseconds(way[step]));
  for (const step of steps) {
    const [first = 0, ...rest] = times.map((found) => median(found.get(step) ?? []));
    report(step, `${first.toFixed(0)} ms`, ...rest.map((value) => `${value.toFixed(0)} ms`));
  }
}

/** Requests per second for a Machine that runs. */
async function reads(local: Local, image: string): Promise<number> {
  const { id } = JSON.parse(await ask(local, path, "POST", { config: { image } })) as { readonly id: string };
  const rate = await load({ url: `${local.url}${path}/${id}`, token: local.token, seconds: 5 });
  if (rate.failures > 0) throw new Error(`${rate.failures} reads failed`);
  return rate.perSecond;
}

void run(["what", ...options.runtimes.split(","), "command docker"], bench);
