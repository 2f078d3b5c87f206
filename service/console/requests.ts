// The request log: the answered requests of an organization, newest last.
import type { Audit, Audited } from "../http/audit.ts";
import type { Asker } from "./ask.ts";
import type { LoggedRequest, RequestLog } from "./types.ts";

/** Entries in one answer. */
const mostInAnswer = 1000;

/** An entry as the page shows it. */
export const logged = ({ org: _org, nonce: _nonce, lease: _lease, ...entry }: Audited): LoggedRequest => entry;

/** The entries after a number, at most the newest thousand. A token of one App sees those of its App. */
export function requestsAfter(audit: Audit, { context, caller }: Asker, after: number): RequestLog {
  const app =
    caller.app === null
      ? undefined
      : context.store.get<{ name: string }>("SELECT name FROM apps WHERE id = ?", caller.app)?.name;
  const entries: LoggedRequest[] = [];
  for (const entry of audit.newestFirst()) {
    if (entry.seq <= after || entries.length >= mostInAnswer) break;
    const isOfApp = app === undefined || entry.path.split("/")[3] === encodeURIComponent(app);
    if (entry.org === caller.slug && isOfApp) entries.push(logged(entry));
  }
  return { last: audit.last, entries: entries.reverse() };
}
