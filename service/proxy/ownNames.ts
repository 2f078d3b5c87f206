// The service's own names at the proxy: its hostname, where the API and the console answer, and the names of Apps below its domain.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Context } from "../context.ts";
import { labelBelow } from "../lifecycle/hostnames.ts";
import {
  isOwnSubject,
  mayRequest,
  ownCertificate,
  ownSubject,
  requestOwnCertificate,
} from "../lifecycle/ownCertificates.ts";
import type { LocalAuthority } from "../runtime/localAuthority.ts";
import { withResolvers } from "../withResolvers.ts";
import { hostOf } from "./routes.ts";
import type { Targets } from "./targets.ts";

// ASSUMED: the first client of a name waits eight seconds for its certificate, which is less than a handshake may take.
const waitMs = 8000;

/** Answers for the service itself. */
export interface OwnService {
  request(request: IncomingMessage, response: ServerResponse): void;
  /** Answers a request for another protocol, which comes with what the client has sent after it. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void;
}

/** A certificate, with what decrypts its key. */
export interface Served {
  readonly chain: string;
  readonly key: () => string;
}

/** Certificates of names that belong to no App. */
export interface Names {
  /** The certificate for a name; undefined if it is none of these, or if there is none yet. */
  certificateFor(host: string): Promise<Served | undefined>;
  /** The proxy has begun to listen. */
  begin(): void;
  /** An object of the store has changed. Returns whether this was the certificate of a name. */
  changed(id: string): boolean;
  close(): void;
}

/** The certificates of the service's own names. */
export class OwnNames implements Names {
  readonly #context: Context;
  readonly #authority: LocalAuthority;
  readonly #targets: Targets;
  /** Names whose certificate was requested, and what ends the wait for it. */
  readonly #open = new Map<string, ReturnType<typeof withResolvers>>();

  constructor(context: Context, authority: LocalAuthority, targets: Targets) {
    this.#context = context;
    this.#authority = authority;
    this.#targets = targets;
  }

  async certificateFor(host: string): Promise<Served | undefined> {
    const name = host.toLowerCase().replace(/\.$/, "");
    if (!this.#isOwn(name)) return undefined;
    if (this.#context.issuer.checksItself !== true) {
      const { chain, key } = await this.#authority.certificateFor([name]);
      return { chain, key: () => key };
    }
    const ready = ownCertificate(this.#context, name);
    if (ready) return ready;
    // Only those who ask for this name wait.
    if (await this.#request(name)) await this.#answered(name);
    return ownCertificate(this.#context, name);
  }

  /** Requests the certificate of the hostname, before the first client asks for it. */
  begin(): void {
    const { hostname } = this.#context.publicNames;
    if (hostname === undefined) return;
    this.certificateFor(hostname).catch((error: unknown) =>
      this.#context.log.error({ err: error, hostname }, "the certificate of the service"),
    );
  }

  changed(id: string): boolean {
    if (!isOwnSubject(id)) return false;
    this.#open.get(id)?.resolve();
    this.#open.delete(id);
    return true;
  }

  close(): void {
    for (const { resolve } of this.#open.values()) resolve();
    this.#open.clear();
  }

  /** Whether it is the hostname, or the name of an App that has a service for the web. */
  #isOwn(name: string): boolean {
    const { hostname, appsDomain } = this.#context.publicNames;
    if (name === hostname) return true;
    if (labelBelow(appsDomain, name) === undefined) return false;
    const app = hostOf(this.#context, name)?.app;
    const ports = app === undefined ? [] : [...this.#targets.portsOf(app).values()];
    return ports.some(({ kind }) => kind === "https" || kind === "http");
  }

  async #request(name: string): Promise<boolean> {
    const subject = ownSubject(name);
    if (this.#open.has(subject)) return true;
    if (!mayRequest(this.#context, name)) return false;
    this.#open.set(subject, withResolvers());
    let isAsked = false;
    try {
      isAsked = await this.#context.store.write(() => requestOwnCertificate(this.#context, name));
    } finally {
      if (!isAsked) this.changed(subject);
    }
    return isAsked;
  }

  async #answered(name: string): Promise<void> {
    const answered = this.#open.get(ownSubject(name))?.promise;
    const { promise: late, resolve } = withResolvers();
    const timer = setTimeout(resolve, waitMs).unref();
    await Promise.race([answered, late]);
    clearTimeout(timer);
  }
}
