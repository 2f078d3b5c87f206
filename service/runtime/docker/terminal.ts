// Terminals in containers.
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import { Refusal } from "../../refusal.ts";
import type { TerminalRequest, TerminalSession } from "../runtime.ts";
import { beginTerminal, terminalWords } from "../shellTerminal.ts";
import { runCommand } from "./commands.ts";
import { statusOf } from "./engine.ts";

/** Milliseconds for the command that ends a terminal. */
const endMs = 10_000;
/** An engine says shortly after the output how a program has ended. */
const [looks, pauseMs] = [50, 100];

/** Opens a terminal in a container. */
export async function openTerminal(container: Dockerode.Container, request: TerminalRequest): Promise<TerminalSession> {
  const exec = await container.exec({
    ...{ Cmd: terminalWords(request), Tty: true },
    ...{ AttachStdin: true, AttachStdout: true, AttachStderr: true },
  });
  const stream = await exec.start({ hijack: true, stdin: true, Tty: true }).catch((error: unknown) => {
    // Engines differ in when they notice that a program is missing.
    if (statusOf(error) !== 400) throw error;
    throw new Refusal(412, {
      error: "failed_precondition: a terminal needs sh, which the image of the machine does not have",
    });
  });
  stream.on("error", () => stream.destroy());
  return beginTerminal(
    {
      ...{ output: stream, input: stream },
      resize: async (columns, rows) => void (await exec.resize({ h: rows, w: columns })),
      async exitCode() {
        for (let look = 0; look < looks; look++) {
          const { Running, ExitCode } = await exec.inspect();
          if (!Running) return ExitCode ?? undefined;
          await sleep(pauseMs);
        }
        return undefined;
      },
      run: (words) => runCommand(container, { words, stdin: "", timeoutMs: endMs, signal: AbortSignal.timeout(endMs) }),
      close: () => void stream.destroy(),
    },
    request,
  );
}
