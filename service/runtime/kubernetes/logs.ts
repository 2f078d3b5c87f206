// What the program of a Pod wrote, by the API of the cluster.
import { PassThrough } from "node:stream";
import { createInterface } from "node:readline";
import { Log, type V1Pod } from "@kubernetes/client-node";
import type { LogLine, LogQuery } from "../runtime.ts";
import { allowing, type Cluster } from "./cluster.ts";
import { containerName } from "./pod.ts";

/** The lines of a Pod, oldest first. */
export async function* podLogs(
  cluster: Cluster,
  { metadata }: V1Pod,
  machine: string,
  { since, lines, follow, signal }: LogQuery,
): AsyncGenerator<LogLine> {
  if (lines === 0 && !follow) return;
  const { name = "", namespace = "" } = metadata ?? {};
  const stream = new PassThrough();
  // The end of a reading that is no longer wanted.
  stream.on("error", () => {});
  // 404: the Pod is gone meanwhile.
  const reading = await allowing(
    [404],
    new Log(cluster.config).log(namespace, name, containerName, stream, {
      follow,
      timestamps: true,
      ...(since === undefined ? {} : { sinceTime: new Date(since).toISOString() }),
      ...(lines === undefined ? {} : { tailLines: lines }),
    }),
  );
  if (!reading) return;
  const leave = (): void => {
    reading.abort();
    stream.end();
  };
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave);
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) {
      const space = line.indexOf(" ");
      const time = line.slice(0, space < 0 ? undefined : space);
      // The cluster compares whole seconds.
      if (since === undefined || Date.parse(time) >= since)
        yield { machine, time, text: space < 0 ? "" : line.slice(space + 1) };
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}
