// What a request has to find outside of the store, before its transaction.
import type { DnsRecords } from "./dns.ts";
import type { FoundImage } from "./runtime.ts";

/** What a request has found so far: images by their reference, DNS records by hostname. */
export interface Found {
  readonly images: Map<string, FoundImage>;
  readonly records: Map<string, DnsRecords>;
}

/** Nothing yet. */
export const nothingFound = (): Found => ({ images: new Map(), records: new Map() });

/** Thrown by a rule that needs something which was not looked for yet. The rule runs again once it is found. */
export class LookupNeeded extends Error {
  /** Looks for it, and adds it to what was found. */
  readonly find: (found: Found) => Promise<void>;

  constructor(what: string, find: (found: Found) => Promise<void>) {
    super(`${what} has to be found first`);
    this.find = find;
  }
}
