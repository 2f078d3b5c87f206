// Load on a server, by autocannon on a separate thread.
import autocannon from "autocannon";

/** The requests of a load. */
export interface Load {
  readonly url: string;
  readonly token: string;
  readonly method?: "GET" | "POST";
  readonly body?: string;
  readonly connections?: number;
  /** Beside the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly seconds: number;
}

/** The result of a load. */
export interface Rate {
  readonly perSecond: number;
  readonly p99Ms: number;
  /** Failed requests; a figure with any is invalid. */
  readonly failures: number;
}

/** Puts a server under load. */
export async function load({
  url,
  token,
  method = "GET",
  body,
  connections = 50,
  seconds,
  headers,
}: Load): Promise<Rate> {
  const result = await autocannon({
    ...{ url, method, connections, duration: seconds, workers: 1 },
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body }),
  });
  return {
    perSecond: Math.round(result.requests.average),
    p99Ms: result.latency.p99,
    failures: result.non2xx + result.errors + result.timeouts,
  };
}
