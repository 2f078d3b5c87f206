// An uploaded certificate, read and checked: it must be PEM, not expired, for its key and for its hostname (bodies 7.2).
import { certificatesIn, isFor, privateKeyIn } from "../../api/uploadedCertificate.ts";
import { refuse } from "../refusal.ts";

/** What the service keeps of an uploaded certificate beside its text. */
export interface Custom {
  readonly expiresAt: number;
  readonly issuer: string;
  readonly type: "rsa" | "ecdsa";
}

// ASSUMED: the texts that refuse an uploaded certificate; 422 is known.
const rejected = (text: string) => refuse(422, `Validation failed: ${text}`);
/** Reads an upload, or refuses it. */
export function readCustom(
  { fullchain, private_key, hostname }: { fullchain: string; private_key: string; hostname: string },
  now: number,
): Custom {
  // The first of the chain is the one the hostname is served with.
  const certificate = certificatesIn(fullchain)?.[0];
  if (!certificate) throw rejected("fullchain is not a certificate in PEM");
  const key = privateKeyIn(private_key);
  if (!key) throw rejected("private_key is not a private key in PEM");
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
