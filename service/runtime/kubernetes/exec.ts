// Runs commands in Pods, by the API of the cluster.
import { once } from "node:events";
import { Readable } from "node:stream";
import { Exec, type V1Pod, type V1Status } from "@kubernetes/client-node";
import type { Command } from "../runtime.ts";
import { Collected } from "../collected.ts";
import type { Cluster } from "./cluster.ts";
import { containerName } from "./pod.ts";

/** What a command wrote, and its exit code; undefined if it did not exit in time. */
export interface Ended {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

// ASSUMED: the runtime's own commands have ten seconds.
const ownMs = 10_000;

/** Runs a command in a Pod. ASSUMED: one that does not end in time continues to run: clusters have no request to end it. */
export async function runCommand(
  cluster: Cluster,
  { metadata }: V1Pod,
  words: string[],
  { stdin = "", timeoutMs = ownMs, signal }: Partial<Command> = {},
): Promise<Ended> {
  const { name = "", namespace = "" } = metadata ?? {};
  const [stdout, stderr] = [new Collected(), new Collected()];
  let status: V1Status | undefined;
  const input = stdin === "" ? null : Readable.from([Buffer.from(stdin)]);
  const socket = await new Exec(cluster.config).exec(
    ...([namespace, name, containerName, words, stdout, stderr, input, false] as const),
    (said) => (status = said),
  );
  const leave = (): void => socket.close();
  const timer = setTimeout(leave, timeoutMs);
  signal?.addEventListener("abort", leave);
  try {
    if (socket.readyState !== socket.CLOSED) await once(socket as unknown as NodeJS.EventEmitter, "close");
    return outcomeOf(status, stdout.text, stderr.text);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}

/** How the cluster says that a program is missing or cannot be executed. */
const failure = /(?:unable to start container process: )?(exec: .+?)(?:: unknown)?$/;
const absent = /not found|no such file/;

function outcomeOf(status: V1Status | undefined, stdout: string, stderr: string): Ended {
  if (status === undefined) return { code: undefined, stdout, stderr };
  if (status.status === "Success") return { code: 0, stdout, stderr };
  const code = status.details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
  if (code !== undefined) return { code: Number(code), stdout, stderr };
  const reason = failure.exec(status.message ?? "")?.[1] ?? status.message ?? "the cluster gives no reason";
  // ASSUMED: as in a shell, 127 says that there is no such command, and 126 that it cannot be executed.
  return { code: absent.test(reason) ? 127 : 126, stdout: "", stderr: `${reason}\n` };
}
