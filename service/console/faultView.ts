// The faults in the console: what is switched on, and which requests it hit.
import type { Audit } from "../http/audit.ts";
import { operationsById, type Faults } from "../faults/faults.ts";
import { logged } from "./requests.ts";
import type { FaultList, LoggedRequest } from "./types.ts";

/** Hits of each fault that are shown. */
const hitsShown = 20;

/** The faults with their latest hits. `isOn` says whether this session may change them. */
export function faultsView(faults: Faults, audit: Audit, isOn: boolean): FaultList {
  if (!isOn) return { isOn, faults: [], operations: [] };
  const hits = new Map<string, LoggedRequest[]>(faults.planned.map(({ id }) => [id, []]));
  if (hits.size > 0)
    for (const entry of audit.newestFirst())
      for (const id of entry.faults) {
        const found = hits.get(id);
        if (found && found.length < hitsShown) found.push(logged(entry));
      }
  return {
    isOn,
    faults: faults.planned.map(({ id, seen, fault: { rewrite: _rewrite, until: _until, ...fault } }) => ({
      ...{ id, seen, fault },
      hits: hits.get(id) ?? [],
    })),
    operations: [...operationsById.keys()].sort(),
  };
}
