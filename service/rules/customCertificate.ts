// An uploaded certificate, read and checked: it must be PEM and not expired, and match its key and hostname
// (docs/interface.md#uploaded-certificates).
import type { KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { certificatesIn, chainProblem, datesProblem, isFor, privateKeyIn } from "../../api/uploadedCertificate.ts";
import { refuse } from "../refusal.ts";

/** The properties of an uploaded certificate that the service stores in addition to its text. */
export interface Custom {
  readonly expiresAt: number;
  /** Null when the certificate has none. */
  readonly issuer: string | null;
  readonly type: "rsa" | "ecdsa";
  /** The certificates in PEM, without what else was between them. */
  readonly chain: string;
  /** The key in PEM, in the form that every TLS library reads. */
  readonly key: string;
}

// ASSUMED: the messages of refused certificates are our choice; only their status 422 is known.
const rejected = (text: string) => refuse(422, `Validation failed: ${text}`);

/** The issuer as text. For an empty name Node.js returns undefined, in spite of its types. */
function issuerText(certificate: X509Certificate): string {
  const issuer = certificate.issuer as string | undefined;
  return issuer ?? "";
}

/** The name of the issuer; null without one. */
function issuerOf(certificate: X509Certificate): string | null {
  const issuer = issuerText(certificate);
  return /(?:^|\n)CN=([^\n]+)/.exec(issuer)?.[1] ?? (issuer.replaceAll("\n", ", ") || null);
}

/** The organization that has issued a certificate, or the name of the issuer without one. */
export const organizationOf = (certificate: X509Certificate): string | null =>
  /(?:^|\n)O=([^\n]+)/.exec(issuerText(certificate))?.[1] ?? issuerOf(certificate);

/** The type of a key. */
export const typeOf = ({ asymmetricKeyType }: KeyObject): "ecdsa" | "rsa" =>
  asymmetricKeyType === "ec" ? "ecdsa" : "rsa";

/** Parses an upload, or refuses it. */
export function readCustom(
  { fullchain, private_key, hostname }: { fullchain: string; private_key: string; hostname: string },
  now: number,
): Custom {
  const chain = certificatesIn(fullchain);
  // The first certificate of the chain is the one of the hostname.
  const certificate = chain?.[0];
  if (!chain || !certificate) throw rejected("fullchain is not a certificate in PEM");
  const key = privateKeyIn(private_key);
  if (!key) throw rejected("private_key is not a private key in PEM");
  const pem = { chain: chain.map(String).join(""), key: String(key.export({ format: "pem", type: "pkcs8" })) };
  if (!certificate.checkPrivateKey(key)) throw rejected("private_key does not match the certificate");
  // ASSUMED: a chain in which a certificate did not sign the one before is refused, because clients would refuse it.
  const problem = chainProblem(chain) ?? datesProblem(chain, now) ?? loadProblem(pem.chain, pem.key);
  if (problem !== undefined) throw rejected(problem);
  if (!isFor(certificate, hostname)) throw rejected(`the certificate is not for ${JSON.stringify(hostname)}`);
  return {
    expiresAt: Date.parse(certificate.validTo),
    issuer: issuerOf(certificate),
    type: typeOf(key),
    ...pem,
  };
}

/** Why the TLS library of the proxy does not load a certificate, in the library's words; undefined if it does. */
function loadProblem(cert: string, key: string): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    const reason = error instanceof Error && "reason" in error ? String(error.reason) : "unknown reason";
    return `the certificate cannot be used for TLS: ${reason}`;
  }
}
