// The request log, as it grows.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { LoggedRequest, RequestLog } from "../types.ts";
import { queryOf } from "./address.ts";
import { Chart } from "./chart.tsx";
import { now, useLive, type Growth } from "./live.ts";
import { Choice, Empty, Filter, NoView } from "./parts.tsx";
import { RequestTable } from "./requestTable.tsx";
import { count } from "./words.ts";

/** Requests that stay on the page, and those that are shown at a time. */
const most = 5000;
const shownAtOnce = 200;

// Only what came since is read. After a restart of the service, that is everything.
const growth: Growth<RequestLog> = {
  after: ({ run, last }) => `/console/api/requests?run=${encodeURIComponent(run)}&after=${last}`,
  add: (known, more) =>
    more.run === known.run ? { ...more, entries: [...known.entries, ...more.entries].slice(-most) } : more,
};

/** Seconds of the chart. */
const seconds = 180;

/** Counts of each second: all requests, and those that failed. */
function countsOf(requests: readonly LoggedRequest[], end: number) {
  const times = Array.from({ length: seconds }, (_, i) => 1000 * (end - seconds + 1 + i));
  const [all, failed] = [times.map(() => 0), times.map(() => 0)];
  for (const { at, status } of requests) {
    const i = Math.floor(at / 1000) - (end - seconds + 1);
    if (i < 0 || i >= seconds) continue;
    all[i] = (all[i] ?? 0) + 1;
    if (status === null || status >= 400) failed[i] = (failed[i] ?? 0) + 1;
  }
  return { times, all, failed };
}

/** Requests of each second in the last minutes. */
function RequestChart({ requests }: { readonly requests: readonly LoggedRequest[] }): JSX.Element {
  const end = Math.floor(now.value / 1000);
  const { times, all, failed } = useMemo(() => countsOf(requests, end), [requests, end]);
  return (
    <Chart
      label="Requests per second in the last three minutes, and those that failed."
      times={times}
      lines={[
        { name: "requests per second", tone: "busy", values: all },
        { name: "of them failed", tone: "bad", values: failed },
      ]}
    />
  );
}

/** The view of the log. */
export function RequestsPage(): JSX.Element {
  const { data, error } = useLive<RequestLog>("/console/api/requests", ["requests"], growth);
  if (!data) return <NoView name="Requests" error={error} />;
  const all = data.entries;
  const [text, method, status, asker] = ["text", "method", "status", "by"].map((name) => queryOf(name).toLowerCase());
  const shown = all.filter(
    (one) =>
      (text === "" || `${one.path} ${one.operation} ${one.id}`.toLowerCase().includes(text ?? "")) &&
      (method === "" || (method === "changes" ? one.method !== "GET" : one.method.toLowerCase() === method)) &&
      (status === "" || String(one.status ?? "closed").startsWith(status ?? "")) &&
      (asker === "" || `${one.urn} ${one.owner} ${one.tokenName}`.toLowerCase().includes(asker ?? "")),
  );
  return (
    <>
      <header class="title">
        <h1>Requests</h1>
        <span class="faint" role="status">
          {count(shown.length)} of the latest {count(all.length)}
        </span>
      </header>
      <RequestChart requests={shown} />
      <div class="filters">
        <Filter name="text" label="Path, operation or request id" />
        <Filter name="by" label="Stack, resource or token" />
        <Choice
          name="method"
          label="Any method"
          from={[["changes", "changes only"], "GET", "POST", "PUT", "PATCH", "DELETE"]}
        />
        <Choice
          name="status"
          label="Any status"
          from={[
            ["2", "2xx"],
            ["4", "4xx"],
            ["429", "429"],
            ["5", "5xx"],
            ["closed", "closed"],
          ]}
        />
      </div>
      {shown.length === 0 ? (
        <Empty>
          {all.length === 0
            ? "No request since the service was started. Run pulumi up, and watch."
            : "No request is like that."}
        </Empty>
      ) : (
        <RequestTable label="Requests" requests={shown.slice(-shownAtOnce).toReversed()} />
      )}
      {shown.length > shownAtOnce && (
        <p class="faint">The newest {shownAtOnce} are shown; the filters find the others.</p>
      )}
    </>
  );
}
