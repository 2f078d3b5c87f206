// The certificates of a cluster: one for clients that ask for TLS, which its server and its pooler use, and one for the service.
import "reflect-metadata";
import { createPrivateKey, webcrypto, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import type { ConnectionOptions } from "node:tls";
import * as x509 from "@peculiar/x509";
import { codeOf } from "../errorCode.ts";
import type { Installation } from "./installation.ts";
import type { Paths } from "./paths.ts";
import { superuser } from "./settings.ts";

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

/** The certificate of a cluster, in short. */
export const fingerprintOf = ({ certificate }: Paths): string =>
  new X509Certificate(readFileSync(certificate)).fingerprint256;

/** The certificate of a server by which it is known, so that no other program learns anything from the service. */
export function pinned(paths: Paths): ConnectionOptions {
  const fingerprint = fingerprintOf(paths);
  return {
    ca: readFileSync(paths.certificate, "utf8"),
    checkServerIdentity: (_, shown) =>
      shown.fingerprint256 === fingerprint ? undefined : new OtherCertificate("the certificate is another one"),
  };
}

class OtherCertificate extends Error {
  override readonly name = "OtherCertificate";
}

/** Whether a connection failed because another program than the wanted one has answered. */
export const isForeign = (error: unknown): boolean =>
  error instanceof OtherCertificate ||
  /^(ERR_(SSL|TLS)_|EPROTO|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|CERT_)/.test(codeOf(error)) ||
  (error instanceof Error && /does not support SSL|error establishing an SSL/i.test(error.message));

/** With which the service enters a server as superuser. */
export const entryOf = ({ entry, entryKey }: Paths): ConnectionOptions => ({
  cert: readFileSync(entry, "utf8"),
  key: readFileSync(entryKey, "utf8"),
});

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
// ASSUMED: the end of time for certificates (RFC 5280). It is of no use to anyone without the key.
const always = new Date("9999-12-31T23:59:59Z");

/** Writes the certificate with which the service enters a server, unless there is one. */
export async function certifyEntry({ entry, entryKey }: Paths): Promise<void> {
  if (existsSync(entryKey)) return;
  await rm(entry, { force: true });
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${superuser}`,
    notBefore: new Date(Date.now() - day),
    notAfter: always,
    signingAlgorithm: algorithm,
    keys,
    extensions: [new x509.BasicConstraintsExtension(false), new x509.ExtendedKeyUsageExtension(["1.3.6.1.5.5.7.3.2"])],
  });
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  await writeFile(entry, `${certificate.toString("pem")}\n`, { mode: 0o600 });
  await writeFile(`${entryKey}.draft`, key, { mode: 0o600 });
  // It exists only as a whole, after its certificate.
  await rename(`${entryKey}.draft`, entryKey);
}
