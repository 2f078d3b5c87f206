// Facts about the client of a request, for commands that it can copy.
import type { FastifyRequest } from "fastify";

/** Where a request has what a trusted proxy says of its scheme. */
export const forwardedProto: unique symbol = Symbol("forwarded proto");

/** Whether a client came by HTTPS. */
export const isByHttps = ({ raw, protocol }: FastifyRequest): boolean =>
  ((raw as { readonly [forwardedProto]?: string })[forwardedProto] ?? protocol) === "https";

/** The address that a client used. A name that no host has is not repeated. */
export function addressOf(request: FastifyRequest): string {
  const { host = "" } = request.headers;
  return `${isByHttps(request) ? "https" : "http"}://${/^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(host) ? host : "localhost"}`;
}

/** Where a request of another member says from which client it has it. */
export const forwardedFrom: unique symbol = Symbol("forwarded from");

/** The IP address of a client. */
export const clientAddress = ({ raw, ip }: FastifyRequest): string =>
  (raw as { readonly [forwardedFrom]?: string })[forwardedFrom] ?? ip;

/** Whether an address is one of this computer. */
export const isLoopback = (address: string): boolean => /^(?:::ffff:)?127\.|^::1$/.test(address);

/** Whether a client is on this computer, where it can run commands on the data. Others need not know the folder. */
export const isHere = (request: FastifyRequest): boolean => isLoopback(clientAddress(request));
