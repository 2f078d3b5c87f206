// The image of the demo with containers, from examples/quickstart/app: compiled here where Go is installed, else by the engine.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import Dockerode from "dockerode";
import { pack } from "tar-stream";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { goEnvironment, goProblem } from "./goProgram.mjs";

const repo = "machines-demo/hello";
const tag = "1.0.0";
const program = inRoot("examples/quickstart/app");

/** Builds the image with the engine of DOCKER_HOST, unless it has it. Returns its name. */
export async function demoImage(env) {
  const docker = new Dockerode();
  try {
    await docker.ping();
  } catch (error) {
    throw new Stop(
      `No container engine answers at ${env.DOCKER_HOST || "/var/run/docker.sock"} (${error.code ?? error.message}). Start Docker, or run the demo without --runtime docker.`,
    );
  }
  const name = `${repo}:${tag}`;
  const found = await docker
    .getImage(name)
    .inspect()
    .catch(() => undefined);
  if (found) return name;
  say(`Building the image ${name} …`);
  const hasGo = (await goProblem(env)) === undefined;
  await (hasGo ? importProgram(docker, env) : buildProgram(docker, name));
  return name;
}

/** Compiles the program for the engine's computer, and makes it an image. */
async function importProgram(docker, env) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "machines-demo-"));
  try {
    const { Arch } = await docker.version();
    const file = path.join(folder, "hello");
    const { code, output } = await quiet("go", ["build", "-trimpath", "-ldflags=-s -w", "-o", file, "."], {
      cwd: program,
      env: { ...goEnvironment(env), GOOS: "linux", GOARCH: Arch, CGO_ENABLED: "0" },
      alive: "still compiling the program",
    });
    if (code !== 0) throw new Stop(`${tail(output)}\nThe program of the demo could not be compiled.`);
    const archive = pack();
    archive.entry({ name: "hello", mode: 0o755 }, fs.readFileSync(file));
    archive.finalize();
    await ended(docker, await docker.importImage(archive, { repo, tag, changes: ['ENTRYPOINT ["/hello"]'] }));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/** Lets the engine build it, from the Dockerfile. */
async function buildProgram(docker, name) {
  const src = fs.readdirSync(program);
  await ended(docker, await docker.buildImage({ context: program, src }, { t: name }));
}

function ended(docker, progress) {
  return new Promise((resolve, reject) => {
    docker.modem.followProgress(progress, (error) =>
      error ? reject(new Stop(`The engine could not build the image: ${error.message ?? error}`)) : resolve(),
    );
  });
}
