// The address of the console of a running service.
import { makeCode } from "../console/codes.ts";
import { systemRandom } from "../ids.ts";
import type { Running } from "../store/lock.ts";
import { openVault } from "../store/vault.ts";

/** The address of a service's console; undefined without one. A service at every address is opened at this computer's. */
export function consoleUrl({
  url,
  publicUrl,
  console: opened,
}: Pick<Running, "url" | "publicUrl" | "console">): string | undefined {
  if (!opened) return undefined;
  if (publicUrl !== undefined) return `${publicUrl}/`;
  const page = new URL(url);
  if (page.hostname === "0.0.0.0") page.hostname = "127.0.0.1";
  if (page.hostname === "[::]") page.hostname = "[::1]";
  return page.href;
}

/**
 * The same with a one-time code, which signs a browser in within five minutes. The service is not asked. Throws a StoreError if the
 * key of the data folder is missing.
 */
export function consoleLink(running: Running): string | undefined {
  const page = consoleUrl(running);
  if (page === undefined || !running.console) return undefined;
  const random = systemRandom();
  const code = makeCode(openVault(running.data, random, true), running.console.run, random, Date.now());
  // Browsers do not send the part after `#` with a request, so no log has it.
  return `${page}#code=${code}`;
}
