// Addresses of Apps that are addresses of this computer: listens at each for the public ports that exist, and for no others.
import type { Server as WebServer } from "node:http";
import type { Server, Socket } from "node:net";
import type { TLSSocket, TlsOptions } from "node:tls";
import type { ProxyContext } from "./context.ts";
import { blockOf } from "../runtime/loopback.ts";
import type { AppRow, IpRow } from "../store/rows.ts";
import type { Bind } from "../runtime/bind.ts";
import { plainAddress } from "../runtime/networks.ts";
import { codeOf } from "../runtime/errorCode.ts";
import { portPart, type Host, type Kind, type PublicPort } from "./routes.ts";
import type { Targets } from "./targets.ts";
import type { Clients } from "./clients.ts";
import { NoPortLeft, type PortBudget } from "./portBudget.ts";
import { accept, allowsVersion, passOn, type Certificate, type Listener } from "./tcp.ts";
import type { Arrival, Scheme } from "./web.ts";

/** Where an App can be opened. */
export interface Address {
  /** The public port in the configuration. */
  readonly port: number;
  readonly url: string;
  /** The address of the App, if the URL has it. */
  readonly ip?: string;
}

/** The proxy as its addresses. */
export interface AddressHost {
  readonly context: ProxyContext;
  readonly targets: Targets;
  readonly bind: Bind;
  readonly clients: Clients;
  readonly budget: PortBudget;
  /** The ports of the proxy itself. */
  readonly ports: Readonly<Record<Scheme, number>>;
  /** Whether the proxy itself listens at a port of all addresses, so that no one else can. */
  covers(port: number): boolean;
  /** Answer the connections that are emitted on them. */
  readonly servers: Readonly<Record<Scheme, WebServer>>;
  /** The certificate for clients that name no host. */
  certificateFor(name: string): Promise<Certificate>;
  /** The options of TLS; with an App, only its names have certificates. */
  tlsOf(name: string, options: PublicPort["options"], app?: string): Promise<TlsOptions>;
}

type AppName = Pick<AppRow, "id" | "name">;

/** A public port of an App at one of its addresses. */
interface Wanted {
  readonly app: AppName;
  readonly ip: string;
  /** The port of this computer. */
  readonly at: number;
  /** Whether it replaces public ports that the service may not bind. */
  readonly isSubstitute: boolean;
  readonly isShared: boolean;
  readonly port: PublicPort;
  /** The host name whose certificate a client gets that names none. */
  readonly name: string;
  /** Changes with the certificate of that name. */
  readonly version: string;
}

/** What an App wants. */
interface Wishes {
  readonly shared: string | undefined;
  readonly wanted: ReadonlyMap<string, Wanted>;
}

/** A port at an address, and the settings that it was opened with. */
interface Slot {
  readonly settings: string;
  version: string;
  hasFailed: boolean;
  listener: Promise<Listener | undefined>;
}

const noHostname = { name: "localhost", version: "" };
const noWishes: Wishes = { shared: undefined, wanted: new Map() };
const isWeb = (kind: Kind): kind is Scheme => kind === "http" || kind === "https";
const isSecure = (kind: Kind): boolean => kind === "https" || kind === "tls";
/** Listens at the addresses of Apps. */
export class Addresses {
  readonly #host: AddressHost;
  readonly #wishes = new Map<string, Wishes>();
  /** By address and port, what each App wants there. */
  readonly #byKey = new Map<string, Map<string, Wanted>>();
  readonly #slots = new Map<string, Slot>();
  /** Slots that are being closed. */
  readonly #closing = new Map<string, Promise<void>>();
  readonly #arrivals = new WeakMap<Socket, Arrival>();
  /** Connections to a shared address, and the Apps that they were last used for. */
  readonly #served = new Map<Socket, string>();
  /** Ports that the system does not allow this process to bind. */
  readonly #refused = new Set<number>();
  /** Failures that are in the log. */
  readonly #reported = new Set<string>();
  #isClosed = false;

