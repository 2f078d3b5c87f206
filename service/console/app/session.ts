// Requests in the name of the session. The browser adds the cookie; the page adds the key, which pages of other ports cannot read.
import { pageKeyProtocol } from "../../http/terminalProtocol.ts";

// All tabs of the browser share the session, as they share its cookie. The browser keeps this for the console's own address: scheme,
// host and port.
const place = "machines-console-page-key";

/** Keeps the key of a new session. */
export const keepPageKey = (key: string): void => localStorage.setItem(place, key);

/** Forgets the session. */
export const forgetPageKey = (): void => localStorage.removeItem(place);

/** `fetch`, with the key of the session. */
export function ask(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const key = localStorage.getItem(place);
  if (key !== null) headers.set("console-page-key", key);
  return fetch(url, { ...init, headers });
}

/** The names that a WebSocket offers for the key of the session: browsers set no other header of it. */
export function protocolsWith(protocol: string): string[] {
  const key = localStorage.getItem(place);
  return key === null ? [protocol] : [protocol, pageKeyProtocol(key)];
}
