// The image of the service, as its Dockerfile and its compose file in service/ make it. The images that they begin with are elsewhere, so
// the test gives them one of the same kind: a Debian with Node.js and npm.
import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { installPackages } from "../../tools/setup/debian.mjs";
import { debianServer } from "../../tools/setup/debianServer.mjs";
import { freePort } from "../support/freePort.ts";
import { image } from "./image.ts";

const host = inject("engine");
let isThere = false;

/** A test of the image, if it can be built. */
const withImage = (name: string, body: () => Promise<void>): void =>
  test(name, async ({ skip }) => {
    skip(!isThere);
    await body();
  });

/** Why there is no docker-compose. */
async function composeProblem(): Promise<string | undefined> {
  try {
    execFileSync("docker-compose", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return installPackages(["docker-compose"], process.env);
  }
}

const folder = mkdtempSync(join(tmpdir(), "machines-image-"));
const socket = (host ?? "").replace("unix://", "");
const project = `machines${process.pid}`;
let port = 0;

/** Runs a program for the engine of the tests, and returns what it prints. */
function run(program: string, ...args: readonly string[]): Promise<string> {
  const env = {
    ...process.env,
    DOCKER_HOST: host,
    COMPOSE_PROJECT_NAME: project,
    DOCKER_GID: String(statSync(socket).gid),
    DOCKER_SOCKET: socket,
    MACHINES_SERVICE_LISTEN: `127.0.0.1:${port}`,
  };
  return new Promise((done, fail) => {
    execFile(program, [...args], { env, maxBuffer: 64_000_000 }, (error, out, err) => {
      if (error) fail(new Error(`${program} ${args.join(" ")}: ${err}${out}`));
      else done(out);
    });
  });
}

const compose = (...args: readonly string[]): Promise<string> =>
  run("docker-compose", "--file", "service/compose.yaml", ...args);
const inside = (...args: readonly string[]): Promise<string> => compose("exec", "-T", "machines-service", ...args);

beforeAll(async () => {
  if (host === undefined) return;
  const { root, reason } = await debianServer(process.env);
  const problem = root === undefined ? reason : await composeProblem();
  if (root === undefined || problem !== undefined) return leaveOut("the image of the service", problem ?? "no Debian");
  port = await freePort();
  const base = join(folder, "base");
  mkdirSync(base);
  execFileSync("tar", ["-C", root, "-cf", join(folder, "debian.tar"), "."]);
  await run("docker", "import", join(folder, "debian.tar"), `${project}-debian`);
  copyFileSync(process.execPath, join(base, "node"));
  const npm = execFileSync("sh", ["-c", `dirname "$(dirname "$(readlink -f "$(command -v npm)")")"`]).toString().trim();
  cpSync(npm, join(base, "npm"), { recursive: true, dereference: true });
  // What this computer trusts, the build has to trust as well.
  const { NODE_EXTRA_CA_CERTS: trusted } = process.env;
  if (trusted !== undefined) copyFileSync(trusted, join(base, "trusted.pem"));
  else writeFileSync(join(base, "trusted.pem"), "");
  writeFileSync(
    join(base, "Dockerfile"),
    `FROM ${project}-debian
COPY node /usr/bin/node
COPY npm /usr/lib/node_modules/npm
COPY trusted.pem /trusted.pem
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm
${trusted === undefined ? "" : "ENV NODE_EXTRA_CA_CERTS=/trusted.pem"}
`,
  );
  await run("docker", "build", "--tag", `${project}-base`, base);
  const packages = join(folder, "packages");
  mkdirSync(packages);
  execFileSync("npm", ["pack", "--pack-destination", packages], { cwd: "service", stdio: "pipe" });
  const args = ["--network", "host", "--build-arg", `BASE=${project}-base`, "--file", "service/Dockerfile"];
  await run("docker", "build", ...args, "--tag", "machines-service", packages);
  isThere = true;
});

afterAll(async () => {
  if (isThere) await compose("down", "--volumes");
  rmSync(folder, { recursive: true, force: true });
});

const call = async (method: string, path: string, token: string, body?: object) => {
  const response = await fetch(`http://127.0.0.1:${port}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as any; // oxlint-disable-line typescript/no-explicit-any -- like answers
};

withImage("the image runs without root, is healthy, and runs Machines by the mounted socket", async () => {
  await compose("up", "--detach", "--no-build");
  const container = (await compose("ps", "--quiet", "machines-service")).trim();
  const health = async () => (await run("docker", "inspect", "--format", "{{.State.Health.Status}}", container)).trim();
  await expect.poll(health).toBe("healthy");
  expect((await inside("id", "-u")).trim()).toBe("1000");
  const token = (await inside("machines-service", "token")).trim();
  await call("POST", "/apps", token, { name: "web", org_slug: "personal" });
  const { id } = await call("POST", "/apps/web/machines", token, { config: { image } });
  const state = async (): Promise<string> => (await call("GET", `/apps/web/machines/${id}`, token)).state;
  await expect.poll(state).toBe("started");
  // The data are in a volume, so another container continues with them.
  await compose("up", "--detach", "--no-build", "--force-recreate");
  await expect.poll(() => state().catch(() => "down")).toBe("started");
  await call("DELETE", `/apps/web/machines/${id}?force=true`, token).catch(() => {});
  await call("DELETE", "/apps/web?force=true", token).catch(() => {});
});

withImage("the image of a service that is not ready is unhealthy", async () => {
  await expect(
    run("docker", "run", "--rm", "--entrypoint", "machines-service", "machines-service", "status", "--ready"),
  ).rejects.toThrow("is not running");
});
