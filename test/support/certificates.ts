// Real certificates for tests, self-signed or signed by a given key. Node.js checks certificates but does not create any,
// so this file writes the few bytes of ASN.1 around key and signature.
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";

/** The content of a certificate. */
export interface CertificateOptions {
  /** Names in the subject alternative name. */
  readonly hosts?: readonly string[];
  readonly commonName?: string;
  readonly from?: Date;
  readonly until?: Date;
  readonly kind?: "rsa" | "ec";
  /** Its key instead of a new one. */
  readonly keys?: KeyPair;
  /** The issuer, with a P-256 key; the certificate's own key if omitted. */
  readonly by?: { readonly commonName: string; readonly private_key: string };
}

/** A certificate and its key as PEM, with the names of an upload. */
export interface IssuedCertificate {
  readonly fullchain: string;
  readonly private_key: string;
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const hex = body.length.toString(16);
  const size = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  const length = body.length < 128 ? Buffer.from([body.length]) : Buffer.from([0x80 | size.length, ...size]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));
const time = (at: Date): Buffer => der(0x18, Buffer.from(`${at.toISOString().slice(0, 19).replaceAll(/[-:T]/g, "")}Z`));
const name = (common: string): Buffer =>
  common === "" ? sequence() : sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(common)))));

/** Algorithm of the signature, by type of key: RSA or ECDSA, both with SHA-256. */
const algorithms = {
  rsa: sequence(oid("2a864886f70d01010b"), der(0x05)),
  ec: sequence(oid("2a8648ce3d040302")),
} as const;

const pem = (label: string, bytes: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${(
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,64}/g) ?? []
  ).join("\n")}\n-----END ${label}-----\n`;

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const newKeys = (kind: "rsa" | "ec"): KeyPair =>
  kind === "rsa"
    ? generateKeyPairSync("rsa", { modulusLength: 2048 })
    : generateKeyPairSync("ec", { namedCurve: "prime256v1" });

/** Creates a certificate, by default for 2026. */
export function makeCertificate({
  hosts = [],
  commonName = hosts[0] ?? "test",
  from = new Date(Date.UTC(2025, 11, 1)),
  until = new Date(Date.UTC(2027, 0, 1)),
  keys,
  kind = keys?.privateKey.asymmetricKeyType === "rsa" ? "rsa" : "ec",
  by,
}: CertificateOptions): IssuedCertificate {
  const { publicKey, privateKey } = keys ?? newKeys(kind);
  const names = sequence(...hosts.map((host) => der(0x82, Buffer.from(host))));
  const extensions = hosts.length > 0 ? [der(0xa3, sequence(sequence(oid("551d11"), der(0x04, names))))] : [];
  const algorithm = algorithms[by ? "ec" : kind];
  const toSign = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.from([1])), // serial number
    algorithm,
    name(by?.commonName ?? "Test Authority"),
    sequence(time(from), time(until)),
    name(commonName),
    publicKey.export({ format: "der", type: "spki" }),
    ...extensions,
  );
  const signature = der(0x03, Buffer.from([0]), sign("sha256", toSign, by?.private_key ?? privateKey));
  return {
    fullchain: pem("CERTIFICATE", sequence(toSign, algorithm, signature)),
    private_key: String(privateKey.export({ format: "pem", type: "pkcs8" })),
  };
}

/** Creates a certificate that is valid now, by the system clock. */
export const currentCertificate = (options: CertificateOptions): IssuedCertificate =>
  makeCertificate({
    from: new Date(Date.now() - 3600_000),
    until: new Date(Date.now() + 90 * 24 * 3600_000),
    ...options,
  });
