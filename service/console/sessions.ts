// Sessions of the console. The browser has a signed cookie instead of a token, and a key that only pages of the console's origin can
// read: browsers send the cookie to every port of the host, and the programs of Machines are behind some of them. The service keeps
// no list of sessions, so they outlive its restart. Each request looks the token up again, so a session ends with its token.
import { isSame } from "../crypto/isSame.ts";
import type { FoundSession, SessionFinder } from "../http/authenticate.ts";
import type { RandomBytes } from "../ids.ts";
import { ownCommand } from "../ownCommand.ts";
import { refuse } from "../refusal.ts";
import { proxyRole } from "../store/roles.ts";
import type { Tokens } from "../store/tokens.ts";
import type { Vault } from "../store/vault.ts";
import type { Clock } from "../time/clock.ts";
import { Codes, makeCode } from "./codes.ts";

/** What the console may do: nothing, only read, or also operate Machines. */
export const consoleModes = ["off", "read", "write"] as const;

/** What the console may do. */
export type ConsoleMode = (typeof consoleModes)[number];

/** The secret that opens a session. */
export type Credential = { readonly code: string } | { readonly token: string };

// ASSUMED: a session of the console lasts for 12 hours, a working day.
const lifetimeMs = 12 * 3600_000;
/** A person's browser opens its session as soon as it is back from the provider. */
const codeMs = 60_000;
const mostCodes = 1000;
/** Cookies of the session's name that are tried. */
const mostCookies = 10;

/** Dependencies of the sessions. */
export interface SessionOptions {
  readonly vault: Vault;
  readonly tokens: Tokens;
  /** The clock that commands and browsers share; that of the service may have been moved. */
  readonly clock: Clock;
  /** The time by which tokens expire, in milliseconds since 1970. */
  readonly now: () => number;
  readonly random: RandomBytes;
  /** What the name of the cookie depends on: browsers share cookies between the ports of a host. */
  readonly cookie: string;
  /** Folder of the data; undefined in memory. */
  readonly folder: string | undefined;
  /** Identifies this run of the service. */
  readonly run: string;
  readonly mode: Exclude<ConsoleMode, "off">;
  /** The first token of organization `personal` now, whose rights a code gives. */
  readonly firstToken: () => string;
}

/** A new session. */
export interface OpenedSession {
  /** Its cookie, as a header sets it. */
  readonly cookie: string;
  /** What its pages send with every request. */
  readonly pageKey: string;
}

