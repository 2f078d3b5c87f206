// Requests that change something wait while another process may act for the same data.
import type { RuntimeHost } from "./runtime.ts";

/** What such requests have to wait for: resolves once they may be sent; undefined if they may be now. */
export type Unsure = () => Promise<void> | undefined;

/** Waits for the host. What still waits when the service closes fails with the error, so that it can close. */
export function untilSure(host: Pick<RuntimeHost, "unsure">, closed: AbortSignal, error: Error): Unsure {
  const closing = new Promise<never>((_, reject) => closed.addEventListener("abort", () => reject(error)));
  closing.catch(() => {}); // usually nothing waits
  return () => host.unsure && Promise.race([host.unsure, closing]);
}
