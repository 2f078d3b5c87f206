// Gets certificates from a certificate authority that speaks ACME (RFC 8555).
import { existsSync, readFileSync } from "node:fs";
import acme, { type Authorization, type Client, type Order } from "acme-client";
import { writePrivately } from "../../store/privateFile.ts";
import { accountFile } from "./accountFile.ts";
import {
  challengeFolder,
  type CertificateIssuer,
  type IssuedCertificate,
  type IssuerFactory,
  type IssuerHost,
  type WantedCertificate,
} from "../certificateIssuer.ts";
import { IssueRefused, IssuerRequests } from "../issuerRequests.ts";
import { untilSeen, usualLook, type Look } from "./untilSeen.ts";
import { AcmeRefusal, setTransport, Unreachable } from "./transport.ts";

type Challenge = Authorization["challenges"][number];

/** The ways in which the proxy proves control of a hostname, best first. */
const byProxy = ["http-01", "tls-alpn-01"];
/** That of an engine which has its own ways to Machines: they end TLS themselves. */
const byRoutes = ["http-01"];
// A minute or two: authorities look from several places.
const patience = { backoffMin: 500, backoffMax: 5000, backoffAttempts: 30 };
const hour = 3600_000;

/** An issuer that asks the authority with this ACME directory. */
export function acmeIssuer(directory: string, look: Partial<Look> = {}): IssuerFactory {
  return (host) => new AcmeIssuer(directory, host, { ...usualLook, ...look });
}

/** The prefix of the state of an order, which continues after a restart. */
interface Kept {
  readonly directory: string;
  readonly order: string;
}

class AcmeIssuer implements CertificateIssuer {
  readonly name: string;
  readonly checksItself = true;
  readonly #host: IssuerHost;
  readonly #requests: IssuerRequests;
  readonly #answers = new Map<string, string>();
  readonly #proofs = new Map<string, { readonly cert: string; readonly key: string }>();
  readonly #look: Look;
  #client: Promise<Client> | undefined;

  readonly challenges = {
    answerOf: (token: string) => this.#answers.get(token),
    proofOf: (name: string) => this.#proofs.get(name),
  };

