// Measures the effect of attacks on other clients: `npm run bench:attacks [-- --service MAIN] [--only WORDS]`. Each attack runs
// on a fresh service. The output has the longest wait of another client, the memory and the descriptors. `--service` names the
// service/main.ts of another version.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { residentMb } from "../processes.ts";
import { root } from "../workbench.ts";
import { descriptors, many, open, send, sockets, type Local } from "./attacking.ts";
import { proxyAttacks, withProxy } from "./proxyAttacks.ts";

/** The other client, on a separate thread: it requests an App repeatedly and records its longest wait. */
async function probe(local: Local): Promise<void> {
  const agent = new Agent({ keepAlive: false });
  let [longest, failed] = [0, 0];
  const ended = { yet: false };
  parentPort?.once("message", () => (ended.yet = true));
  while (!ended.yet) {
    const before = performance.now();
    if ((await send(local, "GET", "/v1/apps/web", "", agent)).status !== 200) failed++;
    longest = Math.max(longest, performance.now() - before);
    await sleep(2);
  }
  parentPort?.postMessage({ longest, failed }); // oxlint-disable-line unicorn/require-post-message-target-origin -- threads have no origin
}

async function whileProbing(
  local: Local,
  act: () => Promise<string>,
): Promise<{ said: string; longest: number; failed: number }> {
  const worker = new Worker(join(root, "bench/service/attacks.ts"), { workerData: local });
  await new Promise((online) => worker.once("online", online));
  await sleep(500);
  const said = await act();
  const found = new Promise<{ longest: number; failed: number }>((resolve) => worker.once("message", resolve));
  worker.postMessage("over"); // oxlint-disable-line unicorn/require-post-message-target-origin -- threads have no origin
  return { said, ...(await found) };
}

const config = (more: object): string => JSON.stringify({ config: { image: "nginx", ...more } });
const map = <T>(count: number, value: T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]));

const machines = "/v1/apps/web/machines";
const post = async (local: Local, path: string, body: string): Promise<string> => {
  const { status, text } = await send(local, "POST", path, body);
  return `${status} ${text.slice(0, 70)}`;
};

/** A unique path with the maximum length that the audit keeps. */
const noMachine = (i: number): string => `${machines}/${String(i).padStart(200 - machines.length - 1, "0")}`;

const attacks: Readonly<Record<string, (local: Local) => Promise<string>>> = {
  // The wait of the other client without any attack.
  nothing: () => sleep(1000, ""),
  "MACHINES_SIMULATE of 3.5 MB": (local) =>
    post(local, machines, config({ env: { MACHINES_SIMULATE: "deaf,".repeat(700_000) } })),
  "200,000 secret names": (local) => post(local, "/v1/apps/web/secrets", JSON.stringify({ values: map(200_000, "x") })),
  "350,000 wrong values of env": (local) => post(local, machines, config({ env: map(350_000, 1) })),
  "9,000 wrong values in maps of 900": (local) =>
    post(
      local,
      machines,
      config({ containers: Array.from({ length: 10 }, () => ({ name: "c", image: "i", env: map(900, 1) })) }),
    ),
  "any, a million times": (local) =>
    post(local, "/v1/platform/placements", JSON.stringify({ org_slug: "personal", region: "any,".repeat(1_000_000) })),
  "a million placements": (local) =>
    post(local, "/v1/platform/placements", JSON.stringify({ org_slug: "personal", count: 1e9 })),
  "125,000 unknown fields": (local) =>
    post(local, machines, JSON.stringify({ config: { image: "nginx" }, ...map(125_000, 1) })),
  "a list of 2 million": (local) =>
    post(local, machines, config({ standbys: 0 }).replace("0", `[${"1,".repeat(2_000_000)}1]`)),
  "4 MB of escapes": (local) => post(local, machines, config({ env: { A: "\\".repeat(2_000_000) } })),
  "a file of 3 MB": (local) =>
    post(local, machines, config({ files: [{ guest_path: "/f", raw_value: "QUFB".repeat(800_000) }] })),
  "an image of 4 MB": (local) =>
    post(local, machines, JSON.stringify({ config: { image: ":simulate-".repeat(400_000) } })),
  "a hostname of 4 MB": (local) =>
    post(local, "/v1/apps/web/certificates/acme", JSON.stringify({ hostname: `${"a".repeat(61)}.`.repeat(60_000) })),
  "PEM without an end": (local) =>
    post(
      local,
      "/v1/apps/web/certificates/custom",
      JSON.stringify({
        hostname: "a.example.com",
        private_key: "x",
        fullchain: "-----BEGIN CERTIFICATE-----".repeat(2400),
      }),
    ),
  "encrypting 3 MB": async (local) => {
    await post(local, "/v1/apps/web/secretkeys/k/generate", JSON.stringify({ type: "nacl_secretbox" }));
    return post(local, "/v1/apps/web/secretkeys/k/encrypt", JSON.stringify({ plaintext: "QUFB".repeat(1_000_000) }));
  },
  "a command of 64,000 quotes": async (local) => {
    const { id } = JSON.parse((await send(local, "POST", machines, config({}))).text.split(",")[0] + "}") as {
      id: string;
    };
    await send(local, "GET", `${machines}/${id}/wait?state=started`);
    return post(local, `${machines}/${id}/exec`, JSON.stringify({ cmd: `'"`.repeat(32_000) }));
  },
  "30,000 requests for URLs of 15 KB, no token": (local) =>
    many({ ...local, token: "none" }, 30_000, () => `/${"a".repeat(15_000)}`),
  // The difference between these two is the memory of the audit.
  "200,000 requests": (local) => many(local, 200_000, noMachine),
  "200,000 requests, audited": (local) => many(local, 200_000, noMachine),
  "160 half requests": async (local) => {
    await open(local.url, 160, "GET /v1/apps/web HTTP/1.1\r\nHost: local");
    await sleep(20_000);
    return "";
  },
  "160 half bodies": async (local) => {
    await open(
      local.url,
      160,
      `POST /v1/apps HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${local.token}\r\nContent-Length: 1000\r\n\r\n{`,
    );
    await sleep(20_000);
    return "";
  },
  "15,000 silent connections": async (local) => {
    await open(local.url, 15_000, "");
    return `${descriptors(local.pid)} descriptors`;
  },
  // The service may open 300 files.
  "300 silent connections, few descriptors": async (local) => {
    await open(local.url, 300, "");
    await sleep(3000);
    return `${descriptors(local.pid)} descriptors`;
  },
};

