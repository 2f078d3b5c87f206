// Where a hostile program in a container gets by the network: not to this computer, nor to other networks of it.
import { execFileSync, spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { connectEngine } from "../../../service/runtime/docker/engine.ts";
import { chainsOf, firewallProblem } from "../../../service/runtime/docker/firewall.ts";
import { freeRange } from "../../../tools/setup/daemon.mjs";
import { leaveOut } from "../../../tools/lib/leftOut.mjs";
import { removeStored } from "../../runtime/cleaning.ts";
import { image } from "../../runtime/image.ts";
import { docker, hasEngine, withRuntime } from "../../runtime/runtimes.ts";
import { caller, type Call } from "../../service/client.ts";
import { command, folder, foreground } from "../../service/command.ts";
import { afterThisTest } from "../../support/leftovers.ts";

/** Leaves a test out where there can be no firewall. */
async function needFirewall(skip: (note: string) => void): Promise<void> {
  const problem = await firewallProblem(await connectEngine());
  if (problem === undefined) return;
  leaveOut("the firewall around Machines", problem);
  skip(problem);
}

const refused = "connection refused";

/** Addresses and ports by how connections to them ended, each way once. */
function ends(stdout: string): Readonly<Record<string, string>> {
  const found = new Map<string, Set<string>>();
  for (const line of stdout.trim().split("\n")) {
    const to = line.slice(0, line.indexOf(": "));
    const ways = found.get(to) ?? new Set();
    found.set(to, ways.add(line.slice(line.lastIndexOf(": ") + 2)));
  }
  return Object.fromEntries([...found].map(([to, ways]) => [to, [...ways].join(", ")]));
}

/** A started Machine of a new App, which connects to addresses and returns how that ended. */
async function machineOf(call: Call, app: string, more: object = {}) {
  expect((await call("POST", "/apps", { name: app, org_slug: "personal", ...more })).status).toBe(201);
  const { id } = (await call("POST", `/apps/${app}/machines`, { config: { image } })).body;
  const path = `/apps/${app}/machines/${id}`;
  await expect.poll(async () => (await call("GET", path)).body.state).toBe("started");
  const run = async (...words: readonly string[]): Promise<string> =>
    (await call("POST", `${path}/exec`, { command: words })).body.stdout;
  const connect = async (...to: readonly string[]) => ends(await run("attack", "connect", ...to));
  return { id, path, run, connect };
}

/** The IPv4 addresses of this computer: its own, and those of bridges, of which `host.docker.internal` is one. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((all = []) => all)
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);

/** A server of this computer at all its addresses. */
async function listenEverywhere(): Promise<number> {
  const server = createServer((socket) => socket.end()).listen(0, "0.0.0.0");
  await once(server, "listening");
  afterThisTest(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Another computer: it has a private address and a public one, and listens at port 5432. */
async function otherComputer() {
  const [name, range] = [`t${randomBytes(4).toString("hex")}`, freeRange()];
  // A network of four addresses, of those that are for examples.
  const block = 4 * randomInt(63);
  const [near, far] = [`${name}a`, `${name}b`];
  const ip = (...words: string[]): void => void execFileSync("ip", words, { stdio: "pipe" });
  ip("netns", "add", name);
  afterThisTest(() => ip("netns", "delete", name));
  ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name);
  const inside = (...words: string[]): void => ip("netns", "exec", name, "ip", ...words);
  const privateAddress = `${range}.255.2`;
  const publicAddress = `203.0.113.${block + 2}`;
  ip("address", "add", `${range}.255.1/30`, "dev", near);
  ip("address", "add", `203.0.113.${block + 1}/30`, "dev", near);
  ip("link", "set", near, "up");
  inside("address", "add", `${privateAddress}/30`, "dev", far);
  inside("address", "add", `${publicAddress}/30`, "dev", far);
  inside("link", "set", far, "up");
  const program = 'require("net").createServer((s) => s.end()).listen(5432, "0.0.0.0", () => console.log("listens"))';
  const server = spawn("ip", ["netns", "exec", name, process.execPath, "-e", program]);
  afterThisTest(async () => {
    const end = once(server, "exit");
    server.kill("SIGKILL");
    await end;
  });
  await once(server.stdout, "data");
  return { privateAddress: `${privateAddress}:5432`, publicAddress: `${publicAddress}:5432` };
}

describe.runIf(hasEngine)("what a Machine reaches", () => {
  test("F89: this computer refuses connections of a Machine at every address: the API, other services, and databases of others", async ({
    skip,
  }) => {
    await needFirewall(skip);
    const data = folder();
    afterThisTest(() => removeStored(data));
    const { url, token } = await foreground(
      data,
      ["--runtime", "docker", "--http", "0", "--https", "0", "--allow-remote", "--postgres", "embedded"],
      { MACHINES_SERVICE_LISTEN: "0.0.0.0:0" },
    );
    const { port: api } = new URL(url);
    const call = caller(`http://127.0.0.1:${api}`, token);
    await command(["org", "create", "others", "--data", data]);
    const { out } = await command(["token", "create", "--data", data, "--org", "others"]);
    const others = caller(`http://127.0.0.1:${api}`, out.trim());
    const { id } = (await others("POST", "/postgres", { org_slug: "others", region: "ams", plan: "basic" })).body.data;
    const cluster = async () => (await others("GET", `/postgres/${id}`)).body.data;

    const machine = await machineOf(call, "web");
    const ports = [api, await listenEverywhere()];
    const all = ["127.0.0.1", ...ownAddresses()].flatMap((address) => ports.map((port) => `${address}:${port}`));
    expect(await machine.connect(...all)).toEqual(Object.fromEntries(all.map((one) => [one, refused])));

    await expect.poll(async () => (await cluster()).status).toBe("ready");
    const { host, port } = (await cluster()).endpoints.primary.direct;
    expect(host).not.toBe("127.0.0.1");
    const database = `${host}:${port}`;
    const theirs = await machineOf(others, "theirs", { org_slug: "others" });
    expect(await theirs.connect(database, `${host}:${api}`)).toEqual({
      [database]: "done",
      [`${host}:${api}`]: refused,
    });
    expect(await machine.connect(database)).toEqual({ [database]: refused });
    for (const [request, path] of [
      [call, machine.path],
      [others, theirs.path],
    ] as const)
      await request("DELETE", `${path}?force=true`);
    await others("DELETE", `/postgres/${id}`);
  });

  test("F90: other networks refuse it, also while networks are created; its own and the internet answer", async ({
    skip,
  }) => {
    await needFirewall(skip);
    const app = await withRuntime("docker");
    const { call } = app;
    const machine = await machineOf(call, "one");
    const near = await machineOf(call, "two");
    const apart = await machineOf(call, "three", { network: "apart" });
    const { privateAddress, publicAddress } = await otherComputer();
    const addressOf = async ({ id, run }: typeof machine, name: string) =>
      `${(await run("lookup", `${id}.vm.${name}.internal`)).trim()}:8080`;
    const [nearby, farOff] = [await addressOf(near, "two"), await addressOf(apart, "three")];
    const found = { [nearby]: "done", [farOff]: refused, [privateAddress]: refused, [publicAddress]: "done" };
    expect(await machine.connect(...Object.keys(found))).toEqual(found);

    // Docker before 27 lifts its own separation for a moment whenever a network is created or removed.
    const change = async (): Promise<void> => {
      const Name = `machines-test-${randomBytes(4).toString("hex")}`;
      await (await docker.createNetwork({ Name })).remove();
    };
    for (let i = 0; i < 4; i++) {
      const [got] = await Promise.all([machine.connect(...Array.from({ length: 200 }, () => farOff)), change()]);
      expect(got).toEqual({ [farOff]: refused });
    }

    const rules = (): boolean =>
      execFileSync("iptables", ["-w", "-S"], { encoding: "utf8" }).includes(chainsOf(app.dataId()).forward);
    expect(rules()).toBe(true);
    for (const { path } of [machine, near, apart]) await call("DELETE", `${path}?force=true`);
    await expect.poll(rules).toBe(false);
    const left = () => docker.listNetworks({ filters: { label: [`machines-service.data=${app.dataId()}`] } });
    expect(await left()).toEqual([]);
  });

  test("F90: a private network that the operator names answers, and others do not", async ({ skip }) => {
    await needFirewall(skip);
    const { privateAddress } = await otherComputer();
    const other = await otherComputer();
    const reach = [privateAddress.replace(/:.*/, "/32")];
    const { call } = await withRuntime("docker", {}, { reach });
    const machine = await machineOf(call, "one");
    expect(await machine.connect(privateAddress, other.privateAddress)).toEqual({
      [privateAddress]: "done",
      [other.privateAddress]: refused,
    });
  });
});
