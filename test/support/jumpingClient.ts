// A client whose clock never waits and records how long it would have waited.
import { Run } from "../../provider/core/run/run.ts";
import { createApi, type Api } from "../../provider/client/api.ts";
import { systemClock, type Clock } from "../../provider/client/clock.ts";
import type { Journal } from "../../provider/core/journal.ts";
import { httpTransport, type Sent, type Transport } from "../../provider/client/transport.ts";
import { readConfig } from "../../provider/client/config.ts";

/** For clients whose creates need not be found again. */
export const noIntents: Journal = {
  find: () => undefined,
  write: () => Promise.resolve(),
  settle: () => undefined,
  openIn: () => [],
  excludeKeys: () => undefined,
  delivered: () => [],
  forget: () => undefined,
};

/** Time that passes only during sleeps; random numbers are always one half. */
export function jumpingClock(): Clock & { slept: number[] } {
  let now = Date.now();
  const slept: number[] = [];
  return {
    slept,
    now: () => now,
    random: () => 0.5,
    every: systemClock.every,
    sleep: (milliseconds) => {
      slept.push(milliseconds);
      now += milliseconds;
      return Promise.resolve();
    },
  };
}

const direct = httpTransport({});

/** The result of any operation of a killed process. */
const never = new Promise<never>(() => undefined);

/** Options of a client. */
export interface JumpingOptions {
  /** Additional keys of `machines:`. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly transport?: Transport;
  /** The request at which its process is killed: before it is sent, or after it was answered. */
  readonly dies?: (request: Pick<Sent, "method" | "url">, moment: "before" | "after") => boolean;
}

/** A client of a service, and its requests. */
export function jumpingClient(
  { url, token }: { readonly url: string; readonly token: string },
  intents: Journal = noIntents,
  { settings: more = {}, transport = direct, dies }: JumpingOptions = {},
): { api: Api; run: Run; clock: ReturnType<typeof jumpingClock>; sent: string[]; bodies: unknown[] } {
  const clock = jumpingClock();
  const sent: string[] = [];
  const bodies: unknown[] = [];
  const settings: Record<string, string> = { endpoint: url, token, minHealthySeconds: "0", ...more };
  const api = createApi({
    config: readConfig((key) => settings[key], {}),
    connect: () => Promise.resolve({ url, token }),
    transport: Object.assign(
      async (request: Sent) => {
        if (request.body !== undefined) bodies.push(JSON.parse(request.body));
        if (dies?.(request, "before")) return never;
        const outcome = await transport(request);
        return dies?.(request, "after") ? never : outcome;
      },
      { close: () => transport.close() },
    ),
    clock,
    onRequest: ({ operation, status }) => sent.push(`${operation} ${status ?? "lost"}`),
  });
  return { api, run: new Run(() => intents), clock, sent, bodies };
}
