// The proxy: makes the services of Machines reachable on this computer, and on no other.
import { createServer as createHttp } from "node:http";
import { createServer as createHttps } from "node:https";
import type { Server, Socket } from "node:net";
import { createSecureContext, type SecureContext, type TLSSocket, type TlsOptions } from "node:tls";
import { callbackify } from "node:util";
import type { ProxyContext } from "./context.ts";
import { findMachine } from "../lifecycle/machines.ts";
import { servedCertificate, type ServedCertificate } from "../lifecycle/servedCertificates.ts";
import type { Reach } from "../runtime/runtime.ts";
import type { AppRow } from "../store/rows.ts";
import { Admission } from "./admission.ts";
import { Addresses, type Address } from "./addresses.ts";
import type { LocalAuthority } from "../runtime/localAuthority.ts";
import { bind as bindBySystem, type Bind } from "../runtime/bind.ts";
import { Claims } from "./claims.ts";
import { Entrance, type Place } from "../runtime/entrance.ts";
import { refuseWith } from "../runtime/closing.ts";
import { Draining } from "../runtime/draining.ts";
import { Clients } from "./clients.ts";
import { inOrder } from "./inOrder.ts";
import { KeptPorts } from "./keptPorts.ts";
import type { ProxyLimits } from "./limits.ts";
import type { Networks } from "../runtime/networks.ts";
import type { Names, OwnService } from "./ownNames.ts";
import type { Power } from "./power.ts";
import { NoPortLeft, PortBudget } from "./portBudget.ts";
import { withProofs } from "./proofs.ts";
import { isWebSocket } from "./malformed.ts";
import { Recent } from "../store/recent.ts";
import { hostOf, portPart, type PublicPort } from "./routes.ts";
import type { RawPlace } from "./rawPlace.ts";
import { accept, allowsVersion, passOn, versionsOf, type Certificate, type Listener } from "./tcp.ts";
import { Targets } from "./targets.ts";
import { Traffic } from "./traffic.ts";
import type { Scheme, Web } from "./web.ts";

const host = "127.0.0.1";
// A context takes about 40 KB.
const mostServed = 500;

/** The ports at which a proxy listens. */
export type ProxyPorts = Readonly<Record<Scheme, number>>;

/** What differs between the proxy in a service and one that is a process of its own. */
export interface ProxyParts {
  /** Makes what starts and stops Machines. */
  readonly power: (targets: Targets) => Power;
  /** Makes what has certificates of names that belong to no App. */
  readonly names: (targets: Targets) => Names;
  /** Answers at the hostname of the service. */
  readonly own?: OwnService | undefined;
  /** Networks of proxies in front of this one. */
  readonly trusted?: Networks | undefined;
  /** Asks for the answer to a token of a certificate authority. Default: the issuer of the service has it. */
  readonly answerOf?: (token: string) => Promise<string | undefined>;
}

/** Where a proxy listens besides the loopback address of this computer. */
export interface Public {
  /** Addresses for other computers, at exactly the wanted ports. */
  readonly addresses?: readonly string[];
  /** Sockets that listen already, as descriptors: they are used instead of opening ports. */
  readonly sockets?: Partial<Readonly<Record<Scheme, readonly number[]>>>;
  /** Whether connections of trusted networks begin with the PROXY protocol. */
  readonly hasProxyProtocol?: boolean;
  /** The only raw ports, at the public addresses. Without it, all are at loopback addresses of this computer. */
  readonly raw?: readonly RawPlace[];
}

/** A proxy in front of Machines. */
export class Proxy {
  /** The requests that it answered. */
  readonly traffic: Traffic;
  readonly #context: ProxyContext;
  readonly #authority: LocalAuthority;
  readonly #targets: Targets;
  readonly #power: Power;
  #web: Web | undefined;
  #addresses: Addresses | undefined;
  #claims: Claims | undefined;
  #block: number | undefined;
  readonly #own: OwnService | undefined;
  readonly #trusted: Networks | undefined;
  readonly #names: Names;
  readonly #answerOf: (token: string) => string | undefined | Promise<string | undefined>;
  readonly #servers: Server[] = [];
  readonly #entrances: Entrance[] = [];
  readonly #draining = new Draining();
  readonly #clients: Clients;
  readonly #budget: PortBudget;
  /** Listeners for raw connections, by App and public port. */
  readonly #raw = new Map<string, Map<number, Raw>>();
  readonly #dirty = new Set<string>();
  /** What was last served, by the certificate: clients can ask for any number of names. */
  readonly #served = new Recent<SecureContext>(mostServed);
  #ports: ProxyPorts = { http: 0, https: 0 };
  #isClosed = false;
  readonly #kept: KeptPorts;
  #open: Public = {};
  #admission: Admission | undefined;

