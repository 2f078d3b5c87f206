// Measures Machines as containers: `npm run bench:containers [-- --rounds N]`. The time from a request until the Machine answers
// through the proxy is compared with `docker run`, and with the engine's own create and start; requests through the proxy are
// compared with requests to the container's port. It needs an engine (DOCKER_HOST), and the command `docker`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import Dockerode from "dockerode";
import { demoImage } from "../../tools/setup/demoImage.mjs";
import { root } from "../workbench.ts";

const { rounds } = parseArgs({ options: { rounds: { type: "string", default: "10" } } }).values;
const docker = new Dockerode();
const main = join(root, "service/dist/service/main.js");
const seconds = 5;
const clients = 8;

interface Place {
  readonly port: number;
  readonly host: string;
}

/** The status of an answer; 0 if there is none. */
const ask = ({ port, host }: Place, agent: Agent | false = false): Promise<number> =>
  new Promise((resolve) => {
    const sent = request({ host: "127.0.0.1", port, path: "/healthz", headers: { host }, agent }, (answer) => {
      answer.resume();
      answer.once("end", () => resolve(answer.statusCode ?? 0));
    });
    sent.once("error", () => resolve(0));
    sent.end();
  });

async function untilAnswered(place: Place): Promise<void> {
  while ((await ask(place)) !== 200);
}

async function perSecond(place: Place): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const end = performance.now() + seconds * 1000;
  let answered = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < end) if ((await ask(place, agent)) === 200) answered++;
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  return answered / seconds;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** Milliseconds until a container that the engine runs answers: in its default network, or as Machines run. */
async function byEngine(image: string, network?: string): Promise<number> {
  const begun = performance.now();
  const container = await docker.createContainer({
    Image: image,
    ExposedPorts: { "8080/tcp": {} },
    HostConfig: {
      PortBindings: { "8080/tcp": [{ HostIp: "127.0.0.1", HostPort: "" }] },
      ...(network === undefined ? {} : { NetworkMode: network, Init: true }),
    },
  });
  await container.start();
  const { NetworkSettings } = await container.inspect();
  await untilAnswered({ port: Number(NetworkSettings.Ports["8080/tcp"]?.[0]?.HostPort), host: "localhost" });
  const taken = performance.now() - begun;
  await container.remove({ force: true });
  return taken;
}

/** Milliseconds until a container of `docker run` answers. */
async function byCommand(image: string): Promise<number> {
  const docker = (...args: string[]): string => execFileSync("docker", args, { encoding: "utf8" }).trim();
  const begun = performance.now();
  const id = docker("run", "--detach", "--publish", "127.0.0.1::8080", image);
  const port = Number(docker("port", id, "8080").split(":").at(-1));
  await untilAnswered({ port, host: "localhost" });
  const taken = performance.now() - begun;
  docker("rm", "--force", id);
  return taken;
}

async function bench(): Promise<void> {
  const image = await demoImage(process.env);
  const data = mkdtempSync(join(tmpdir(), "machines-bench-"));
  const service = (...args: string[]): string =>
    execFileSync(process.execPath, [main, ...args, "--data", data], { encoding: "utf8" });
  try {
    const started = service("start", "--detach", "--json", "--runtime", "docker", "--listen", "127.0.0.1:0");
    const { url, proxy } = JSON.parse(started) as { readonly url: string; readonly proxy: { readonly http: number } };
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const call = async (method: string, path: string, body?: object): Promise<{ readonly id: string }> => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const answer = await fetch(`${url}/v1${path}`, {
        method,
        headers,
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return JSON.parse((await answer.text()) || "{}") as { readonly id: string };
    };
    await call("POST", "/apps", { name: "bench", org_slug: "personal" });
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }];
    const place = { port: proxy.http, host: "bench.localhost" };
    const ours: number[] = [];
    const commands: number[] = [];
    const theirs: number[] = [];
    const alike: number[] = [];
    // Networks are removed with their last Machine; this one stays.
    await call("POST", "/apps/bench/machines", { config: { image } });
    let id = "";
    for (let round = 0; round < Number(rounds); round++) {
      commands.push(await byCommand(image));
      theirs.push(await byEngine(image));
      const [network] = await docker.listNetworks({ filters: { label: ["machines-service.network"] } });
      alike.push(await byEngine(image, network?.Id));
      if (id !== "") {
        await call("DELETE", `/apps/bench/machines/${id}?force=true`);
        await call("GET", `/apps/bench/machines/${id}/wait?state=destroyed&timeout=60`);
      }
      const begun = performance.now();
      ({ id } = await call("POST", "/apps/bench/machines", { config: { image, services } }));
      await untilAnswered(place);
      ours.push(performance.now() - begun);
    }
    const [container] = await docker.listContainers({ filters: { label: [`machines-service.machine=${id}`] } });
    const direct = { port: container?.Ports[0]?.PublicPort ?? 0, host: "localhost" };
    const rates = { direct: [] as number[], proxy: [] as number[] };
    for (let round = 0; round < 3; round++) {
      rates.direct.push(await perSecond(direct));
      rates.proxy.push(await perSecond(place));
    }
    await call("DELETE", "/apps/bench?force=true");
    const [start, command, engine] = [median(ours), median(commands), median(theirs)];
    const [through, to] = [median(rates.proxy), median(rates.direct)];
    const same = median(alike);
    console.log(`until it answers: ${start.toFixed(0)} ms`);
    console.log(`  docker run: ${command.toFixed(0)} ms, ratio ${(start / command).toFixed(2)}`);
    console.log(`  the engine's create and start: ${engine.toFixed(0)} ms, ratio ${(start / engine).toFixed(2)}`);
    console.log(
      `  the same with an init process and a network: ${same.toFixed(0)} ms, ratio ${(start / same).toFixed(2)}`,
    );
    console.log(
      `requests a second: ${through.toFixed(0)} through the proxy, ${to.toFixed(0)} to the container, ratio ${(through / to).toFixed(2)}`,
    );
  } finally {
    service("stop");
    rmSync(data, { recursive: true, force: true });
  }
}

bench().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
