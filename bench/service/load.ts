// Load on a server, by autocannon on a thread of its own.
import autocannon from "autocannon";

/** What a load is made of. */
export interface Load {
  readonly url: string;
  readonly token: string;
  readonly method?: "GET" | "POST";
  readonly body?: string;
  readonly connections?: number;
  readonly seconds: number;
}

/** What came of a load. */
export interface Rate {
  readonly perSecond: number;
  readonly p99Ms: number;
  /** Answers that were no success; a figure with any is worth nothing. */
  readonly failures: number;
}

/** Puts a server under load. */
export async function load({ url, token, method = "GET", body, connections = 50, seconds }: Load): Promise<Rate> {
  const result = await autocannon({
    ...{ url, method, connections, duration: seconds, workers: 1 },
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body }),
  });
  return {
    perSecond: Math.round(result.requests.average),
    p99Ms: result.latency.p99,
    failures: result.non2xx + result.errors + result.timeouts,
  };
}
