// The command and the background service: one per data folder, for all clients (F29, F36).
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { findLocal, startLocal } from "../../service/index.ts";
import { caller } from "./client.ts";
import { command, folder, released, start } from "./command.ts";
import { thoroughTest } from "../support/thorough.ts";

/** Whether a process runs; one that has exited and was not reaped does not count. */
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

/** Kills a service and waits until the system has released its locks: its threads may still hold them after it is gone. */
async function kill(data: string, pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await released(data);
}

test("the commands start, status, token, logs and stop work on a service in the background", async () => {
  const data = folder();
  expect(await command(["status", "--data", data])).toMatchObject({
    code: 3,
    out: expect.stringContaining("not running"),
  });
  expect(await command(["token", "--data", data])).toMatchObject({
    code: 1,
    err: expect.stringContaining("run `npx machines-service start --detach --data "),
  });
  const started = await start(data);
  const ready =
    /^machines-service is ready at (http:\/\/127\.0\.0\.1:\d+) \(pid (\d+), data .+, runtime simulated\)\nevery operation, with examples: (\S+)\nconsole: \S+ \(to sign in: .+\)\n$/;
  const [, url = "", pid, docs = ""] = ready.exec(started.out) ?? [];
  expect((await fetch(docs)).headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(isAlive(Number(pid))).toBe(true);
  expect(await command(["status", "--json", "--data", data])).toMatchObject({
    code: 0,
    out: `${JSON.stringify({ url, pid: Number(pid), data, runtime: "simulated", docs, console: `${url}/` })}\n`,
  });
  expect((await start(data)).out).toBe(started.out);

  const token = (await command(["token", "--data", data])).out.trim();
  const call = caller(url, token);
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  const log = (await command(["logs", "--data", data, "-n", "100"])).out;
  expect(log).toContain('"operation":"apps.create"');
  expect(log).not.toContain(token);

  expect(await command(["stop", "--data", data])).toMatchObject({
    code: 0,
    out: `machines-service has stopped (pid ${pid})\n`,
  });
  await expect.poll(() => isAlive(Number(pid))).toBe(false);
  expect(await command(["stop", "--data", data])).toMatchObject({
    code: 0,
    out: expect.stringContaining("not running"),
  });
});

test("F29 concurrent starts from several processes start one service", async () => {
  const data = folder();
  const answers = await Promise.all([
    start(data, "--json"),
    start(data, "--json"),
    start(data, "--json"),
    startLocal({ data }),
    startLocal({ data }),
  ]);
  const pids = answers.map((answer) => ("pid" in answer ? answer.pid : JSON.parse(answer.out).pid));
  expect(new Set(pids).size).toBe(1);
  expect(await findLocal({ data })).toMatchObject({ pid: pids[0] });
});

test("startLocal returns url and token, finds the same one again, and prints nothing", async () => {
  const data = folder();
  const written = vi.spyOn(process.stdout, "write");
  expect(await findLocal({ data })).toBe(undefined);
  expect(existsSync(data)).toBe(false);
  const local = await startLocal({ data, delays: "none" });
  expect((await caller(local.url, local.token)("GET", "/platform/regions")).status).toBe(200);
  expect(await startLocal({ data })).toEqual(local);
  expect(await findLocal({ data })).toEqual(local);
  expect(written).not.toHaveBeenCalled();
  written.mockRestore();
});

test("F28 a killed service can be started again, whatever is in its files", async () => {
  const data = folder();
  const first = await startLocal({ data });
  await kill(data, first.pid);
  expect(await findLocal({ data })).toBe(undefined);
  const second = await startLocal({ data });
  expect(second.pid).not.toBe(first.pid);
  expect(second.token).toBe(first.token);
});

test("a reused pid is not mistaken for the service", async () => {
  const data = folder();
  const first = await startLocal({ data });
  await kill(data, first.pid);
  writeFileSync(join(data, "service.json"), JSON.stringify({ url: first.url, pid: process.pid, data }));
  expect(await command(["status", "--data", data])).toMatchObject({ code: 3 });
  expect(await command(["stop", "--data", data])).toMatchObject({
    code: 0,
    out: expect.stringContaining("not running"),
  }); // and this process lives
  expect((await startLocal({ data })).pid).not.toBe(process.pid);
});

test("F29 a second service in the foreground names the first and exits with 1", async () => {
  const data = folder();
  const { pid } = await startLocal({ data });
  const second = await command(["start", "--data", data, "--listen", "127.0.0.1:0"]);
  expect(second.code).toBe(1);
  expect(second.err).toContain(`pid ${pid}`);
  expect(second.err.trim().split("\n")).toHaveLength(1);
});

test("an invalid listen address causes one sentence and exit status 1", async () => {
  const remote = /add --tls-cert and --tls-key, or --allow-remote/;
  const badly = [
    ["nonsense", /--listen takes an address such as/],
    ["127.0.0.1:70000", /--listen takes an address such as/],
    ["0.0.0.0:0", remote],
    ["127.example.com:0", remote],
  ] as const;
  const data = folder();
  const answers = await Promise.all(badly.map(([listen]) => command(["start", "--data", data, "--listen", listen])));
  for (const [i, { code, out, err }] of answers.entries()) {
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(badly[i]?.[1] ?? "");
    expect(err.trim().split("\n")).toHaveLength(1);
  }
});

thoroughTest("a port in use causes one sentence, and so does another address for a running service", async () => {
  const blocker = createServer((socket) => socket.destroy());
  await new Promise<void>((listening) => blocker.listen(0, "127.0.0.1", listening));
  const { port } = blocker.address() as { port: number };
  const data = folder();
  const answer = await command(["start", "--detach", "--data", data, "--listen", `127.0.0.1:${port}`]);
  expect(answer).toMatchObject({
    code: 1,
    err: `machines-service: 127.0.0.1:${port} is in use by another program; choose another address, or a free port with \`--listen 127.0.0.1:0\`\n`,
  });
  const { url } = await startLocal({ data });
  const own = new URL(url).host;
  expect((await command(["start", "--data", folder(), "--listen", own])).err).toBe(
    `machines-service: ${own} is in use by another machines-service, which has other data; choose another address, or a free port with \`--listen 127.0.0.1:0\`\n`,
  );
  expect(await command(["start", "--detach", "--data", data, "--listen", `127.0.0.1:${port}`])).toMatchObject({
    code: 1,
    err: expect.stringContaining(`is already running at ${url}`),
  });
  await new Promise((closed) => blocker.close(closed));
});

test.skipIf(process.platform !== "linux")(
  "the background service has a separate session and nothing secret in its environment",
  async () => {
    const data = folder();
    const env = {
      ...process.env,
      PULUMI_ACCESS_TOKEN: "canary",
      MACHINES_TOKEN: "canary",
      AWS_SECRET_ACCESS_KEY: "canary",
    };
    const { pid } = JSON.parse(
      (await command(["start", "--detach", "--json", "--data", data, "--listen", "127.0.0.1:0"], env)).out,
    );
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
    expect(environment).not.toMatch(/canary|PULUMI/);
    const names = environment.split("\0").flatMap((line) => (line === "" ? [] : [line.split("=", 1)[0]]));
    const usual = ["PATH", "HOME", "TZ", "NODE_COMPILE_CACHE", "NODE_EXTRA_CA_CERTS"];
    // What it needs to find the engine of a Docker runtime.
    const engine = ["MACHINES_RUNTIME", "DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_CONFIG"];
    expect([...usual, ...engine]).toEqual(expect.arrayContaining(names));
    const session = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ")[3];
    expect(Number(session)).toBe(pid);
  },
);

test("the background service has the credentials of the object storage of Postgres clusters", async () => {
  const options = [
    "--runtime",
    "kubernetes",
    "--postgres",
    "cnpg",
    "--postgres-backup",
    "s3:https://s3.example.com/bucket",
  ];
  const credentials = { AWS_ACCESS_KEY_ID: "tests", AWS_SECRET_ACCESS_KEY: "canary" };
  const env = { ...process.env, ...credentials, KUBECONFIG: "/nowhere" };
  const { code, err } = await command(["start", "--detach", "--data", folder(), ...options], env);
  // It has read them, and goes as far as the cluster.
  expect([code, err]).toEqual([1, expect.stringContaining("no Kubernetes cluster answers")]);
  expect(err).not.toContain("canary");
});

thoroughTest("a log that grows large while the service runs is rotated, and nothing of it is lost", async () => {
  const data = folder();
  await start(data);
  await command(["stop", "--data", data]);
  const log = join(data, "service.log");
  truncateSync(log, 9_999_500);
  const { url } = JSON.parse((await start(data, "--json")).out) as { url: string };
  const asked = 40;
  for (let i = 0; i < asked; i++) await (await fetch(`${url}/v1/asked-${i}`)).text();
  await command(["stop", "--data", data]);
  const [older, newer] = [readFileSync(`${log}.1`, "utf8"), readFileSync(log, "utf8")];
  expect(statSync(`${log}.1`).mode & 0o777).toBe(0o600);
  expect(newer.length).toBeLessThan(100_000);
  const paths = `${older}${newer}`.match(/\/v1\/asked-\d+/g);
  expect(paths).toEqual(Array.from({ length: asked }, (_, i) => `/v1/asked-${i}`));
});

test("only the user can read the background log, and a large one is rotated at the next start", async () => {
  const data = folder();
  await start(data);
  await command(["stop", "--data", data]);
  const log = join(data, "service.log");
  expect(statSync(log).mode & 0o777).toBe(0o600);
  truncateSync(log, 10_000_001);
  await start(data);
  expect(statSync(`${log}.1`).size).toBe(10_000_001);
  // A service writes its log a moment after it has reported that it is ready.
  const readyLines = () => expect.poll(() => readFileSync(log, "utf8").match(/"msg":"ready"/g));
  await readyLines().toHaveLength(1);
  await command(["stop", "--data", data]);
  await start(data);
  await readyLines().toHaveLength(2);
});