  constructor(host: AddressHost) {
    this.#host = host;
  }

  /** How a connection came to an address of Apps; undefined for a connection to the proxy itself. */
  arrivalOf(socket: Socket): Arrival | undefined {
    return this.#arrivals.get(socket) ?? this.#coveredArrival(socket);
  }

  /** The same for a connection that the proxy itself has accepted, because it listens at all addresses. */
  #coveredArrival(socket: Socket): Arrival | undefined {
    const { localAddress = "", localPort = 0 } = socket;
    const ip = plainAddress(localAddress);
    if (blockOf(ip) === undefined || !this.#host.covers(localPort)) return undefined;
    // It is looked up each time, because the address may be released.
    const [wanted] = this.#byKey.get(`${ip}:${localPort}`)?.values() ?? [];
    if (!wanted) return undefined;
    return this.#arrivalAt(wanted, socket);
  }

  /** Listens for what an App has, and no longer for what it had. */
  sync(app: string): void {
    if (this.#isClosed) return;
    const before = this.#wishes.get(app) ?? noWishes;
    const now = this.#wishesOf(app);
    if (before.wanted.size === 0 && now.wanted.size === 0) return;
    if (now.wanted.size > 0) this.#wishes.set(app, now);
    else this.#wishes.delete(app);
    for (const key of before.wanted.keys()) if (!now.wanted.has(key)) this.#byKey.get(key)?.delete(app);
    for (const [key, wanted] of now.wanted) {
      const all = this.#byKey.get(key) ?? new Map<string, Wanted>();
      this.#byKey.set(key, all.set(app, wanted));
    }
    for (const key of new Set([...before.wanted.keys(), ...now.wanted.keys()])) this.#settle(key);
    if (before.shared === now.shared) return;
    for (const [socket, served] of this.#served) if (served === app) socket.destroy();
  }

  /** Where an App can be opened by its own addresses. */
  async addressesOf(app: string): Promise<readonly Address[]> {
    const own = [...(this.#wishes.get(app) ?? noWishes).wanted].filter(([, { isShared }]) => !isShared);
    const found = own.map(async ([key, { ip, at, port }]): Promise<Address[]> => {
      const listener = await this.#slots.get(key)?.listener;
      return listener ? [{ port: port.port, url: `${port.kind}://${ip}${portPart(port.kind, at)}`, ip }] : [];
    });
    return (await Promise.all(found)).flat();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const slot of this.#slots.values()) await closeSlot(slot);
    await Promise.all(this.#closing.values());
  }

  #wishesOf(app: string): Wishes {
    const { context, targets, ports: own } = this.#host;
    const rows = context.store
      .all<Pick<IpRow, "ip" | "type"> & { readonly name: string }>(
        `SELECT i.ip, i.type, a.name FROM ips i JOIN apps a ON a.id = i.app
          WHERE i.app = ? AND i.type IN ('v4', 'shared_v4') AND a.deleting < 2 ORDER BY i.number`,
        app,
      )
      .filter(({ ip }) => blockOf(ip) !== undefined);
    if (rows.length === 0) return noWishes;
    const ports = [...targets.portsOf(app).values()].sort((a, b) => a.port - b.port);
    const hostname = ports.some(({ kind }) => isSecure(kind)) ? this.#hostnameOf(app) : noHostname;
    const wanted = new Map<string, Wanted>();
    for (const { ip, type, name } of rows) {
      const isShared = type === "shared_v4";
      const add = (port: PublicPort, at: number, isSubstitute: boolean): void => {
        const key = `${ip}:${at}`;
        const what = { app: { id: app, name }, ip, at, isSubstitute, isShared, port };
        if (!wanted.has(key)) wanted.set(key, { ...what, ...(isShared ? noHostname : hostname) });
      };
      // Nothing says for which App a raw connection to a shared address is.
      const offered = ports.filter(({ kind }) => !isShared || kind !== "tcp");
      for (const port of offered) if (!this.#refused.has(port.port)) add(port, port.port, false);
      // ASSUMED: where the service may not bind the ports of HTTP and HTTPS, it uses the numbers of the proxy's own.
      for (const port of offered) if (this.#refused.has(port.port) && isWeb(port.kind)) add(port, own[port.kind], true);
    }
    return { shared: rows.find(({ type }) => type === "shared_v4")?.ip, wanted };
  }

  // ASSUMED: a client that names no host gets the certificate of the first hostname of the App.
  #hostnameOf(app: string): Pick<Wanted, "name" | "version"> {
    const sql = `SELECT hostname AS name, json_array(hostname, custom_status, custom_created_at, acme_status, issued_at) AS version
      FROM hostnames WHERE app = ? AND owned_at IS NOT NULL ORDER BY hostname LIKE '*%', hostname LIMIT 1`;
    return this.#host.context.store.get<Pick<Wanted, "name" | "version">>(sql, app) ?? noHostname;
  }

  #settle(key: string): void {
    const wanted = [...(this.#byKey.get(key)?.values() ?? [])];
    const [first] = wanted;
    const slot = this.#slots.get(key);
    if (!first) {
      this.#byKey.delete(key);
      this.#reported.delete(key);
      if (slot) void this.#end(key, slot);
      return;
    }
    // ASSUMED: Apps may disagree about TLS at a port of their shared address; plain HTTP comes first.
    const best = wanted.find(({ port }) => port.kind === "http") ?? first;
    const settings = settingsOf(best);
    if (slot?.settings === settings && !slot.hasFailed) return this.#certify(slot, best);
    const ended = slot ? this.#end(key, slot) : this.#closing.get(key);
    this.#slots.set(key, this.#open(key, best, settings, ended));
  }

  #open(key: string, wanted: Wanted, settings: string, ended: Promise<void> | undefined): Slot {
    const slot: Slot = { settings, version: wanted.version, hasFailed: false, listener: Promise.resolve(undefined) };
    slot.listener = this.#listen(wanted, ended).then(
      (listener) => {
        this.#reported.delete(key);
        return listener;
      },
      (error: unknown) => {
        slot.hasFailed = true;
        this.#failed(key, wanted, error);
        return undefined;
      },
    );
    return slot;
  }

  async #listen(wanted: Wanted, ended: Promise<void> | undefined): Promise<Listener> {
    await ended;
    const { app, ip, at, port, name, isShared } = wanted;
    const tlsOf = (): Promise<TlsOptions> =>
      isShared ? this.#host.tlsOf(name, {}) : this.#host.tlsOf(name, port.options, app.id);
    const tls = isSecure(port.kind) ? await tlsOf() : undefined;
    // ASSUMED: where the proxy listens at all addresses, it answers at those of Apps, too: by HTTP and by HTTPS with a host name.
    if (this.#host.covers(at)) return { port: at, certify() {}, close: () => Promise.resolve() };
    const bind = (server: Server): Promise<number> => this.#host.bind(server, ip, at);
    const { context, clients, budget } = this.#host;
    const { challenges } = context.issuer;
    const shared = { app: wanted.app.id, clients, budget, store: context.store };
    return accept({ ...shared, bind, tls, challenges, allowHalfOpen: port.kind === "http" }, (socket) =>
      this.#arrived(wanted, socket),
    );
  }

  #certify(slot: Slot, { name, version }: Wanted): void {
    if (slot.version === version) return;
    slot.version = version;
    const log = (error: unknown): void =>
      this.#host.context.log.error({ err: error, name }, "a certificate is missing");
    Promise.all([slot.listener, this.#host.certificateFor(name)])
      .then(([listener, certificate]) => listener?.certify(certificate))
      .catch(log);
  }

  /** Closes a slot; the next one with this key waits for it. */
  #end(key: string, slot: Slot): Promise<void> {
    this.#slots.delete(key);
    const ended = closeSlot(slot).finally(() => {
      if (this.#closing.get(key) === ended) this.#closing.delete(key);
    });
    this.#closing.set(key, ended);
    return ended;
  }

  #failed(key: string, { ip, at }: Wanted, error: unknown): void {
    const { log } = this.#host.context;
    const code = codeOf(error);
    if (error instanceof NoPortLeft) return;
    if (code === "EACCES") {
      if (!this.#refused.has(at))
        log.warn(
          { port: at },
          "the service may not listen at this port, so HTTP and HTTPS of the addresses of Apps use the proxy's ports",
        );
      this.#refused.add(at);
      for (const app of [...(this.#byKey.get(key)?.keys() ?? [])]) this.sync(app);
    } else if (!this.#reported.has(key)) {
      this.#reported.add(key);
      log.warn({ ip, port: at, code }, "the service cannot listen at an address of an App; another process may do so");
    }
  }

  #arrived(wanted: Wanted, socket: Socket): void {
    const { targets, servers, clients } = this.#host;
    if (socket.destroyed) return;
    const { app, at, isShared, port } = wanted;
    const { servername } = socket as Partial<TLSSocket>;
    if (isShared && servername) {
      // The App decides what is inside of TLS.
      const found = this.#sharingHost(wanted, servername, socket);
      const meant = found && targets.portsOf(found.app).get(at);
      if (meant?.kind === "tls")
        return allowsVersion(meant, socket as TLSSocket)
          ? void passOn(socket, meant.app, at, targets, clients)
          : void socket.destroy();
    } else if (!isShared && !isWeb(port.kind)) return void passOn(socket, app.id, at, targets, clients);
    const scheme = isSecure(port.kind) ? "https" : "http";
    this.#arrivals.set(socket, this.#arrivalAt(wanted, socket));
    servers[scheme].emit(scheme === "https" ? "secureConnection" : "connection", socket);
  }

  #arrivalAt(wanted: Wanted, socket: Socket): Arrival {
    return {
      hostOf: (header) => (wanted.isShared ? this.#sharingHost(wanted, header, socket) : this.#ownHost(wanted, header)),
      portOf: (of, id) => this.#portOf(of, id),
    };
  }

  #ownHost({ app, at, isSubstitute }: Wanted, header: string): Host {
    if (!isSubstitute) return { app: app.id, name: app.name, port: at };
    const named = this.#host.targets.hostOf(header);
    return { app: app.id, name: app.name, port: named?.app === app.id ? named.port : undefined };
  }

  /** The App of a host name, if it has the shared address. */
  #sharingHost({ ip, at, isSubstitute }: Wanted, header: string, socket: Socket): Host | undefined {
    const found = this.#host.targets.hostOf(header);
    if (!found || this.#wishes.get(found.app)?.shared !== ip) return undefined;
    if (!socket.destroyed) {
      if (!this.#served.has(socket)) socket.once("close", () => this.#served.delete(socket));
      this.#served.set(socket, found.app);
    }
    const theirs = this.#byKey.get(`${ip}:${at}`)?.get(found.app);
    return { ...found, port: found.port ?? ((theirs?.isSubstitute ?? isSubstitute) ? undefined : at) };
  }

  /** The port at the addresses of an App for a scheme. */
  #portOf(scheme: Scheme, app: string): number | undefined {
    const numbers = [...this.#host.targets.portsOf(app).values()].flatMap(({ kind, port }) =>
      kind === scheme ? [port] : [],
    );
    if (numbers.length === 0) return undefined;
    const first = Math.min(...numbers);
    return this.#refused.has(first) ? this.#host.ports[scheme] : first;
  }
}

const closeSlot = async ({ listener }: Slot): Promise<void> => (await listener)?.close();

/** What cannot change without listening again. */
const settingsOf = ({ app, isShared, isSubstitute, port }: Wanted): string =>
  JSON.stringify(
    isShared ? [isSecure(port.kind)] : [app.id, isSubstitute, port.kind, port.options.tls_options?.versions ?? []],
  );
