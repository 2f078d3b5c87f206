// Tells the service for which resource or function a request is sent, so that people can find the reason of a change there.
import { AsyncLocalStorage } from "node:async_hooks";

const asking = new AsyncLocalStorage<string>();

// Enough for a URN with several parents. The end is kept, because it has the type and the name.
const longest = 500;

/** Does work whose requests name a resource by its URN, or a function by its token. */
export const onBehalfOf = <T>(asker: string, work: () => T): T => asking.run(asker, work);

/** The header that names it; none outside of such work. A header holds ASCII only, so the rest is percent-encoded. */
export function askerHeader(): Readonly<Record<string, string>> {
  const asker = asking.getStore() ?? "";
  if (asker === "") return {};
  const text = asker.length <= longest ? asker : `…${asker.slice(1 - longest)}`;
  // The buffer replaces half of a surrogate pair, which cannot be encoded.
  return {
    "pulumi-urn": Buffer.from(text)
      .toString()
      .replace(/[^\u0021-\u007e]|%/gu, encodeURIComponent),
  };
}
