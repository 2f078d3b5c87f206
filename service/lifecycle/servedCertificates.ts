// The certificates that the proxy serves.
import type { HostnameRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { hostnamesFor, isExpired, keyNames, type NamesOfService } from "./hostnames.ts";

/** What finds certificates. */
type Finding = Pick<Context, "store" | "clock" | "vault"> & NamesOfService;

/** A certificate that the proxy serves. */
export interface ServedCertificate {
  /** Id of the App that the name belongs to. */
  readonly app: string;
  readonly chain: string;
  /** Decrypts the key. */
  readonly key: () => string;
}

/**
 * The certificate for a name that a client asks for: of its hostname, or of a wildcard of the same organization; undefined if none
 * is active. Another organization's would let an App speak in the name of that one.
 */
export function servedCertificate(context: Finding, name: string): ServedCertificate | undefined {
  const [best, ...others] = hostnamesFor(context, name.toLowerCase());
  if (!best) return undefined;
  for (const row of [best, ...others.filter(({ org }) => org === best.org)]) {
    const found = activeCertificate(context, row);
    if (found) return { ...found, app: best.app };
  }
  return undefined;
}

/** The active certificate of a hostname: the uploaded one comes first. */
function activeCertificate(context: Finding, row: HostnameRow): Omit<ServedCertificate, "app"> | undefined {
  const { custom_chain, custom_key, issued_chain, issued_key } = row;
  const open = (name: string, sealed: Uint8Array) => () => context.vault.open(name, sealed).toString();
  if (row.custom_status === "active" && !isExpired(context, row) && custom_chain !== null && custom_key)
    return { chain: custom_chain, key: open(keyNames.custom(row), custom_key) };
  if (issued_chain !== null && issued_key && (row.expires_at ?? 0) > context.clock.now())
    return { chain: issued_chain, key: open(keyNames.issued(row), issued_key) };
  return undefined;
}
