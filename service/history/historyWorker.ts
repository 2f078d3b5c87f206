// The worker thread that writes and reads the history, so that no request waits for its file.
import { parentPort, workerData } from "node:worker_threads";
import { HistoryStore, type Bounds, type Method } from "./historyStore.ts";

/** What the worker is asked. */
export interface Asked {
  readonly id: number;
  readonly method: Method | "close";
  readonly args: readonly unknown[];
}

/** What it answers. */
export type Answered =
  /** What happened apart from the answers. */
  | { readonly notice: string }
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: string };

const { file, bounds } = workerData as { readonly file: string; readonly bounds: Bounds };
const store = new HistoryStore(file, bounds);
const port = parentPort;
if (store.movedTo !== undefined)
  port?.postMessage({ notice: `it was damaged, and moved to ${store.movedTo}` } satisfies Answered);

port?.on("message", ({ id, method, args }: Asked) => {
  if (method === "close") {
    store.close();
    return port.close();
  }
  try {
    port.postMessage({ id, answer: store.answer(method, args) } satisfies Answered);
  } catch (error) {
    port.postMessage({ id, error: error instanceof Error ? error.message : String(error) } satisfies Answered);
  }
});
