// An uploaded certificate: the PEM of a chain, and its hostnames (docs/interface.md#uploaded-certificates). Without I/O;
// both sides validate uploads with it.
import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";

const begin = "-----BEGIN CERTIFICATE-----";
const end = "-----END CERTIFICATE-----";

/** The PEM blocks of a text. A pattern would search for an end after every beginning, and a text may have thousands. */
function* blocksIn(text: string): Generator<string> {
  for (let from = text.indexOf(begin); from >= 0;) {
    const to = text.indexOf(end, from);
    if (to < 0) return;
    yield text.slice(from, to + end.length);
    from = text.indexOf(begin, to);
  }
}

/** The certificates of a chain in their order, the hostname's own first; undefined if the text is not PEM. */
export function certificatesIn(chain: string): readonly X509Certificate[] | undefined {
  try {
    const found = [...blocksIn(chain)].map((pem) => new X509Certificate(pem));
    return found.length > 0 ? found : undefined;
  } catch {
    return undefined;
  }
}

/** A private key in PEM; undefined if the text has none, or an encrypted one. */
export function privateKeyIn(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** The names of a certificate: its subject alternative names, and the common name. */
export function namesOf(certificate: X509Certificate): readonly string[] {
  const named = [...(certificate.subjectAltName ?? "").matchAll(/DNS:([^,\s]+)/g)].map(([, host = ""]) => host);
  const common = /(?:^|\n)CN=([^\n]+)/.exec(certificate.subject)?.[1];
  return [...new Set(common === undefined ? named : [...named, common])];
}

/** Whether a certificate is valid for a hostname. A wildcard must be named literally. */
export function isFor(certificate: X509Certificate, hostname: string): boolean {
  const name = hostname.toLowerCase();
  if (!name.startsWith("*.")) return certificate.checkHost(name, { subject: "default" }) !== undefined;
  return namesOf(certificate).some((host) => host.toLowerCase() === name);
}

// ASSUMED: a chain has at most ten certificates, as clients read no more.
const mostInChain = 10;
// ASSUMED: keys are RSA of 2,048 to 4,096 bits, or EC on the curves that every TLS library knows. Clients refuse weaker keys, and
// each handshake with a longer one would keep the proxy busy.
const rsaBits = { least: 2048, most: 4096 };
const curves: Readonly<Record<string, string>> = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };
const allowedKeys = `use RSA of ${rsaBits.least} to ${rsaBits.most} bits, or EC on ${Object.values(curves).join(", ")}`;

/** The object identifier of a curve that is given by its parameters. */
const primeField = Buffer.from("06072a8648ce3d0101", "hex");

/** Undefined for kinds of keys that this Node.js does not know. */
function publicKeyOf(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey;
  } catch {
    return undefined;
  }
}

/** Why a key cannot be used, for the end of a sentence; undefined if it can. */
function keyProblem(certificate: X509Certificate): string | undefined {
  const key = publicKeyOf(certificate);
  if (!key) return "has a key that cannot be read";
  const { asymmetricKeyType: type = "unknown", asymmetricKeyDetails: { modulusLength = 0, namedCurve } = {} } = key;
  if (type === "rsa") {
    const isAllowed = modulusLength >= rsaBits.least && modulusLength <= rsaBits.most;
    return isAllowed ? undefined : `has an RSA key of ${modulusLength} bits`;
  }
  if (type !== "ec") return `has a key of the type ${type}`;
  if (namedCurve === undefined || !(namedCurve in curves))
    return `has an EC key on the curve ${namedCurve ?? "unknown"}`;
  const isNamed = !key.export({ format: "der", type: "spki" }).includes(primeField);
  return isNamed ? undefined : "has an EC key that gives the parameters of its curve instead of the name";
}

/** Why the keys of a chain, or its length, are refused; undefined if they are not. */
function sizeProblem(chain: readonly X509Certificate[]): string | undefined {
  if (chain.length > mostInChain)
    return `the chain has ${chain.length} certificates; at most ${mostInChain} are allowed`;
  for (const [i, certificate] of chain.entries()) {
    const problem = keyProblem(certificate);
    if (problem !== undefined) return `certificate ${i + 1} ${problem}; ${allowedKeys}`;
  }
  return undefined;
}

/**
 * What keeps a chain from being served, apart from dates; undefined if nothing does. Each certificate must have signed the one
 * before, and have a key that clients accept.
 */
export function chainProblem(chain: readonly X509Certificate[]): string | undefined {
  // Before the signatures: checking one with a huge key takes long.
  const size = sizeProblem(chain);
  if (size !== undefined) return size;
  const broken = chain.findIndex((certificate, i) => {
    const next = chain[i + 1];
    return next !== undefined && !(certificate.checkIssued(next) && certificate.verify(next.publicKey));
  });
  if (broken < 0) return undefined;
  return `certificate ${broken + 2} did not sign certificate ${broken + 1}; begin with the hostname's own and let the one that signed it follow each`;
}

/** Why a chain cannot be served at a time: one of its certificates has expired or is not valid yet. */
export function datesProblem(chain: readonly X509Certificate[], now: number): string | undefined {
  for (const [i, { validFrom, validTo }] of chain.entries()) {
    if (Date.parse(validTo) <= now) return `certificate ${i + 1} expired at ${validTo}`;
    if (Date.parse(validFrom) > now) return `certificate ${i + 1} is not valid before ${validFrom}`;
  }
  return undefined;
}