  constructor(directory: string, host: IssuerHost, look: Look) {
    this.name = directory;
    this.#host = host;
    this.#look = look;
    this.#requests = new IssuerRequests(host, async (wanted, signal) => {
      try {
        return await this.#issue(wanted, signal);
      } catch (error) {
        throw this.#refusedBy(error);
      }
    });
  }

  request(wanted: WantedCertificate): void {
    this.#requests.request(wanted);
  }

  close(): Promise<void> {
    return this.#requests.close();
  }

  async #issue(wanted: WantedCertificate, signal: AbortSignal): Promise<IssuedCertificate> {
    const client = await this.#clientOf();
    const { hostname } = wanted;
    let refusal: unknown;
    // An authorization that has failed cannot be tried again, so the next proof needs a new order.
    const kinds = this.#host.challengeRoutes ? byRoutes : byProxy;
    for (const kind of hostname.startsWith("*.") ? ["dns-01"] : kinds) {
      const order =
        (kind === "dns-01" ? await this.#keptOrder(client, wanted) : undefined) ?? (await newOrder(client, hostname));
      try {
        const authorizations = await client.getAuthorizations(order);
        for (const one of authorizations) await this.#prove(client, order, one, kind, signal);
        return await this.#redeem(client, order, hostname, authorizations);
      } catch (error) {
        if (error instanceof NotOffered) refusal ??= error;
        else if (error instanceof ProofRefused) refusal = error;
        else throw error;
      }
    }
    throw refusal;
  }

  /** Proves control of a hostname in one way. */
  async #prove(
    client: Client,
    order: Order,
    authorization: Authorization,
    kind: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (authorization.status === "valid") return;
    const challenge = authorization.challenges.find(({ type }) => type === kind);
    if (authorization.status !== "pending" || !challenge) throw new NotOffered(authorization);
    const key = await client.getChallengeKeyAuthorization(challenge);
    const withdraw = await this.#answer(order, authorization, challenge, key, signal);
    try {
      signal.throwIfAborted();
      await client.completeChallenge(challenge);
      await client.waitForValidStatus(challenge);
    } catch (error) {
      if (error instanceof AcmeRefusal || error instanceof Unreachable || signal.aborted) throw error;
      throw new ProofRefused(kind, error);
    } finally {
      withdraw();
    }
  }

  /** Makes the answer to a challenge available, until the returned function is called. */
  async #answer(
    order: Order,
    authorization: Authorization,
    { type, token }: Challenge,
    key: string,
    signal: AbortSignal,
  ): Promise<() => void> {
    const name = authorization.identifier.value;
    if (type === "dns-01") {
      await this.#requireText(order, `_acme-challenge.${name}`, key);
      return () => {};
    }
    if (type === "http-01") return this.#answerByHttp(name, token, key, signal);
    const [keyPem, cert] = await acme.crypto.createAlpnCertificate(authorization, key);
    this.#proofs.set(name, { cert: String(cert), key: String(keyPem) });
    return () => this.#proofs.delete(name);
  }

  async #answerByHttp(hostname: string, token: string, key: string, signal: AbortSignal): Promise<() => void> {
    const { challengeRoutes, resolver } = this.#host;
    this.#answers.set(token, key);
    const remove = (): void => void this.#answers.delete(token);
    if (!challengeRoutes) return remove;
    try {
      const close = await challengeRoutes.open(hostname, token, signal);
      if (resolver)
        await untilSeen({ hostname, path: challengeFolder + token, answer: key }, resolver, this.#look, signal);
      return () => {
        close();
        remove();
      };
    } catch (error) {
      remove();
      throw error;
    }
  }

  /** Only the owner of a zone can create a TXT record: until it exists, the order stays open. */
  async #requireText(order: Order, name: string, value: string): Promise<void> {
    const { resolver } = this.#host;
    const texts: readonly string[] = (await resolver?.textsOf(name).catch(() => [])) ?? [];
    if (texts.includes(value)) return;
    const keep: Kept = { directory: this.name, order: order.url };
    throw new IssueRefused({
      code: "DNS_CHALLENGE_MISSING",
      message: `${name} has no TXT record with the value that the certificate authority requests`,
      remediation: `Create a TXT record ${name} with the value ${value}.`,
      isFailedCheck: false,
      keep: JSON.stringify(keep),
    });
  }

  /** All organizations share the account: what one has proved must not be proof for the next one that asks for the name. */
  async #forget(client: Client, authorizations: readonly Authorization[]): Promise<void> {
    for (const one of authorizations)
      await client.deactivateAuthorization(one).catch((error: unknown) => {
        this.#host.log.warn({ hostname: one.identifier.value, err: error }, "the proof of a hostname stays valid");
      });
  }

  async #redeem(
    client: Client,
    order: Order,
    hostname: string,
    authorizations: readonly Authorization[],
  ): Promise<IssuedCertificate> {
    try {
      return await this.#download(client, order, hostname);
    } finally {
      await this.#forget(client, authorizations);
    }
  }

  async #download(client: Client, order: Order, hostname: string): Promise<IssuedCertificate> {
    const key = await acme.crypto.createPrivateEcdsaKey();
    const [, csr] = await acme.crypto.createCsr({ altNames: [hostname] }, key);
    const finalized = await client.finalizeOrder(order, csr);
    return { chain: await client.getCertificate(finalized), key: String(key) };
  }

  /** The order of an earlier request, if it can still be fulfilled. */
  async #keptOrder(client: Client, { kept }: WantedCertificate): Promise<Order | undefined> {
    if (kept === undefined) return undefined;
    const { directory, order } = JSON.parse(kept) as Kept;
    if (directory !== this.name) return undefined;
    try {
      const found = await client.getOrder({ url: order } as Order);
      return ["pending", "ready"].includes(found.status) ? found : undefined;
    } catch (error) {
      if (error instanceof AcmeRefusal && !error.isLimit) return undefined;
      throw error;
    }
  }

  #clientOf(): Promise<Client> {
    const client = (this.#client ??= this.#register());
    client.catch(() => (this.#client = undefined));
    return client;
  }

  /** The account of this service, which is created only for a key that the authority does not know. */
  async #register(): Promise<Client> {
    setTransport(acme.axios);
    const accountKey = await this.#accountKey();
    const client = new acme.Client({ directoryUrl: this.name, accountKey, ...patience });
    try {
      await client.createAccount({ onlyReturnExisting: true });
    } catch (error) {
      if (!(error instanceof AcmeRefusal) || error.kind !== "accountDoesNotExist") throw error;
      await client.createAccount({ termsOfServiceAgreed: true });
    }
    return client;
  }

  async #accountKey(): Promise<string> {
    const { folder } = this.#host;
    const file = folder === undefined ? undefined : accountFile(folder);
    if (file !== undefined && existsSync(file)) return readFileSync(file, "utf8");
    const key = String(await acme.crypto.createPrivateEcdsaKey());
    if (file !== undefined) writePrivately(file, key);
    return key;
  }

  /** What a failure means for the hostname. */
  #refusedBy(error: unknown): unknown {
    const now = this.#host.clock.now();
    const again = "The service tries again by itself.";
    if (error instanceof Unreachable)
      return new IssueRefused({
        code: "AUTHORITY_UNREACHABLE",
        message: `the certificate authority ${this.name} did not answer: ${error.message}`,
        remediation: again,
        isFailedCheck: false,
      });
    if (error instanceof AcmeRefusal) {
      const limitedUntil = error.isLimit ? now + (error.retryAfterMs ?? hour) : undefined;
      return new IssueRefused({
        code: error.isLimit ? "AUTHORITY_RATE_LIMITED" : "AUTHORITY_REFUSED",
        message: `the certificate authority refused: ${error.message}`,
        remediation: error.isLimit ? again : "Remove the cause, then have the hostname checked again.",
        ...(limitedUntil === undefined ? {} : { limitedUntil }),
        isFailedCheck: !error.isLimit,
      });
    }
    if (error instanceof ProofRefused || error instanceof NotOffered)
      return new IssueRefused({
        code: "AUTHORITY_CHECK_FAILED",
        message: `the certificate authority could not check the hostname: ${error.message}`,
        remediation:
          "Point the hostname at this service, and let the authority reach it at port 80 or 443. Then have it checked again.",
        isFailedCheck: true,
      });
    return error;
  }
}

/** The authority does not offer a proof that this service can give. */
class NotOffered extends Error {
  constructor({ status, challenges }: Authorization) {
    super(
      status === "pending"
        ? `it offers only ${challenges.map(({ type }) => type).join(", ")}`
        : `its authorization is ${status}`,
    );
  }
}

/** The authority has looked, and did not find the proof. */
class ProofRefused extends Error {
  constructor(kind: string, cause: unknown) {
    super(`${kind}: ${cause instanceof Error ? cause.message : "unknown"}`, { cause });
  }
}

const newOrder = (client: Client, hostname: string): Promise<Order> =>
  client.createOrder({ identifiers: [{ type: "dns", value: hostname }] });
