// What a hostile program in a container tries, and what names of images lead to.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { networkInterfaces } from "node:os";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import type { DockerOptions } from "../../../service/runtime/docker/index.ts";
import { startRegistry } from "../../runtime/registry.ts";
import { hasEngine, withRuntime } from "../../runtime/runtimes.ts";
import { afterThisTest } from "../../support/leftovers.ts";

/** A started Machine, and what its programs print. */
async function machine(walls: DockerOptions = {}) {
  const app = await withRuntime("docker", {}, walls);
  const id = await app.create();
  await app.reaches(id, "started");
  return { ...app, id, run: async (...words: string[]): Promise<string> => output(await app.exec(id, ...words)) };
}

const output = ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): string => stdout + stderr;

describe.runIf(hasEngine)("what a container may use", () => {
  test("F87: a program without end gets 2,048 threads and 65,536 files, and another Machine runs on", async () => {
    const app = await machine();
    const other = await app.create();
    await app.reaches(other, "started");
    const [, threads] = /failed to create new OS thread \(have (\d+) already/.exec(
      await app.run("attack", "threads", "4096"),
    ) ?? [undefined, "Infinity"];
    expect(Number(threads)).toBeLessThanOrEqual(2048);
    const [, files] = /^opened (\d+): too many open files/.exec(await app.run("attack", "files", "70000")) ?? [];
    expect(Number(files)).toBeLessThanOrEqual(65_536);
    for (const id of [app.id, other]) expect(await app.exec(id, "echo", "works")).toMatchObject({ stdout: "works\n" });
  });

  test("F88: root in a container has no raw socket, no device, no setuid program and no new root folder", async () => {
    const app = await machine();
    const denied = "operation not permitted";
    expect((await app.run("attack", "privileges")).split("\n")).toEqual([
      `raw socket: ${denied}`,
      `packets of others: ${denied}`,
      `device: ${denied}`,
      "setuid program: user 1000 <nil>",
      `new root: ${denied}`,
      "",
    ]);
    // The main process has no more than a command.
    const status = await app.run("cat", "/proc/1/status");
    expect([/CapBnd:\s*(\w+)/.exec(status)?.[1], /NoNewPrivs:\s*(\d)/.exec(status)?.[1]]).toEqual([
      "00000000000004eb",
      "1",
    ]);
  });

  test("F88: what common images do as root works, and an operator can allow more", async () => {
    const app = await machine({ capabilities: ["NET_RAW"] });
    expect(await app.run("usual")).toBe("works\n");
    expect(await app.run("attack", "privileges")).toMatch(/^raw socket: done\npackets of others: done\ndevice: op/);
  });
});

/** Why a Machine could not be prepared. */
async function failure(app: Awaited<ReturnType<typeof withRuntime>>, id: string): Promise<string> {
  await app.reaches(id, "failed");
  return (await app.exit(id)).error;
}

/** A server of this computer that notes its connections. */
async function listen(address: string, answer: Parameters<typeof createServer>[1] = () => {}) {
  const seen: string[] = [];
  const server: Server = createServer(answer);
  server.on("connection", ({ localAddress = "" }) => void seen.push(localAddress));
  server.listen(0, address);
  await once(server, "listening");
  afterThisTest(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

/** The IPv4 addresses of this computer that are not its loopback: its own, and those of the engine's bridges. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((all = []) => all)
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);

describe.runIf(hasEngine && process.platform === "linux")("names of images", () => {
  test("F91: a name that leads to this computer or a private network asks nothing, and says nothing about it", async () => {
    const app = await withRuntime("docker");
    const { port, seen } = await listen("0.0.0.0");
    const refusal = async (registry: string): Promise<string> => {
      const name = `${registry}/team/app:1`;
      const { status, body } = await app.call("POST", app.machines, { config: { image: name } });
      expect(status).toBe(400);
      return body.error.replaceAll(registry.toLowerCase(), "REGISTRY").replaceAll(registry, "REGISTRY");
    };
    const hosts = [
      "127.0.0.1",
      "localhost",
      "LOCALHOST",
      "127.1.2.3",
      "0.0.0.0",
      "2130706433",
      "[::1]",
      "[::ffff:7f00:1]",
    ];
    const own = ownAddresses();
    const answers = await Promise.all(hosts.map((host) => refusal(`${host}:${port}`)));
    const ofOwn = await Promise.all(own.map((host) => refusal(`${host}:${port}`)));
    // Another test gives this computer an address for a while (reach.test.ts), which others may have afterwards.
    const remaining = ownAddresses();
    answers.push(...ofOwn.filter((_, index) => remaining.includes(own[index] ?? "")));
    // Where nothing answers, and where nothing is.
    for (const registry of ["127.0.0.1:9", "10.255.255.1:5000", "169.254.169.254", "no-such.invalid"])
      answers.push(await refusal(registry));
    expect([...new Set(answers)]).toEqual([
      'invalid config.image, got "REGISTRY/team/app:1", the engine does not have it and cannot fetch it: the service does not use the registry REGISTRY: the operator has not allowed it, and it is not known to be on the internet',
    ]);
    expect(seen).toEqual([]);
    expect((await app.call("GET", app.machines)).body).toEqual([]);
  });

  test("F91: a registry that the operator has named is asked", async () => {
    const registry = await startRegistry("someone:password");
    const app = await withRuntime("docker", {}, { registries: ["public", registry.address] });
    const { body } = await app.call("POST", app.machines, { config: { image: `${registry.address}/team/app:1` } });
    expect(body.error).toMatch(
      /: the registry denies access \(requested without credentials; docker login saves them\)$/,
    );
  });

  test("F92: an error has nothing of what a registry, or a server that it names, has answered", async () => {
    const secret = "hush-hush-of-an-internal-server";
    const lines: string[] = [];
    const errors = JSON.stringify({ errors: [{ code: "DENIED", message: secret, detail: secret }] });
    const internal = await listen("127.0.0.1", (_, answer) => void answer.writeHead(403).end(errors));
    let sendsElsewhere = false;
    const registry = await listen("127.0.0.1", ({ url = "", method }, answer) => {
      if (sendsElsewhere) {
        answer.setHeader("www-authenticate", `Bearer realm="http://127.0.0.1:${internal.port}/token",service="x"`);
        return void answer.writeHead(401).end(errors);
      }
      if (url === "/v2/") return void answer.end("{}");
      if (method !== "HEAD") return void answer.writeHead(url.includes("/denied/") ? 403 : 418).end(errors);
      const digest = `sha256:${"0".repeat(64)}`;
      answer.writeHead(200, { "docker-content-digest": digest, "content-type": "x", "content-length": 9 }).end();
    });
    const address = `127.0.0.1:${registry.port}`;
    const log = { write: (line: string) => void lines.push(line) };
    const app = await withRuntime("docker", { log }, { registries: [address] });
    for (const path of ["denied", "odd", "elsewhere"]) {
      sendsElsewhere = path === "elsewhere";
      const image = `${address}/team/${path}/app:1`;
      const { status, text, body } = await app.call("POST", app.machines, { config: { image } });
      const error = status === 400 ? body.error : await failure(app, body.id);
      expect([text.includes(secret), error.includes(secret), error.includes("http")]).toEqual([false, false, false]);
      expect(error).toMatch(
        /: the registry (denies access|could not be reached; the log of the service has the reason)/,
      );
    }
    expect(internal.seen).not.toEqual([]);
    expect(lines.join("")).toContain(secret);
  });
});
