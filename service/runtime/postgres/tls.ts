// The certificate of a cluster, for clients that ask for TLS. Its server and its pooler use the same.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import type { Installation, Paths } from "./server.ts";

const day = 24 * 3600_000;
// ASSUMED: a certificate is good for a year. It is renewed at a start of the server in its last 90 days.
const validMs = 365 * day;
const renewMs = 90 * day;

/** Writes the certificate of a cluster, unless it has one that is good for long, and for all addresses. */
export async function certify({ certificate, addresses }: Installation, paths: Paths): Promise<void> {
  if (isGood(paths, addresses)) return;
  const { chain, key } = await certificate(["localhost", ...addresses], Date.now() + validMs);
  await writeFile(paths.key, key, { mode: 0o600 });
  await writeFile(paths.certificate, chain, { mode: 0o600 });
}

function isGood({ key, certificate }: Paths, addresses: readonly string[]): boolean {
  try {
    const known = new X509Certificate(readFileSync(certificate));
    return (
      // The clock may have been ahead when it was made.
      Date.parse(known.validFrom) <= Date.now() &&
      Date.parse(known.validTo) > Date.now() + renewMs &&
      addresses.every((address) => known.checkIP(address) !== undefined) &&
      known.checkPrivateKey(createPrivateKey(readFileSync(key)))
    );
  } catch {
    return false; // there is none, or a kill has left a part
  }
}
