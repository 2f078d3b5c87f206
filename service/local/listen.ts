// Addresses to listen at.
import { isIP } from "node:net";
import { Problem } from "./problem.ts";

/** An address to listen at. */
export interface Address {
  readonly host: string;
  readonly port: number;
  /** Whether only this computer can reach it. */
  readonly loopback: boolean;
}

/** Parses `host:port`; an error names its option. */
export function parseListen(text: string, option = "--listen"): Address {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain ?? "";
  const port = Number(digits);
  if (digits === undefined || port > 65535 || host === "" || (bracketed !== undefined && isIP(bracketed) !== 6)) {
    throw new Problem(`${option} takes an address such as 127.0.0.1:4280, got ${JSON.stringify(text)}`);
  }
  return {
    host,
    port,
    loopback: host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127.")),
  };
}

/** The host of an address as written in a URL. */
export const hostInUrl = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** The reason why a server cannot listen, as a sentence. */
export function listenProblem(error: unknown, listen: string, option = "--listen"): Error {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE")
    return new Problem(`${listen} is in use by another program; choose another address with ${option}`);
  if (code === "EACCES")
    return new Problem(`${listen} is not allowed for this user; choose a port above 1023 with ${option}`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return new Problem(`${listen} is not an address of this computer; choose another with ${option}`);
  return error instanceof Error ? error : new Error(String(error));
}
