// The faults in the console: what is switched on, and which requests it hit.
import type { Audit } from "../http/audit.ts";
import { operationsById, type Faults } from "../faults/faults.ts";
import type { Work } from "../time/costly.ts";
import { logged } from "./requests.ts";
import type { FaultList, LoggedRequest } from "./types.ts";

/** Hits of each fault that are shown. */
const hitsShown = 20;

// Only a list of faults that is not empty has this: within a text, the quotation mark would be escaped.
const hit = ',["';

/** The faults with their latest hits. `isOn` says whether this session may change them. */
export async function faultsView(faults: Faults, audit: Audit, isOn: boolean, work: Work): Promise<FaultList> {
  if (!isOn) return { isOn, faults: [], before: [], operations: [] };
  const hits = new Map<string, LoggedRequest[]>(faults.planned.map(({ id }) => [id, []]));
  const before: LoggedRequest[] = [];
  for (const entry of audit.newestFirst({ text: hit })) {
    if (work.isDue) await work.pause();
    if (!entry) continue;
    const known = entry.faults.map((id) => hits.get(id)).filter((found) => found !== undefined);
    for (const found of known.length > 0 ? known : [before]) if (found.length < hitsShown) found.push(logged(entry));
  }
  return {
    isOn,
    faults: faults.planned.map(({ id, seen, fault: { rewrite: _rewrite, until: _until, ...fault } }) => ({
      ...{ id, seen, fault },
      hits: hits.get(id) ?? [],
    })),
    before,
    operations: [...operationsById.keys()].sort(),
  };
}
