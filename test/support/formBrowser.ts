// A browser without pages, for sign-ins with a provider of OpenID Connect.

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
