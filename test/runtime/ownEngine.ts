// An engine of a test's own, which it may end, kill and fill.
import { inject } from "vitest";
import Dockerode from "dockerode";
import { createDaemon } from "../../tools/setup/daemon.mjs";
import { image, nextImage } from "./image.ts";

/** Whether there can be one; if not, the end of the run says why. */
export const hasOwnEngines = inject("hasOwnEngines");

/** Starts it with the images of the tests. From now on DOCKER_HOST names it in this file. */
export async function startOwnEngine(options: Parameters<typeof createDaemon>[0] = {}) {
  const daemon = createDaemon(options);
  const start = async (): Promise<void> => {
    const problem = await daemon.start();
    if (problem !== undefined) throw new Error(problem);
  };
  try {
    await start();
    const shared = new Dockerode({ socketPath: inject("engine")?.replace("unix://", "") });
    process.env["DOCKER_HOST"] = daemon.host;
    const docker = new Dockerode();
    for (const name of [image, nextImage]) {
      const loading = await docker.loadImage(await shared.getImage(name).get());
      await new Promise((resolve) => docker.modem.followProgress(loading, resolve));
    }
    return { ...daemon, start, docker };
  } catch (error) {
    await daemon.remove();
    throw error;
  }
}
