// Looks at the certificate of the service's own hostname: what clients get, and why they get no better one.
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, rootCertificates, type TLSSocket } from "node:tls";
import { reasonOf } from "../reasonOf.ts";
import { openForCommand } from "../store/openForCommand.ts";
import type { OwnCertificateRow } from "../store/rows.ts";
import { rfc3339 } from "../time/clock.ts";
import { ok, problem, warning, type Finding } from "./finding.ts";
import { serviceUnit } from "./units.ts";

/** What is looked at. */
interface Looked {
  readonly data: string;
  readonly hostname: string;
  readonly port: number;
  /** File with authorities that the service trusts beside the usual ones. */
  readonly authority: string | undefined;
}

const about = "certificate";
const day = 86_400_000;
const log = `Look for the reason: journalctl -u ${serviceUnit} -n 50`;

/** What the proxy of this computer shows to clients that ask for the name. */
export async function certificateFinding(looked: Looked): Promise<Finding> {
  const { hostname, port } = looked;
  try {
    const { certificate, reason } = await certificateAt(looked);
    if (reason !== undefined) return untrusted(looked, reason);
    const days = Math.floor((Date.parse(certificate.validTo) - Date.now()) / day);
    if (days < 10) return problem(about, `The certificate of ${hostname} ends in ${days} days`, log);
    return ok(about, `The certificate of ${hostname} is valid for ${days} days`);
  } catch (error) {
    return problem(about, `Nothing answers for ${hostname} at port ${port} (${reasonOf(error)})`, log);
  }
}

/** Until a certificate is issued, clients get one that they do not trust. */
function untrusted({ data, hostname }: Looked, reason: string): Finding {
  const row = rowOf(data, hostname);
  if (!row || (typeof row.chain === "string" && row.problem === null))
    return problem(about, `Clients do not trust the certificate of ${hostname} (${reason})`, log);
  const { problem: why, again_at, limited_until } = row;
  if (why === null)
    return warning(
      about,
      `The certificate of ${hostname} is being issued`,
      "Ask again in a minute: machines-service doctor",
    );
  const next = again_at === null ? "soon" : `at ${rfc3339(again_at)}`;
  const now = (limited_until ?? 0) > Date.now() ? "" : `, or at once after: systemctl restart ${serviceUnit}`;
  return problem(
    about,
    `${hostname} has no valid certificate: ${why}`,
    `Correct it. The service tries again ${next}${now}`,
  );
}

/** What the service knows about its certificate; undefined where the store is not in the data folder. */
function rowOf(data: string, hostname: string): OwnCertificateRow | undefined {
  try {
    const store = openForCommand(data);
    try {
      return store.get<OwnCertificateRow>("SELECT * FROM own_certificates WHERE name = ?", hostname);
    } finally {
      store.close();
    }
  } catch {
    return undefined;
  }
}

const handshakeMs = 10_000;

/** The authorities that clients trust; undefined for those of Node.js. */
function trustedWith(authority: string | undefined): string[] | undefined {
  const file = authority ?? process.env["NODE_EXTRA_CA_CERTS"];
  return file === undefined ? undefined : [...rootCertificates, readFileSync(file, "utf8")];
}

function certificateAt({ hostname, port, authority }: Looked) {
  return new Promise<{ readonly certificate: X509Certificate; readonly reason?: string }>((done, fail) => {
    const ca = trustedWith(authority);
    const options = { host: "127.0.0.1", port, servername: hostname, rejectUnauthorized: false, timeout: handshakeMs };
    const socket: TLSSocket = connect({ ...options, ...(ca === undefined ? {} : { ca }) }, () => {
      const { raw } = socket.getPeerCertificate();
      const reason = socket.authorized ? {} : { reason: String(socket.authorizationError) };
      socket.destroy();
      done({ certificate: new X509Certificate(raw), ...reason });
    });
    socket.once("timeout", () => socket.destroy(new Error("no answer")));
    socket.once("error", fail);
  });
}
