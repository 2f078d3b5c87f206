// Counts the requests that are lost while the service restarts under load: `npm run bench:restart [-- --requests N --restarts N]`.
// With sockets that its parent holds, as systemd does, none may be lost; without, new connections are refused meanwhile. Half of the
// clients keep their connections. Every second process is another build.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { demoImage } from "../../tools/setup/demoImage.mjs";
import { provideEngine } from "../../tools/setup/engine.mjs";
import { holdSockets } from "../../test/support/heldSockets.ts";
import { otherBuild } from "../../test/support/otherBuild.ts";
import { steadyLoad } from "../../test/support/steadyLoad.ts";
import { root } from "../workbench.ts";
import { folder, median, report, run, say } from "./run.ts";

const { values } = parseArgs({
  options: { requests: { type: "string", default: "50000" }, restarts: { type: "string", default: "10" } },
});
const [requests, restarts] = [Number(values.requests), Number(values.restarts)];
const [hostname, appsDomain] = ["machines.example.com", "apps.example.com"];
const clients = 8;
const serviceMain = join(root, "service/dist/service/main.js");

interface Ports {
  readonly http: number;
  readonly https: number;
  readonly api: number;
}

/** A process of the service, ready. */
interface Process {
  readonly pid: number;
  readonly ended: Promise<unknown>;
}

type Start = (main: string) => Promise<Process>;

const argumentsOf = (data: string): string[] => {
  const names = ["--hostname", hostname, "--apps-domain", appsDomain];
  return ["start", "--data", data, "--json", "--runtime", "docker", ...names];
};

async function freePorts(): Promise<Ports> {
  const servers = await Promise.all(
    [0, 1, 2].map(async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  const [http = 0, https = 0, api = 0] = servers.map((one) => (one.address() as AddressInfo).port);
  for (const one of servers) one.close();
  return { http, https, api };
}

/** Creates an App whose Machine answers. */
async function deploy(data: string, { api, http }: Ports, image: string): Promise<void> {
  const token = readFileSync(join(data, "token"), "utf8").trim();
  const post = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`http://127.0.0.1:${api}/v1${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path} gave ${answer.status} ${await answer.text()}`);
  };
  await post("/apps", { name: "bench", org_slug: "personal" });
  const ports = [
    { port: 80, handlers: ["http"] },
    { port: 443, handlers: ["tls", "http"] },
  ];
  const services = [{ protocol: "tcp", internal_port: 8080, ports }];
  await post("/apps/bench/machines", { config: { image, services } });
  const target = { port: http, host: `bench.${appsDomain}`, path: "/healthz" };
  const { outcome, done } = steadyLoad({
    targets: [target],
    requests: 1,
    clients: 1,
    isRight: (status) => status === 200,
  });
  await done;
  if (outcome.answered === 0) throw new Error(`the Machine does not answer: ${outcome.lost.join()}`);
}

/** Restarts a service under load, and reports what came of it. */
async function measure(what: string, data: string, ports: Ports, image: string, start: Start): Promise<void> {
  const other = otherBuild(serviceMain);
  try {
    let running = await start(serviceMain);
    await deploy(data, ports, image);
    const ca = readFileSync(join(data, "local-ca.pem"), "utf8");
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const app = `bench.${appsDomain}`;
    const begun = performance.now();
    const { outcome, done } = steadyLoad({
      targets: [
        { port: ports.http, host: app, path: "/healthz" },
        { port: ports.https, host: app, path: "/healthz", ca },
        { port: ports.https, host: hostname, path: "/v1/platform/regions", ca },
        { port: ports.api, host: "localhost", path: "/v1/platform/regions" },
      ],
      ...{ requests, clients, headers: { authorization: `Bearer ${token}` } },
      isRight: (status) => status === 200,
    });
    const pauses: number[] = [];
    for (let round = 1; round <= restarts; round++) {
      const from = (round * requests) / (restarts + 1);
      while (outcome.answered + outcome.lost.length < from) await sleep(5);
      const stopped = performance.now();
      process.kill(running.pid, "SIGTERM");
      await running.ended;
      running = await start(round % 2 ? other.main : serviceMain);
      pauses.push(performance.now() - stopped);
    }
    await done;
    const seconds = (performance.now() - begun) / 1000;
    process.kill(running.pid, "SIGTERM");
    await running.ended;
    const { answered, lost, longest, connections } = outcome;
    report(
      ...([what, `${lost.length} of ${requests}`, String(restarts), `${Math.round(median(pauses))} ms`] as const),
      ...[`${Math.round(longest)} ms`, String(connections), String(Math.round(answered / seconds))],
    );
    for (const reason of new Set(lost.map((text) => text.slice(0, 120)))) say(`  lost: ${reason}`);
  } finally {
    other.remove();
  }
}

/** A process that opens its ports itself. */
async function startAlone(main: string, data: string, { http, https, api }: Ports): Promise<Process> {
  const ports = ["--public", "127.0.0.1", "--http", String(http), "--https", String(https)];
  const args = [main, ...argumentsOf(data), ...ports, "--listen", `127.0.0.1:${api}`];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  if (child.stdout) await Promise.race([once(child.stdout, "data"), ended]);
  return { pid: child.pid ?? 0, ended };
}

void run(
  ["ports", "lost", "restarts", "median restart", "longest request", "connections", "requests per second"],
  async () => {
    const engine = await provideEngine();
    if (engine.host === undefined) throw new Error(engine.reason ?? "no engine");
    process.env["DOCKER_HOST"] = engine.host;
    mkdirSync(folder, { recursive: true });
    try {
      const image = await demoImage(process.env);
      const ports = await freePorts();
      const held = await holdSockets(ports);
      const data = join(folder, "held");
      await measure("held by a parent", data, ports, image, async (main) => {
        const started = await held.start(process.execPath, [main, ...argumentsOf(data)]);
        const ready = await started.ready;
        if (ready["pid"] !== started.pid) throw new Error(held.said());
        return started;
      });
      held.end();
      const alone = await freePorts();
      const own = join(folder, "own");
      await measure("opened by the service", own, alone, image, (main) => startAlone(main, own, alone));
    } finally {
      await engine.stop();
    }
  },
);
