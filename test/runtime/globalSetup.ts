// Once per run: an engine, and the image of the tests, made from a program that is compiled here.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Dockerode from "dockerode";
import type { TestProject } from "vitest/node";
import { importImage } from "../../service/runtime/docker/images.ts";
import { tarOf } from "../../service/runtime/docker/tar.ts";
import { daemonProblem } from "../../tools/setup/daemon.mjs";
import { provideEngine } from "../../tools/setup/engine.mjs";
import { goEnvironment, goProblem } from "../../tools/setup/goProgram.mjs";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { provideInstalled } from "../support/install.ts";
import { commands, image, nextImage } from "./image.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The address of the engine; undefined if there is none. */
    engine: string | undefined;
    /** Whether tests can start engines of their own. */
    hasOwnEngines: boolean;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const noGo = await goProblem(process.env);
  const engine = noGo === undefined ? await provideEngine() : { reason: noGo };
  if (engine.host === undefined) {
    leaveOut("the Docker runtime", engine.reason ?? "no engine");
    project.provide("engine", undefined);
    project.provide("hasOwnEngines", false);
    return async () => {};
  }
  const stop = engine.stop;
  let uninstall: () => Promise<void>;
  const { DOCKER_HOST: before } = process.env;
  try {
    process.env["DOCKER_HOST"] = engine.host;
    await importImages(new Dockerode());
    uninstall = provideInstalled(project);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    // The tests of other projects run in the same environment.
    if (before === undefined) delete process.env["DOCKER_HOST"];
    else process.env["DOCKER_HOST"] = before;
  }
  project.provide("engine", engine.host);
  const problem = await daemonProblem();
  if (problem !== undefined) leaveOut("the end of the engine, and an engine without space", problem);
  project.provide("hasOwnEngines", problem === undefined);
  return async () => {
    await uninstall();
    await stop();
  };
}

/** Two images with the program under the names of its commands. */
async function importImages(docker: Dockerode): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pulumi-machines-app-"));
  try {
    const env = { ...process.env, ...goEnvironment({ GOOS: "", GOARCH: "", GOFLAGS: "" }), CGO_ENABLED: "0" };
    execFileSync("go", ["build", "-trimpath", "-ldflags=-s -w", "-o", join(folder, "app"), "."], {
      cwd: "test/runtime/app",
      env,
      stdio: "pipe",
    });
    const archive = await tarOf([
      { name: "app", mode: 0o755, contents: readFileSync(join(folder, "app")) },
      ...commands.map((name) => ({ name: `bin/${name}`, type: "symlink" as const, linkname: "/app" })),
      { name: "tmp", type: "directory", mode: 0o1777 },
    ]);
    for (const name of [image, nextImage]) {
      const release = name.split(":")[1];
      const changes = ['ENTRYPOINT ["/app"]', "ENV PATH=/bin", `ENV RELEASE=${release}`, "LABEL test.image=app"];
      await importImage(docker, name, archive, changes);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