async function start(main: string, data: string, name: string): Promise<Local & { process: ChildProcess }> {
  const command = `${name.includes("few descriptors") ? "ulimit -n 300; " : ""}exec "$0" "$@"`;
  const child = spawn(
    "sh",
    [
      "-c",
      command,
      process.execPath,
      "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
      main,
      "start",
      "--json",
      "--data",
      data,
      "--listen",
      "127.0.0.1:0",
      // Entries of the audit are kept while there is an admin listener.
      ...(name.includes("audited") ? ["--admin", "127.0.0.1:0"] : []),
    ],
    { stdio: ["ignore", "pipe", "ignore"] },
  );
  const line = await new Promise<string>((resolve) => createInterface(child.stdout).once("line", resolve));
  const { url, pid } = JSON.parse(line) as { url: string; pid: number };
  return { url, pid, token: readFileSync(join(data, "token"), "utf8").trim(), process: child };
}

async function attack(main: string, name: string, act: (local: Local) => Promise<string>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "machines-attacks-"));
  const { process: child, ...local } = await start(main, join(folder, "data"), name);
  try {
    await send(local, "POST", "/v1/apps", JSON.stringify({ name: "web", org_slug: "personal" }));
    await measure(name, local, () => act(local));
  } finally {
    for (const socket of sockets.splice(0)) socket.destroy();
    child.kill("SIGKILL");
    await new Promise((ended) => child.once("close", ended));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Prints the row of an attack. */
async function measure(name: string, { url, token, pid }: Local, act: () => Promise<string>): Promise<void> {
  const [memory, files] = [residentMb(pid) ?? 0, descriptors(pid)];
  const { said, longest, failed } = await whileProbing({ url, token, pid }, act);
  const [memoryAfter, filesAfter] = [residentMb(pid) ?? 0, descriptors(pid)];
  console.log(
    `| ${name} | ${longest.toFixed(0)} ms${failed > 0 ? `, ${failed} failed` : ""} | ${memory} → ${memoryAfter} MB | ${files} → ${filesAfter} | ${said} |`,
  );
}

async function play(): Promise<void> {
  const { values } = parseArgs({ options: { service: { type: "string" }, only: { type: "string", default: "" } } });
  const main = values.service ?? join(root, "service/main.ts");
  console.log(
    "| attack | another client's longest wait | memory | descriptors | answer |\n| --- | --- | --- | --- | --- |",
  );
  for (const [name, act] of Object.entries(attacks)) if (name.includes(values.only)) await attack(main, name, act);
  for (const [name, { files, act }] of Object.entries(proxyAttacks))
    if (name.includes(values.only))
      await withProxy(dirname(main), files, (local) => measure(name, local, () => act(local)));
}

void (isMainThread ? play() : probe(workerData as Local));
