// The stream of changes. The browser's own reader of such streams cannot send the key of the session.
import { ask } from "./session.ts";

/** A stream on which nothing came for so long has lost its connection: the service writes every 15 seconds. */
const silentMs = 45_000;

/** The events of a stream. */
export interface Listener {
  readonly message: (event: string, data: unknown) => void;
  /** It has ended or was refused. `isRefused`: by an answer that is no success. */
  readonly ended: (isRefused: boolean) => void;
}

/** Opens the stream. Returns how to close it; then nothing more is told. */
export function openStream(url: string, { message, ended }: Listener): () => void {
  const closed = new AbortController();
  const { signal } = closed;
  const read = async (): Promise<boolean> => {
    let timer = 0;
    const alive = (): void => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => closed.abort(), silentMs);
    };
    try {
      alive();
      const { ok, body } = await ask(url, { signal, cache: "no-store", headers: { accept: "text/event-stream" } });
      if (!ok || !body) return true;
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        alive();
        const { done, value = "" } = await reader.read();
        if (done) return false;
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) tell(block, message);
      }
    } catch {
      return false;
    } finally {
      window.clearTimeout(timer);
    }
  };
  let isClosed = false;
  void (async () => {
    const isRefused = await read();
    if (!isClosed) ended(isRefused);
  })();
  return () => {
    isClosed = true;
    closed.abort();
  };
}

/** Tells one message. Lines of other fields, and comments, are left out. */
function tell(block: string, message: Listener["message"]): void {
  const of = (field: string): string | undefined =>
    block
      .split("\n")
      .find((line) => line.startsWith(`${field}: `))
      ?.slice(field.length + 2);
  const [event, data] = [of("event"), of("data")];
  if (event !== undefined && data !== undefined) message(event, JSON.parse(data));
}
