// The runtimes that the conformance suite runs on, and a service on one of them.
import Dockerode from "dockerode";
import { expect, inject } from "vitest";
import { dockerRuntime, type DockerOptions } from "../../service/runtime/docker/index.ts";
import type { ServiceOptions } from "../../service/index.ts";
import { withApp } from "../service/client.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { removeOf } from "./cleaning.ts";
import { image } from "./image.ts";

const host = inject("engine");
if (host !== undefined) process.env["DOCKER_HOST"] = host;

/** Whether there is an engine; if not, the end of the run says why. */
export const hasEngine = host !== undefined;

/** The engine of the tests. */
export const docker = new Dockerode();

/** A runtime by its name. */
export type RuntimeName = "simulated" | "docker";

/** The runtimes that can run here. */
export const runtimes: readonly RuntimeName[] = hasEngine ? ["simulated", "docker"] : ["simulated"];

/** A service with an App `web` whose Machines run on a runtime; its containers are removed after the test. */
export async function withRuntime(name: RuntimeName, options: ServiceOptions = {}, walls: DockerOptions = {}) {
  if (name === "docker") afterThisTest(() => removeOf(app.dataId()));
  const app = await onRuntime({ ...(name === "docker" ? { runtime: await dockerRuntime(walls) } : {}), ...options });
  await app.service.proxy?.listen({ http: 0, https: 0 });
  return app;
}

/** What the tests of a runtime use. */
export type AppOnRuntime = Awaited<ReturnType<typeof onRuntime>>;

/** A service with an App `web`, and what tests ask of it. */
export async function onRuntime(options: ServiceOptions) {
  const started = await withApp(options);
  const machine = (config: object = {}, more: object = {}) => started.machine({ image, ...config }, more);
  return {
    ...started,
    dataId: () => started.service.context.dataId,
    /** Creates a Machine and returns its id. */
    create: async (config: object = {}, more: object = {}): Promise<string> => (await machine(config, more)).id,
    reaches: async (id: string, state: string): Promise<void> => {
      await expect.poll(() => started.state(id), { interval: 20 }).toBe(state);
    },
    get: async (id: string) => (await started.call("GET", `${started.machines}/${id}`)).body,
    /** The latest exit of a Machine. */
    exit: async (id: string) => {
      const { body } = await started.call("GET", `${started.machines}/${id}/events`);
      return body.find(({ type }: { type: string }) => type === "exit")?.request.exit_event;
    },
    exec: async (id: string, ...command: string[]) =>
      (await started.call("POST", `${started.machines}/${id}/exec`, { command })).body,
    post: (id: string, operation: string, body?: unknown) =>
      started.call("POST", `${started.machines}/${id}/${operation}`, body),
  };
}
