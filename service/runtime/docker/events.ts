// The events of an engine.
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import type { RuntimeHost } from "../runtime.ts";
import { newPause } from "../steps.ts";
import { labels } from "./container.ts";
import { reasonOf, type Engine } from "./engine.ts";

/** What follows the events of an engine. */
export interface Follower {
  /** The engine was connected. Events may have been missed before. */
  connected(): Promise<void>;
  /** A container of the Machine has ended. */
  changed(machine: string): void;
  readonly closed: AbortSignal;
}

/** Follows the ends of a service's containers. Resolves once the follower is closed. */
export async function followEvents(engine: Engine, { dataId, log }: RuntimeHost, follower: Follower): Promise<void> {
  const { closed: signal } = follower;
  let pause = newPause();
  while (!signal.aborted) {
    let stream: Readable | undefined;
    try {
      const events = await engine.docker.getEvents({
        filters: {
          type: ["container"],
          // Podman says `died` and `remove`.
          event: ["die", "died", "oom", "destroy", "remove"],
          label: [`${labels.data}=${dataId}`],
        },
        abortSignal: signal,
      } as Dockerode.GetEventsOptions);
      stream = events as Readable;
      pause = newPause();
      await follower.connected();
      for await (const line of lines(events)) {
        const { Actor } = JSON.parse(line) as { readonly Actor?: { readonly Attributes?: Record<string, string> } };
        const id = Actor?.Attributes?.[labels.machine];
        if (id !== undefined) follower.changed(id);
      }
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ reason: reasonOf(error) }, "the container engine does not answer");
    } finally {
      stream?.destroy();
    }
    // The engine has ended: no answer comes any more.
    engine.failWaiting();
    await sleep(pause(), undefined, { signal }).catch(() => {});
  }
}

/** The lines of a stream. */
async function* lines(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream) {
    const parts = `${rest}${chunk.toString()}`.split("\n");
    rest = parts.pop() ?? "";
    yield* parts.filter((line) => line !== "");
  }
}
