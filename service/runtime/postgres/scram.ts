// The form in which a server stores a password (RFC 5803). Servers get this form only, so that no log of theirs has a password.
import { createHash, createHmac, pbkdf2, randomBytes } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify(pbkdf2);
const iterations = 4096;

/** The verifier of a password for SCRAM-SHA-256. */
export async function scramVerifier(password: string, salt: Uint8Array = randomBytes(16)): Promise<string> {
  const salted = await derive(password, salt, iterations, 32, "sha256");
  const keyFor = (text: string): Buffer => createHmac("sha256", salted).update(text).digest();
  const stored = createHash("sha256").update(keyFor("Client Key")).digest("base64");
  const server = keyFor("Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${Buffer.from(salt).toString("base64")}$${stored}:${server}`;
}

/** The stored verifier if it is one of this password, else a new one. */
export async function verifierFor(password: string, stored: string | null | undefined): Promise<string> {
  const salt = /^SCRAM-SHA-256\$\d+:([^$]+)\$/.exec(stored ?? "")?.[1];
  const same = salt === undefined ? undefined : await scramVerifier(password, Buffer.from(salt, "base64"));
  return same !== undefined && same === stored ? same : scramVerifier(password);
}
