// The certificate for HTTPS, read and checked before the service listens.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { statSync } from "node:fs";
import type { Tls } from "../http/connections.ts";
import { readFile } from "./files.ts";
import { Problem } from "./problem.ts";

function parsed<T>(option: string, file: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new Problem(`${option}: ${file} holds no ${what} in PEM that can be read without a passphrase`);
  }
}

/** A warning when other users can read the file of a private key. */
export function keyWarning(keyFile: string | undefined): string | undefined {
  if (keyFile === undefined) return undefined;
  const mode = statSync(keyFile, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o004) === 0) return undefined;
  return `--tls-key: every user of this computer can read ${keyFile}; remove that permission with chmod o-r`;
}

/** Reads the two files of `--tls-cert` and `--tls-key`; undefined when neither is given. */
export function readCertificate(certFile: string | undefined, keyFile: string | undefined): Tls | undefined {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined) throw new Problem("--tls-key needs --tls-cert, the file with its certificate");
  if (keyFile === undefined) throw new Problem("--tls-cert needs --tls-key, the file with its private key");
  const [cert, key] = [readFile("--tls-cert", certFile), readFile("--tls-key", keyFile)];
  const certificate = parsed("--tls-cert", certFile, "certificate", () => new X509Certificate(cert));
  const privateKey = parsed("--tls-key", keyFile, "private key", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey))
    throw new Problem(`--tls-key: ${keyFile} is not the private key of the certificate in ${certFile}`);
  return { cert, key };
}
