// A local certificate authority, for HTTPS on this computer. Its root is in the data folder, where people can find it to trust it.
import { createPrivateKey, webcrypto } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import type * as X509 from "@peculiar/x509";
import type { IssuedCertificate } from "./certificateIssuer.ts";
import { writePrivately } from "../store/privateFile.ts";
import { Recent } from "../store/recent.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const day = 24 * 3600_000;
const years = 10 * 365 * day;
// Clients refuse certificates that are valid for more than 398 days.
const longest = 397 * day;
const mostLeaves = 1000;

interface Root {
  readonly certificate: X509.X509Certificate;
  readonly key: webcrypto.CryptoKey;
}

interface Leaf extends IssuedCertificate {
  readonly madeAt: number;
  readonly renewFrom: number;
}

/** Loaded with the first certificate: most services issue none, and it takes a seventh of their start. */
async function certificates(): Promise<typeof X509> {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

/** The file with the root certificate of a data folder. */
export const rootFile = (folder: string): string => join(folder, "local-ca.pem");

/** The file with the private key of that certificate. */
export const rootKeyFile = (folder: string): string => join(folder, "local-ca.key");

/** Issues certificates for host names. */
export class LocalAuthority {
  readonly #folder: string | undefined;
  /** By their first name; Apps come and go, so those that were used last. */
  readonly #leaves = new Recent<Promise<Leaf>>(mostLeaves);
  #root: Promise<Root> | undefined;

  /** Keeps its root in a folder, or in memory. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** The root certificate in PEM. */
  async root(): Promise<string> {
    return (await this.#rootOf()).certificate.toString("pem");
  }

  /** A certificate for host names, which is kept in memory by the first of them. */
  async certificateFor(names: readonly [string, ...string[]]): Promise<IssuedCertificate> {
    const [host] = names;
    const known = await this.#leaves.get(host);
    const now = Date.now();
    // The clock may have been ahead when it was made.
    if (known && known.madeAt <= now && known.renewFrom > now) return known;
    const until = now + longest;
    const issued = this.issue(names, until).then((one) => ({ ...one, madeAt: now, renewFrom: until - 30 * day }));
    this.#leaves.set(host, issued);
    issued.catch(() => this.#leaves.delete(host));
    return issued;
  }

  #rootOf(): Promise<Root> {
    const root = (this.#root ??= this.#load());
    root.catch(() => (this.#root = undefined));
    return root;
  }

  async #load(): Promise<Root> {
    const x509 = await certificates();
    const file = this.#folder === undefined ? undefined : rootFile(this.#folder);
    const keyFile = this.#folder === undefined ? undefined : rootKeyFile(this.#folder);
    if (file !== undefined && keyFile !== undefined && existsSync(file) && existsSync(keyFile)) {
      const der = createPrivateKey(readFileSync(keyFile)).export({ type: "pkcs8", format: "der" });
      const key = await webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
      return { certificate: new x509.X509Certificate(readFileSync(file, "utf8")), key };
    }
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: "CN=machines-service local authority",
      notBefore: new Date(Date.now() - day),
      notAfter: new Date(Date.now() + years),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      ],
    });
    if (file !== undefined && keyFile !== undefined) {
      writePrivately(keyFile, await pemOf(keys.privateKey));
      writePrivately(file, `${certificate.toString("pem")}\n`);
    }
    return { certificate, key: keys.privateKey };
  }

  /** Issues a certificate for host names and IP addresses, which is valid until a time in milliseconds since 1970. */
  async issue(names: readonly string[], until: number): Promise<IssuedCertificate> {
    const x509 = await certificates();
    const root = await this.#rootOf();
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.create({
      subject: "CN=machines-service",
      issuer: root.certificate.subject,
      notBefore: new Date(Date.now() - day),
      notAfter: new Date(until),
      signingAlgorithm: algorithm,
      publicKey: keys.publicKey,
      signingKey: root.key,
      extensions: [
        new x509.BasicConstraintsExtension(false),
        new x509.ExtendedKeyUsageExtension(["1.3.6.1.5.5.7.3.1"]),
        new x509.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: isIP(value) > 0 ? "ip" : "dns", value })),
        ),
      ],
    });
    const chain = `${certificate.toString("pem")}\n${root.certificate.toString("pem")}\n`;
    return { key: await pemOf(keys.privateKey), chain };
  }
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  const x509 = await certificates();
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}