/** Opens sessions and finds them by their cookies and keys. */
export class Sessions implements SessionFinder {
  readonly #options: SessionOptions;
  readonly #codes: Codes;
  readonly #names = new Map<boolean, string>();
  /** Codes of people who have signed in, with the id of their token, oldest first. */
  readonly #signedIn = new Map<string, { readonly token: string; readonly until: number }>();

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#codes = new Codes(options.vault, options.run);
  }

  /**
   * Name of the cookie. Browsers share cookies between the ports of a host, so each service has its own. They let only
   * HTTPS pages of this very host set one whose name begins with `__Host-`. A service may be reached by both.
   */
  #cookie(isSecure: boolean): string {
    const known = this.#names.get(isSecure);
    if (known !== undefined) return known;
    const { vault, cookie } = this.#options;
    const prefix = isSecure ? "__Host-" : "";
    const name = `${prefix}machines_console_${vault.digest("console cookie name", cookie).slice(0, 8)}`;
    this.#names.set(isSecure, name);
    return name;
  }

  /** A one-time code for this run of the service. */
  code(): string {
    const { vault, run, random, clock } = this.#options;
    return makeCode(vault, run, random, clock.now());
  }

  /** A one-time code for a session with the rights of a token, by its id. Valid for a minute. */
  codeFor(token: string): string {
    const { random, clock } = this.#options;
    const code = Buffer.from(random(24)).toString("base64url");
    const [oldest] = this.#signedIn.keys();
    if (this.#signedIn.size >= mostCodes && oldest !== undefined) this.#signedIn.delete(oldest);
    this.#signedIn.set(code, { token, until: clock.now() + codeMs });
    return code;
  }

  /** The id of the token of a code from {@link codeFor}, once. */
  #takeSignedIn(code: string): string | undefined {
    const found = this.#signedIn.get(code);
    this.#signedIn.delete(code);
    return found && found.until > this.#options.clock.now() ? found.token : undefined;
  }

  /** Opens a session of a browser that came by HTTPS or not. Refuses a code or a token that is not valid. */
  open(credential: Credential, isSecure: boolean): OpenedSession {
    const { tokens, clock, now, firstToken, folder, random } = this.#options;
    const person = "code" in credential ? this.#takeSignedIn(credential.code) : undefined;
    const isOperator = "code" in credential && person === undefined;
    if (isOperator && !this.#codes.take(credential.code, clock.now())) {
      const command = folder === undefined ? "machines-service console" : ownCommand("console", folder);
      const why = "the code is wrong, was used, has expired, or is from before a restart of the service";
      throw refuse(401, `${why}; get another with \`${command}\``);
    }
    const bearer =
      "token" in credential
        ? tokens.find(credential.token, now())
        : person === undefined
          ? tokens.find(firstToken(), now())
          : tokens.findById(person, now());
    if (!bearer && isOperator)
      throw refuse(401, "the first token of organization personal was revoked; restart the service to get another");
    if (!bearer) throw refuse(401, "the token is wrong, was revoked, or has expired");
    if (bearer.role === proxyRole) throw refuse(403, "a token of the role proxy is only for a proxy");
    // Two sessions never share a key.
    const nonce = Buffer.from(random(8)).toString("hex");
    const claims = [bearer.id, isOperator ? "operator" : "user", String(clock.now() + lifetimeMs), nonce];
    return {
      cookie: this.#header(
        [...claims, this.#sign("console session", claims, isSecure)].join("."),
        lifetimeMs / 1000,
        isSecure,
      ),
      pageKey: this.#sign("console page key", claims, isSecure),
    };
  }

  /** The header that removes the cookie. */
  end(isSecure: boolean): string {
    return this.#header("", 0, isSecure);
  }

  /** The session of a request's cookies and page key, unless it or its token has expired or was revoked. */
  find(cookies: string, pageKey: string, isSecure: boolean): FoundSession | undefined {
    const name = `${this.#cookie(isSecure)}=`;
    // Pages at other ports of the host can set a cookie with the same name, and browsers may send it first.
    const values = cookies.split(/; */).filter((one) => one.startsWith(name));
    for (const value of values.slice(0, mostCookies)) {
      const found = this.#sessionOf(value.slice(name.length), pageKey, isSecure);
      if (found) return found;
    }
    return undefined;
  }

  #sessionOf(cookie: string, pageKey: string, isSecure: boolean): FoundSession | undefined {
    const { tokens, clock, now, mode } = this.#options;
    const [id = "", role = "", expiry = "", nonce = "", signature = ""] = cookie.split(".");
    const claims = [id, role, expiry, nonce];
    if (!isSame(signature, this.#sign("console session", claims, isSecure))) return undefined;
    if (!isSame(pageKey, this.#sign("console page key", claims, isSecure))) return undefined;
    const expiresAt = Number(expiry);
    const left = expiresAt - clock.now();
    // One that was opened while the clock was ahead is not valid for longer.
    const token = left > 0 && left <= lifetimeMs ? tokens.findById(id, now()) : undefined;
    if (!token || token.role === proxyRole) return undefined;
    return {
      bearer: { ...token, role: mode === "read" ? "read" : token.role },
      session: { isOperator: role === "operator", tokenRole: token.role, expiresAt },
    };
  }

  #sign(what: "console session" | "console page key", claims: readonly string[], isSecure: boolean): string {
    return this.#options.vault.digest(what, [this.#cookie(isSecure), ...claims].join("\0"));
  }

  #header(value: string, maxAge: number, isSecure: boolean): string {
    const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
    return `${this.#cookie(isSecure)}=${value}; ${attributes}`;
  }
}
