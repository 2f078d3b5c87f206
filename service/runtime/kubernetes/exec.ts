// Runs commands in Pods, by the API of the cluster.
import { once } from "node:events";
import { Readable } from "node:stream";
import { Exec, type V1Pod, type V1Status } from "@kubernetes/client-node";
import { Collected } from "../collected.ts";
import { notExecuted, outcomeOf } from "../outcome.ts";
import type { Command, Outcome } from "../runtime.ts";
import type { Cluster } from "./cluster.ts";
import { containerName } from "./pod.ts";

// ASSUMED: the runtime's own commands have ten seconds.
const ownMs = 10_000;

/**
 * Runs a command in a Pod; undefined if it did not exit in time.
 * ASSUMED: one that does not end in time continues to run: clusters have no request to end it.
 */
export async function runCommand(
  cluster: Cluster,
  { metadata }: V1Pod,
  words: string[],
  { stdin = "", timeoutMs = ownMs, signal }: Partial<Command> = {},
): Promise<Outcome | undefined> {
  const { name = "", namespace = "" } = metadata ?? {};
  const [stdout, stderr] = [new Collected(), new Collected()];
  let status: V1Status | undefined;
  const input = stdin === "" ? null : Readable.from([Buffer.from(stdin)]);
  const unsure = cluster.fence.unsure();
  if (unsure) await unsure;
  const socket = await new Exec(cluster.config).exec(
    ...([namespace, name, containerName, words, stdout, stderr, input, false] as const),
    (said) => (status = said),
  );
  const leave = (): void => socket.close();
  const timer = setTimeout(leave, timeoutMs);
  signal?.addEventListener("abort", leave);
  try {
    if (socket.readyState !== socket.CLOSED) await once(socket as unknown as NodeJS.EventEmitter, "close");
    return status && outcomeBy(status, stdout.text, stderr.text);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}

/** How the cluster says that a program is missing or cannot be executed. */
const failure = /(?:unable to start container process: )?(exec: .+?)(?:: unknown)?$/;

/** The exit code in what the cluster says of the end of a program; undefined if it says none. */
export function exitCodeBy(status: V1Status): number | undefined {
  if (status.status === "Success") return 0;
  const code = status.details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
  return code === undefined ? undefined : Number(code);
}

function outcomeBy(status: V1Status, stdout: string, stderr: string): Outcome {
  const code = exitCodeBy(status);
  if (code !== undefined) return outcomeOf(stdout, stderr, code);
  return notExecuted(failure.exec(status.message ?? "")?.[1] ?? status.message ?? "the cluster gives no reason");
}