  /** Remembers its ports in a folder, or not at all. */
  constructor(
    context: ProxyContext,
    reach: Reach,
    authority: LocalAuthority,
    folder: string | undefined,
    limits: ProxyLimits,
    { own, trusted, power, names, answerOf }: ProxyParts,
  ) {
    this.#context = context;
    this.#answerOf = answerOf ?? ((token) => context.issuer.challenges?.answerOf(token));
    this.#own = own;
    this.#trusted = trusted;
    this.traffic = new Traffic(context.counted);
    this.#kept = new KeptPorts(folder);
    this.#clients = new Clients(limits, context.log, undefined, (address) => trusted?.has(address) === true);
    this.#budget = new PortBudget(limits.ports, context.log);
    this.#authority = authority;
    this.#targets = new Targets(context, reach, () => this.#power);
    this.#power = power(this.#targets);
    this.#names = names(this.#targets);
  }

  /** The ports of HTTP and HTTPS; 0 before it listens. */
  get ports(): ProxyPorts {
    return this.#ports;
  }

  /** The connections of its clients. */
  get clients(): Pick<Clients, "size" | "addresses" | "limits"> {
    return this.#clients;
  }

  /** The block of loopback addresses for Apps; undefined if there is none, and before it listens. */
  get block(): number | undefined {
    return this.#block;
  }

