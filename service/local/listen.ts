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

/** Whether a machines-service answers at an address. */
async function isOurs({ host, port }: Address): Promise<boolean> {
  try {
    const answer = await fetch(`http://${hostInUrl(host)}:${port}/`, { signal: AbortSignal.timeout(2000) });
    return ((await answer.json()) as { readonly name?: unknown } | null)?.name === "machines-service";
  } catch {
    return false; // it speaks something else, or nothing
  }
}

/** The reason why a server cannot listen, as a sentence. */
export async function listenProblem(error: unknown, listen: string, option = "--listen"): Promise<Error> {
  if (error instanceof Problem) return error;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE") {
    const address = parseListen(listen, option);
    const user = (await isOurs(address)) ? "another machines-service, which has other data" : "another program";
    const free = `${option} ${hostInUrl(address.host)}:0`;
    return new Problem(`${listen} is in use by ${user}; choose another address, or a free port with \`${free}\``);
  }
  if (code === "EACCES")
    return new Problem(`${listen} is not allowed for this user; choose a port above 1023 with ${option}`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return new Problem(`${listen} is not an address of this computer; choose another with ${option}`);
  return error instanceof Error ? error : new Error(String(error));
}
