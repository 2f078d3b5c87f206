// The request log, as it grows.
import type { JSX } from "preact";
import type { RequestLog } from "../types.ts";
import { queryOf } from "./address.ts";
import { Chart } from "./chart.tsx";
import { useLive, type Growth } from "./live.ts";
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
      (asker === "" || `${one.urn} ${one.owner}`.toLowerCase().includes(asker ?? "")),
  );
  return (
    <>
      <header class="title">
        <h1>Requests</h1>
        <span class="faint" role="status">
          {count(shown.length)} of the latest {count(all.length)}
        </span>
      </header>
      <Chart requests={shown} />
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