  /**
   * Listens at these ports, or where they were taken at those of the last time or at free ones, and by `bind` at the addresses of Apps.
   * With public addresses or sockets it listens at exactly these ports. Throws NotListening if that is impossible.
   */
  async listen(wanted: ProxyPorts, bind: Bind = bindBySystem, open: Public = {}): Promise<ProxyPorts> {
    this.#open = open;
    await this.#claim(bind);
    // Loaded only by a service that needs it, because it takes a tenth of a second.
    const { Web } = await import("./web.ts");
    const web = new Web({
      targets: this.#targets,
      traffic: this.traffic,
      ports: () => this.#ports,
      answerOf: this.#answerOf,
      arrivalOf: (socket) => this.#addresses?.arrivalOf(socket),
      now: () => this.#context.clock.now(),
      mostKept: this.#clients.limits.most,
      own: this.#ownAnswers(),
      trusted: this.#trusted,
    });
    this.#web = web;
    const { checkMs, handshakeMs: handshakeTimeout } = this.#clients.limits;
    // An upload takes as long as it takes.
    const options = { requestTimeout: 0, connectionsCheckingInterval: checkMs, shouldUpgradeCallback: isWebSocket };
    const handle = (scheme: Scheme) =>
      inOrder((request, response) => void this.#guard(response, web.request(request, response, scheme)));
    const http = createHttp(options, handle("http"));
    const https = createHttps(
      {
        ...(await this.#certificateFor("localhost")),
        ...options,
        handshakeTimeout,
        SNICallback: this.#chooserFor(),
      },
      handle("https"),
    );
    https.prependListener("secureConnection", (socket) => this.#clients.secured(socket));
    https.on("secureConnection", (socket) => this.#requireVersion(socket));
    const hasHeaders = open.hasProxyProtocol && this.#trusted;
    const admission = hasHeaders ? new Admission(hasHeaders, handshakeTimeout) : undefined;
    this.#admission = admission;
    for (const [server, scheme] of [
      [http, "http"],
      [https, "https"],
    ] as const) {
      server.on("upgrade", (request, socket, head) => {
        // Versions of Node.js before 22.21 and 24.9 do not ask whether to switch.
        if (!isWebSocket(request)) return refuse(socket as Socket, "400 Bad Request");
        void this.#guard(socket, web.upgrade(request, socket as Socket, head, scheme));
      });
      // No header is left out, however many there are: one of them could say something else about the request.
      server.maxHeadersCount = 0;
      server.on("connect", (_, socket) => refuse(socket as Socket, "405 Method Not Allowed", "Allow: GET\r\n"));
      this.#clients.watch(server);
      this.#servers.push(server);
      const { challenges } = this.#context.issuer;
      const front = scheme === "https" && challenges ? withProofs(https, challenges, handshakeTimeout) : server;
      this.#draining.watch(server);
      front.prependListener("connection", (socket) => {
        this.#draining.take(socket);
        this.#clients.take(socket);
      });
      admission?.watch(server);
      const entrance = new Entrance((socket) => this.#enter(socket, front));
      this.#entrances.push(entrance);
      // A server that does not listen itself does not watch the times of its requests.
      server.emit("listening");
      this.#ports = { ...this.#ports, [scheme]: await this.#openPorts(entrance, scheme, wanted[scheme]) };
    }
    this.#addresses = new Addresses({
      context: this.#context,
      targets: this.#targets,
      bind,
      clients: this.#clients,
      budget: this.#budget,
      ports: this.#ports,
      servers: { http, https },
      covers: (port) => this.#entrances.some((one) => one.isEverywhereAt(port)),
      certificateFor: (name) => this.#certificateFor(name),
      tlsOf: (name, of, app) => this.#tlsOf(name, of, app),
    });
    const apps = this.#context.store.all<{ id: string }>("SELECT id FROM apps WHERE deleting < 2");
    for (const { id } of apps) this.#sync(id);
    for (const entrance of this.#entrances) entrance.begin();
    this.#names.begin();
    return this.#ports;
  }

  /** Claims loopback addresses for Apps. */
  async #claim(bind: Bind): Promise<void> {
    const { store, dataId, log } = this.#context;
    if (this.#open.raw) return;
    this.#claims = new Claims(bind, log);
    const ips = store.all<{ ip: string }>("SELECT DISTINCT ip FROM ips WHERE ip LIKE '127.%'").map(({ ip }) => ip);
    this.#block = await this.#claims.claim(dataId, ips);
  }

  /** Opens the ports of a scheme, and returns the first of them. */
  async #openPorts(entrance: Entrance, scheme: Scheme, wanted: number): Promise<number> {
    const { addresses, sockets } = this.#open;
    const given = sockets?.[scheme] ?? [];
    if (given.length > 0) return entrance.openAll(given.map((fd) => ({ fd })));
    if (!addresses?.length) return entrance.open((server) => this.#kept.bind(scheme, server, host, wanted));
    const places: Place[] = placesOf(addresses).map((one) => ({ ...one, port: wanted }));
    return entrance.openAll(places);
  }

  /** What answers for the service itself, at its hostname. */
  #ownAnswers(): { readonly name: string; readonly service: OwnService } | undefined {
    const { hostname: name } = this.#context.publicNames;
    return name === undefined || !this.#own ? undefined : { name, service: this.#own };
  }

  /**
   * Accepts no more connections at its own ports, and resolves when the others have ended, or after that time. Each gets the answers to
   * its requests.
   */
  async drain(limitMs: number): Promise<void> {
    for (const entrance of this.#entrances) entrance.close();
    await this.#draining.begin(limitMs, () => this.#clients.size === 0);
  }

  /** These objects of the store have changed. */
  changed(touched: ReadonlySet<string>): void {
    if (this.#isClosed) return;
    this.#targets.changed();
    const isDue = this.#dirty.size > 0;
    for (const id of touched) {
      const machine = findMachine(this.#context, id);
      if (!machine && this.#names.changed(id)) continue;
      if (machine) this.#power.changed(id);
      this.#dirty.add(machine?.app ?? id);
    }
    if (!isDue && this.#dirty.size > 0) setImmediate(() => this.#syncAll());
  }

  /** A Machine has got its first request of another proxy, or its last one has ended. */
  loadedElsewhere(machine: string): void {
    if (!this.#isClosed) this.#power.loaded(machine);
  }

  /** Resolves once a Machine has no open request; undefined if it has none now. */
  drained(machine: string): Promise<void> | undefined {
    return this.#targets.drained(machine);
  }

  /** Keeps no connections to an endpoint that is no longer a Machine's. */
  forget(endpoint: string): void {
    this.#web?.forget(endpoint);
    this.#targets.forget(endpoint);
  }

  /** Where an App can be opened. */
  async addressesOf({ id, name }: Pick<AppRow, "id" | "name">): Promise<readonly Address[]> {
    const ports = [...this.#targets.portsOf(id).values()].sort((a, b) => a.port - b.port);
    const first = new Set(ports.filter((one, i) => ports.findIndex(({ kind }) => kind === one.kind) === i));
    const addresses = ports.map(async (one): Promise<Address[]> => {
      const { kind, port } = one;
      if (kind === "http" || kind === "https") {
        const { appsDomain } = this.#context.publicNames;
        if (appsDomain !== undefined && first.has(one))
          return [{ port, url: `${kind}://${name}.${appsDomain}${portPart(kind, this.#ports[kind])}` }];
        const at = first.has(one) ? "" : `${port}.`;
        return [{ port, url: `${kind}://${at}${name}.localhost:${this.#ports[kind]}` }];
      }
      const listener = await this.#raw.get(id)?.get(port)?.listener;
      return listener ? [{ port, url: `${kind}://${host}:${listener.port}` }] : [];
    });
    return [...(await Promise.all(addresses)).flat(), ...((await this.#addresses?.addressesOf(id)) ?? [])];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#power.close();
    this.#claims?.close();
    await this.#addresses?.close();
    for (const entrance of this.#entrances) entrance.close();
    for (const server of this.#servers) server.close();
    this.#names.close();
    this.#draining.close();
    this.#clients.close();
    for (const listeners of this.#raw.values())
      for (const { listener } of listeners.values()) await listener.then((one) => one.close()).catch(() => {});
    this.#web?.close();
  }

  /** Ends what a fault of the proxy has left open. */
  async #guard(open: { destroy(): unknown }, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      open.destroy();
      this.#context.log.error({ err: error }, "the proxy failed");
    }
  }

  /** Ends a connection whose version of TLS the service does not allow: Node negotiates it before the host name is known. */
  #requireVersion(socket: TLSSocket): void {
    const { servername } = socket as { readonly servername?: string | false };
    const app = hostOf(this.#context, servername || "")?.app;
    const ports = app === undefined ? [] : [...this.#targets.portsOf(app).values()];
    const port = ports.find(({ kind }) => kind === "https");
    if (port && !allowsVersion(port, socket)) socket.destroy();
  }

  #syncAll(): void {
    const apps = [...this.#dirty];
    this.#dirty.clear();
    if (!this.#isClosed) for (const app of apps) this.#sync(app);
  }

  /** Listens for the raw ports and the addresses that an App has, and no longer for those that it had. */
  #sync(app: string): void {
    this.#addresses?.sync(app);
    const listeners = this.#raw.get(app) ?? new Map<number, Raw>();
    const ports = this.#targets.portsOf(app);
    const isRaw = (port: PublicPort | undefined): port is PublicPort =>
      (port?.kind === "tcp" || port?.kind === "tls") && this.#isOpen(port);
    const ended = new Map<number, Promise<unknown>>();
    for (const [number, { listener, settings }] of listeners) {
      const port = ports.get(number);
      if (isRaw(port) && settingsOf(port) === settings) continue;
      listeners.delete(number);
      if (!isRaw(port)) this.#kept.forget(`${app} ${number}`);
      ended.set(
        number,
        listener.then((one) => one.close()).catch(() => {}),
      );
    }
    for (const port of ports.values()) {
      if (!isRaw(port) || listeners.has(port.port)) continue;
      const listener = this.#listenRaw(port, ended.get(port.port));
      listener.catch((error: unknown) => {
        listeners.delete(port.port);
        if (error instanceof NoPortLeft) return;
        this.#context.log.error({ err: error, port: port.port }, "the proxy cannot listen");
      });
      listeners.set(port.port, { settings: settingsOf(port), listener });
    }
    if (listeners.size > 0) this.#raw.set(app, listeners);
    else this.#raw.delete(app);
  }

  /** Listens for a raw port, after the listener before has ended. */
  async #listenRaw(port: PublicPort, before: Promise<unknown> | undefined): Promise<Listener> {
    await before;
    const { app, port: number, kind, options } = port;
    const tls = kind === "tls" ? await this.#tlsOf("localhost", options, app) : undefined;
    const place = this.#placeOf(port);
    const entrance = place && new Entrance((socket) => this.#enter(socket, server));
    let server: Server;
    const bind = (bound: Server): Promise<number> => {
      server = bound;
      if (tls) this.#admission?.watch(bound);
      return entrance
        ? entrance.openAll(placesOf(this.#open.addresses ?? []).map((one) => ({ ...one, port: place.at })))
        : this.#kept.bind(`${app} ${number}`, bound, host, number);
    };
    const listener = await accept(
      {
        ...{ app, bind, tls, challenges: this.#context.issuer.challenges },
        ...{ clients: this.#clients, budget: this.#budget, store: this.#context.store },
      },
      (socket) => void passOn(socket, app, number, this.#targets, this.#clients),
    );
    entrance?.begin();
    return {
      ...listener,
      close: () => {
        entrance?.close();
        return listener.close();
      },
    };
  }

  /** Where other computers reach a raw port. */
  #placeOf({ app, port }: PublicPort): RawPlace | undefined {
    const { raw } = this.#open;
    if (!raw) return undefined;
    const name = this.#context.store.get<{ name: string }>("SELECT name FROM apps WHERE id = ?", app)?.name;
    return raw.find((one) => one.app === name && one.port === port);
  }

  /** Whether it listens for a raw port. */
  #isOpen(port: PublicPort): boolean {
    return !this.#open.raw || this.#placeOf(port) !== undefined;
  }

  /** Passes a connection on to a server, without its header of the PROXY protocol. */
  #enter(socket: Socket, server: Server): void {
    const pass = (arrived: Socket): void => void server.emit("connection", arrived);
    if (this.#admission) this.#admission.admit(socket, pass);
    else pass(socket);
  }

  /** The options of TLS for a public port; `name` is for clients that name no host. */
  async #tlsOf(name: string, options: PublicPort["options"], app?: string): Promise<TlsOptions> {
    const certificate = await this.#certificateFor(name);
    return { ...certificate, SNICallback: this.#chooserFor(app), ...versionsOf(options) };
  }

  /** Chooses the certificate for a host name. What an App alone answers gets only those of its names. */
  #chooserFor(app?: string) {
    return callbackify(async (name: string) => {
      const isOthers = app !== undefined && hostOf(this.#context, name)?.app !== app;
      return this.#contextFor(isOthers ? "localhost" : name);
    });
  }

  async #certificateFor(name: string): Promise<Certificate> {
    const { chain, key } = await this.#find(name);
    return { cert: chain, key: key() };
  }

  /**
   * The certificate for a host name: the one of a hostname, or one of the local authority for `APP.localhost`. A name without one
   * gets that of `localhost`, which its clients refuse.
   */
  async #find(name: string): Promise<Omit<ServedCertificate, "app">> {
    const own = await this.#names.certificateFor(name);
    if (own) return own;
    const served = servedCertificate(this.#context, name);
    if (served) return served;
    const app = /\.localhost\.?$/i.test(name) ? hostOf(this.#context, name) : undefined;
    const names: [string, ...string[]] = app ? [`${app.name}.localhost`, `*.${app.name}.localhost`] : ["localhost"];
    const { chain, key } = await this.#authority.certificateFor(names);
    return { chain, key: () => key };
  }

  async #contextFor(name: string): Promise<SecureContext> {
    const { chain, key } = await this.#find(name);
    const known = this.#served.get(chain);
    if (known) return known;
    const context = createSecureContext({ cert: chain, key: key() });
    this.#served.set(chain, context);
    return context;
  }
}

/** A listener for a raw port, and the settings that it was created with. */
interface Raw {
  readonly settings: string;
  readonly listener: Promise<Listener>;
}

const settingsOf = ({ options }: PublicPort): string =>
  JSON.stringify([options.handlers ?? [], options.tls_options?.versions ?? []]);

/**
 * The addresses to listen at: those of other computers, and the one of this computer unless they contain it. One for all addresses of
 * IPv6 is also one for those of IPv4, unless these have one too.
 */
function placesOf(addresses: readonly string[]): { readonly host: string; readonly ipv6Only: boolean }[] {
  const isAll = addresses.some((one) => one === "0.0.0.0" || one === "::" || one === host);
  const ipv6Only = addresses.includes("0.0.0.0");
  return [...new Set([...addresses, ...(isAll ? [] : [host])])].map((one) => ({ host: one, ipv6Only }));
}

/** Refuses what would take the connection over, and ends it. */
function refuse(socket: Socket, status: string, headers = ""): void {
  socket.on("error", () => socket.destroy());
  refuseWith(socket, status, headers);
}
