// Terminals in Pods, by the API of the cluster.
import { PassThrough } from "node:stream";
import { Exec, type V1Pod, type V1Status } from "@kubernetes/client-node";
import type { TerminalRequest, TerminalSession } from "../runtime.ts";
import { beginTerminal, terminalWords } from "../shellTerminal.ts";
import type { Cluster } from "./cluster.ts";
import { exitCodeBy, runCommand } from "./exec.ts";
import { containerName } from "./pod.ts";

/** What the program writes, and the size of the terminal, which the library reads here. */
class Screen extends PassThrough {
  columns: number;
  rows: number;

  constructor({ columns, rows }: TerminalRequest) {
    super();
    this.columns = columns;
    this.rows = rows;
  }

  resize(columns: number, rows: number): void {
    Object.assign(this, { columns, rows });
    this.emit("resize");
  }
}

/** Opens a terminal in a Pod. */
export async function openTerminal(cluster: Cluster, pod: V1Pod, request: TerminalRequest): Promise<TerminalSession> {
  const { name = "", namespace = "" } = pod.metadata ?? {};
  const [output, input] = [new Screen(request), new PassThrough()];
  let status: V1Status | undefined;
  const unsure = cluster.fence.unsure();
  if (unsure) await unsure;
  const socket = await new Exec(cluster.config).exec(
    ...([namespace, name, containerName, terminalWords(request), output, null, input, true] as const),
    (said) => (status = said),
  );
  // The library writes without a look at what is read.
  socket.addEventListener("message", () => {
    if (!output.writableNeedDrain || socket.isPaused) return;
    socket.pause();
    output.once("drain", () => socket.resume());
  });
  socket.addEventListener("error", () => {});
  socket.addEventListener("close", () => output.end());
  return beginTerminal(
    {
      ...{ output, input },
      resize: (columns, rows) => Promise.resolve(output.resize(columns, rows)),
      exitCode: () => Promise.resolve(status && exitCodeBy(status)),
      run: (words) => runCommand(cluster, pod, [...words]),
      close: () => {
        socket.terminate();
        output.destroy();
      },
    },
    request,
  );
}
