// The Docker runtime for a service: `createService({ runtime: await dockerRuntime() })`.
import type { RuntimeFactory } from "../runtime.ts";
import { DockerRuntime } from "./dockerRuntime.ts";
import { connectEngine } from "./engine.ts";

export { EngineError } from "./engine.ts";

/**
 * Connects to a container engine, and returns a runtime that runs each Machine as a container of it.
 * @throws EngineError if no engine answers.
 */
export async function dockerRuntime(): Promise<RuntimeFactory> {
  const engine = await connectEngine();
  return (host) => new DockerRuntime(engine, host);
}
