// An uploaded certificate, read and checked: it must be PEM, not expired, for its key and for its hostname (bodies 7.2).
import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { refuse } from "../refusal.ts";

/** What the service keeps of an uploaded certificate beside its text. */
export interface Custom {
  readonly expiresAt: number;
  readonly issuer: string;
  readonly type: "rsa" | "ecdsa";
}

// ASSUMED: the texts that refuse an uploaded certificate; 422 is known.
const rejected = (text: string) => refuse(422, `Validation failed: ${text}`);
const head = "-----BEGIN CERTIFICATE-----";
const tail = "-----END CERTIFICATE-----";

/** The first certificate of a chain, which is the one the hostname is served with. */
function certificateIn(chain: string): X509Certificate | undefined {
  const begin = chain.indexOf(head);
  const end = chain.indexOf(tail, begin);
  try {
    return begin < 0 || end < 0 ? undefined : new X509Certificate(chain.slice(begin, end + tail.length));
  } catch {
    return undefined;
  }
}

function keyIn(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    throw rejected("private_key is not a private key in PEM");
  }
}

/** Whether a certificate is for a hostname. One for a wildcard must name that wildcard. */
function isFor(certificate: X509Certificate, hostname: string): boolean {
  const name = hostname.toLowerCase();
  if (!name.startsWith("*.")) return certificate.checkHost(name, { subject: "default" }) !== undefined;
  const named = [...(certificate.subjectAltName ?? "").matchAll(/DNS:([^,\s]+)/g)].map(([, host = ""]) => host);
  const common = /CN=([^\n,]+)/.exec(certificate.subject)?.[1] ?? "";
  return [...named, common].some((host) => host.toLowerCase() === name);
}

/** Reads an upload, or refuses it. */
export function readCustom(
  { fullchain, private_key, hostname }: { fullchain: string; private_key: string; hostname: string },
  now: number,
): Custom {
  const certificate = certificateIn(fullchain);
  if (!certificate) throw rejected("fullchain is not a certificate in PEM");
  const key = keyIn(private_key);
  if (!certificate.checkPrivateKey(key)) throw rejected("private_key does not match the certificate");
  const expiresAt = Date.parse(certificate.validTo);
  if (expiresAt <= now) throw rejected(`the certificate expired at ${certificate.validTo}`);
  if (!isFor(certificate, hostname)) throw rejected(`the certificate is not for ${JSON.stringify(hostname)}`);
  return {
    expiresAt,
    issuer: /(?:^|\n)CN=([^\n]+)/.exec(certificate.issuer)?.[1] ?? certificate.issuer.replaceAll("\n", ", "),
    type: key.asymmetricKeyType === "ec" ? "ecdsa" : "rsa",
  };
}
