// An OpenID Connect provider at which people sign in: the library oidc-provider, with its forms for development.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { vi } from "vitest";
import { afterThisTest } from "./leftovers.ts";

/** What a person is called, and the groups that it is in. */
export interface Person {
  readonly email?: string;
  readonly groups?: readonly string[];
}

/** A running provider. */
export interface Provider {
  readonly url: string;
  /** By the login. */
  readonly people: Record<string, Person>;
  readonly close: () => Promise<void>;
}

/** Starts a provider that knows one client, which comes back to an address. It ends with the test. */
export async function startProvider(redirect: string): Promise<Provider> {
  const { default: Oidc } = await import("oidc-provider");
  let handle = (_: IncomingMessage, response: ServerResponse): unknown => response.end();
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const people: Record<string, Person> = {};
  // It warns of what is only for development, which this is.
  const quiet = (["warn", "info"] as const).map((name) => vi.spyOn(console, name).mockImplementation(() => {}));
  afterThisTest(() => quiet.forEach((spy) => spy.mockRestore()));
  const provider = new Oidc(url, {
    clients: [{ client_id: "machines", client_secret: "of-the-client", redirect_uris: [redirect] }],
    claims: { openid: ["sub"], email: ["email"], profile: ["groups"] },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, ...people[sub], groups: [...(people[sub]?.groups ?? [])] }),
    }),
    cookies: { keys: ["of-a-test"] },
  });
  handle = provider.callback();
  const close = (): Promise<void> =>
    new Promise((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
  afterThisTest(close);
  return { url, people, close };
}

/** A browser without pages: it keeps cookies, and follows redirects and the provider's forms. */
export class FormBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** The headers of a request to an address. */
  cookies(url: string): string {
    return [...(this.#cookies.get(new URL(url).host) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  /** Sends one request. */
  async request(url: string, form?: Readonly<Record<string, string>>): Promise<Response> {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: this.cookies(url), accept: "text/html", "sec-fetch-site": "cross-site" },
      ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
    });
    const { host } = new URL(url);
    const own = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, own);
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") own.delete(name);
      else own.set(name, value);
    }
    return response;
  }

  /** Follows redirects from an address, fills the forms in, and returns the first address that begins with `until`. */
  async signIn(url: string, login: string, until: string): Promise<string> {
    let at = url;
    let form: Readonly<Record<string, string>> | undefined;
    for (let steps = 0; steps < 20; steps++) {
      const response = await this.request(at, form);
      form = undefined;
      const location = response.headers.get("location");
      if (location !== null) {
        at = new URL(location, at).href;
        if (at.startsWith(until)) return at;
        continue;
      }
      const page = await response.text();
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1];
      if (prompt === undefined) throw new Error(`${at} is no form: ${response.status} ${page.slice(0, 300)}`);
      at = new URL(/action="([^"]+)"/.exec(page)?.[1] ?? at, at).href;
      form = { prompt, login, password: "x" };
    }
    throw new Error(`${at} leads nowhere`);
  }
}
