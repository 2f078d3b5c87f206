// The worker thread in which the console writes programs, one job after the other. Reads go to the service, which started it.
import { parentPort, type MessagePort } from "node:worker_threads";
import type { FromWorker, Read, ReadAnswer, ToWorker, Wanted } from "../../service/console/code.ts";
import { codeOf } from "./console.ts";

/** Bytes are moved to the other thread, because copying them would take its time. */
type Post = (message: FromWorker, moved?: readonly ArrayBuffer[]) => void;

/** Serves the jobs of a port. */
function serve(port: MessagePort): void {
  const waiting = new Map<number, (answer: ReadAnswer | undefined) => void>();
  let reads = 0;
  const post: Post = (message, moved = []) => port.postMessage(message, moved);
  const sendFor =
    (job: number) =>
    async (wanted: Read): Promise<ReadAnswer> => {
      const read = ++reads;
      const answer = await new Promise<ReadAnswer | undefined>((resolve) => {
        waiting.set(read, resolve);
        post({ kind: "read", job, read, wanted });
      });
      if (answer === undefined) throw new Error("the service did not answer in time");
      return answer;
    };
  port.on("message", (message: ToWorker) => {
    if (message.kind === "write") return void write(message, sendFor(message.job), post);
    const { read, answer } = message;
    waiting.get(read)?.(answer && { ...answer, text: Buffer.from(answer.bytes).toString() });
    waiting.delete(read);
  });
}

async function write(
  { job, wanted }: { readonly job: number; readonly wanted: Wanted },
  send: (read: Read) => Promise<ReadAnswer>,
  post: Post,
): Promise<void> {
  try {
    const { programs, settings, importCommand, path, remarks } = await codeOf({ ...wanted, send });
    const json = new TextEncoder().encode(
      JSON.stringify({
        ...(programs ?? { typescript: null, python: null, go: null, yaml: null }),
        ...{ settings: settings.join("\n"), import: importCommand, remarks },
      }),
    );
    post({ kind: "written", job, code: { json, path } }, [json.buffer]);
  } catch (error) {
    const { statusCode, message, stack } = error as Error & { readonly statusCode?: number };
    const text = statusCode === undefined ? (stack ?? message) : message;
    post({ kind: "failed", job, status: statusCode, message: text });
  }
}

if (parentPort) serve(parentPort);
