// The request log, as it grows.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { LoggedRequest, RequestLog } from "../types.ts";
import { queryOf } from "./address.ts";
import { Chart } from "./chart.tsx";
import { send, useLive } from "./live.ts";
import { Choice, Empty, Filter, NoView } from "./parts.tsx";
import { RequestTable } from "./requestTable.tsx";
import { count } from "./words.ts";

/** Requests that stay on the page, and those that are shown at a time. */
const most = 5000;
const shownAtOnce = 200;

/** The view of the log. */
export function RequestsPage(): JSX.Element {
  // Each change says only that there is more; what came since is added.
  const { data, error } = useLive<RequestLog>("/console/api/requests?after=0", []);
  const [all, setAll] = useState<readonly LoggedRequest[]>([]);
  const last = useRef(0);
  const add = ({ last: newest, entries }: RequestLog): void => {
    last.current = newest;
    if (entries.length > 0)
      setAll((before) => [...before, ...entries.filter(({ seq }) => seq > (before.at(-1)?.seq ?? 0))].slice(-most));
  };
  useEffect(() => {
    if (data) add(data);
  }, [data]);
  const tick = useLive<RequestLog>(data ? `/console/api/requests?after=${data.last}` : undefined, ["requests"]);
  useEffect(() => {
    if (!tick.data) return;
    // The service was started again, and counts from the beginning.
    if (tick.data.last < last.current) return setAll(tick.data.entries);
    void send<RequestLog>("GET", `/console/api/requests?after=${last.current}`).then(add, () => {});
  }, [tick.data]);
  if (!data) return <NoView name="Requests" error={error} />;
  const [text, method, status, asker] = ["text", "method", "status", "by"].map((name) => queryOf(name).toLowerCase());
  const shown = all.filter(
    (one) =>
      (text === "" || `${one.path} ${one.operation} ${one.id}`.toLowerCase().includes(text ?? "")) &&
      (method === "" || (method === "changes" ? one.method !== "GET" : one.method.toLowerCase() === method)) &&
      (status === "" || String(one.status ?? "closed").startsWith(status ?? "")) &&
      (asker === "" || `${one.urn} ${one.owner}`.toLowerCase().includes(asker ?? "")),
  );
  return (
    <main>
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
    </main>
  );
}
