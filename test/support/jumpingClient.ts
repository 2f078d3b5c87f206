// A client whose clock never waits and remembers how long it would have.
import { Run } from "../../provider/core/run.ts";
import { createApi, type Api } from "../../provider/client/api.ts";
import { systemClock, type Clock } from "../../provider/client/clock.ts";
import type { Journal } from "../../provider/core/journal.ts";
import { httpTransport, type Sent, type Transport } from "../../provider/client/transport.ts";
import { readConfig } from "../../provider/client/config.ts";

/** For clients that create nothing they would have to find again. */
export const noIntents: Journal = {
  find: () => undefined,
  write: () => Promise.resolve(),
  settle: () => undefined,
  openIn: () => [],
  excludeKeys: () => undefined,
  delivered: () => [],
  forget: () => undefined,
};

/** Time that passes only when somebody sleeps; chance that is always one half. */
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

/** What a process that was killed makes of anything. */
const never = new Promise<never>(() => undefined);

/** How a client is made. */
export interface JumpingOptions {
  /** Further keys of `machines:`. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly transport?: Transport;
  /** At which request its process is killed: before that is sent, or after it was answered. */
  readonly dies?: (request: Pick<Sent, "method" | "url">, moment: "before" | "after") => boolean;
}

/** A client of a service, and what it sent. */
export function jumpingClient(
  { url, token }: { readonly url: string; readonly token: string },
  intents: Journal = noIntents,
  { settings: more = {}, transport = direct, dies }: JumpingOptions = {},
): { api: Api; run: Run; clock: ReturnType<typeof jumpingClock>; sent: string[]; bodies: unknown[] } {
  const clock = jumpingClock();
  const sent: string[] = [];
  const bodies: unknown[] = [];
  const settings: Record<string, string> = { endpoint: url, token, ...more };
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
