// Once per run: an engine, and the image of the tests, made from a program that is compiled here.
import Dockerode from "dockerode";
import type { TestProject } from "vitest/node";
import { importImage } from "../../service/runtime/docker/images.ts";
import { daemonProblem } from "../../tools/setup/daemon.mjs";
import { provideEngine } from "../../tools/setup/engine.mjs";
import { goProblem } from "../../tools/setup/goProgram.mjs";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { provideInstalled } from "../support/install.ts";
import { image, nextImage } from "./image.ts";
import { archiveOfImage, configOfImage } from "./imageArchive.ts";

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
  const archive = await archiveOfImage();
  for (const name of [image, nextImage]) {
    const { Entrypoint, Env, Labels } = configOfImage(name);
    const changes = [
      `ENTRYPOINT ${JSON.stringify(Entrypoint)}`,
      ...Env.map((one) => `ENV ${one}`),
      ...Object.entries(Labels).map(([label, value]) => `LABEL ${label}=${value}`),
    ];
    await importImage(docker, name, archive, changes);
  }
}
