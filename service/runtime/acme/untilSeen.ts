// Whether the way to an answer exists: an authority asks once, and counts a failure, so the service looks first.
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import type { Resolver } from "../resolver.ts";

/** How the service looks. */
export interface Look {
  /** The port at which an authority asks. */
  readonly port: number;
  /** Milliseconds after which it asks the authority all the same: the service may not reach its own address from inside. */
  readonly patienceMs: number;
}

// ASSUMED: ingress controllers follow a change within half a minute.
export const usualLook: Look = { port: 80, patienceMs: 30_000 };

const pauseMs = 250;
const timeout = 2000;
// An answer is much shorter; whoever has the address could send anything.
const largest = 4096;

/** What an authority would request. */
interface Wanted {
  readonly hostname: string;
  readonly path: string;
  readonly answer: string;
}

/** Waits until a request as the authority sends it gets the answer, at most as long as the patience lasts. */
export async function untilSeen(
  wanted: Wanted,
  resolver: Pick<Resolver, "addressesOf">,
  { port, patienceMs }: Look,
  signal: AbortSignal,
): Promise<void> {
  const dispatcher = new Agent({ connect: { timeout }, maxResponseSize: largest });
  try {
    for (const until = performance.now() + patienceMs; performance.now() < until;) {
      const [address] = await resolver.addressesOf(wanted.hostname).catch(() => []);
      if (address !== undefined && (await isAnswered(wanted, address, port, dispatcher))) return;
      await sleep(pauseMs, undefined, { signal });
    }
  } finally {
    await dispatcher.destroy();
  }
}

async function isAnswered(
  { hostname, path, answer }: Wanted,
  address: string,
  port: number,
  dispatcher: Agent,
): Promise<boolean> {
  const url = `http://${isIPv6(address) ? `[${address}]` : address}:${port}${path}`;
  const waits = { headersTimeout: timeout, bodyTimeout: timeout };
  try {
    const { statusCode, body } = await request(url, { dispatcher, headers: { host: hostname }, ...waits });
    return statusCode === 200 && (await body.text()).trim() === answer;
  } catch {
    return false;
  }
}
