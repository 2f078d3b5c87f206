// What trusted proxies in front of the service say of their clients. All others only speak for themselves.
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import { forwardedFrom, forwardedProto } from "../requestAddress.ts";
import { plainAddress, type Networks } from "./networks.ts";

/** A request, and what was believed about it. */
type Believed = IncomingMessage & {
  readonly [forwardedFrom]?: string;
  readonly [forwardedProto]?: string;
};

/** The address of a client. */
export const addressOfClient = (request: IncomingMessage): string =>
  (request as Believed)[forwardedFrom] ?? request.socket.remoteAddress ?? "";

/** How a client speaks to the first of the proxies. */
export function schemeOfClient(request: IncomingMessage): "http" | "https" {
  const said = (request as Believed)[forwardedProto];
  if (said !== undefined) return said === "https" ? "https" : "http";
  return (request.socket as Partial<TLSSocket>).encrypted === true ? "https" : "http";
}

/** Whether a trusted proxy has said how its client speaks to it. */
export const isSchemeSaid = (request: IncomingMessage): boolean => (request as Believed)[forwardedProto] !== undefined;

/**
 * Reads the address and the scheme of the client that a trusted proxy gives in `X-Forwarded-For` and `X-Forwarded-Proto`. The header
 * `Forwarded` is not read: a proxy that sets the one may pass on the other as its client has sent it.
 */
export function believeProxy(request: IncomingMessage, trusted: Networks | undefined): void {
  const { socket, headers } = request;
  if (!trusted?.has(socket.remoteAddress) || (request as Believed)[forwardedFrom] !== undefined) return;
  const proto = valuesOf(headers["x-forwarded-proto"]).at(-1)?.toLowerCase();
  Object.assign(request, {
    [forwardedFrom]: clientOf(socket.remoteAddress ?? "", valuesOf(headers["x-forwarded-for"]), trusted),
    // ASSUMED: of several values, the last one counts, because the nearest proxy has set it.
    ...(proto === "http" || proto === "https" ? { [forwardedProto]: proto } : {}),
  });
}

const valuesOf = (header: string | string[] | undefined): string[] =>
  [header ?? []]
    .flat()
    .flatMap((text) => text.split(","))
    .map((text) => text.trim())
    .filter((text) => text !== "");

/** Each proxy adds the address that it sees, so the nearest one that is not trusted is the client. */
function clientOf(nearest: string, said: readonly string[], trusted: Networks): string {
  let client = nearest;
  for (const text of said.toReversed()) {
    const address = bareAddress(text);
    // An address that an untrusted client has sent may be false.
    if (address === undefined || !trusted.has(client)) break;
    client = address;
  }
  return client;
}

/** An address without brackets and port, which some proxies add. */
function bareAddress(text: string): string | undefined {
  const [, bracketed, dotted] = /^(?:\[([^\]]+)\](?::\d{1,5})?|(\d+\.\d+\.\d+\.\d+)(?::\d{1,5})?)$/.exec(text) ?? [];
  const address = plainAddress(bracketed ?? dotted ?? text);
  return isIP(address) === 0 ? undefined : address;
}
