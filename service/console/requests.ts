// The request log: the answered requests of an organization, newest last.
import type { Audit, Audited } from "../http/audit.ts";
import type { Asker } from "./ask.ts";
import type { Work } from "../time/costly.ts";
import type { LoggedRequest, RequestLog } from "./types.ts";
import { ownApps } from "../store/tokens.ts";

/** Entries in one answer. */
const mostInAnswer = 1000;

/** An entry as the page shows it. */
export const logged = ({ org: _org, nonce: _nonce, lease: _lease, ...entry }: Audited): LoggedRequest => entry;

/** Tells which entries a caller may see: those of its organization, and for a token of some Apps those of these Apps. */
export function visibleTo({ context, caller }: Asker): (entry: Audited) => boolean {
  const { slug } = caller;
  const own = ownApps(context.store, caller);
  if (!own) return ({ org }) => org === slug;
  // An App that was deleted may have had the name.
  const since = new Map(own.map(({ name, created_at }) => [encodeURIComponent(name), created_at]));
  const before = "/v1/apps/";
  return ({ org, path, at }) =>
    org === slug &&
    path.startsWith(before) &&
    at >= (since.get(path.slice(before.length).split("/", 1)[0] ?? "") ?? Infinity);
}

/** The entries after a number, at most the newest thousand. */
export async function requestsAfter(
  audit: Audit,
  asker: Asker,
  after: number,
  work: Work,
): Promise<Omit<RequestLog, "run">> {
  const isVisible = visibleTo(asker);
  const { last } = audit;
  const entries: LoggedRequest[] = [];
  for (const entry of audit.newestFirst({ after, text: JSON.stringify(asker.caller.slug) })) {
    if (entry && entry.seq <= last && isVisible(entry)) entries.push(logged(entry));
    if (entries.length >= mostInAnswer) break;
    if (work.isDue) await work.pause();
  }
  return { last, entries: entries.reverse() };
}
