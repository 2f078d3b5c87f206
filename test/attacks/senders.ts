// Everyone who may send a request to the service: each kind of token and session, and those that are no longer valid.
import { request as httpRequest } from "node:http";
import type { TokenRole } from "../../service/store/roles.ts";
import { addToken, revokeTokens, type Grant } from "../../service/store/tokens.ts";
import { sessionOf as cookieAndKey, signIn } from "../service/console/browser.ts";
import { withApp } from "../service/client.ts";
import type { Effect, Owner } from "./decisions.ts";
import type { Shop } from "./shop.ts";

type Headers = Readonly<Record<string, string>>;

/** One who sends requests. */
export interface Sender {
  /** The headers that show who sends it. */
  readonly headers: (shop: Shop) => Promise<Headers>;
  /** Whose objects it may use: those of `acme` are there for the tests. */
  readonly owns: readonly Owner[];
  readonly effects: readonly Effect[];
  /** The role of its token, if it is not that of the effects. */
  readonly role?: TokenRole;
  /** The status of what it may not use, if it is always the same. */
  readonly refusal?: 401 | 403;
  /** Whether it may use nothing but GET. */
  readonly onlyGets?: true;
  /** Whether the admin listener accepts it. */
  readonly isAdmin?: true;
  /** The canaries that it may see. */
  readonly sees: readonly string[];
}

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });

const minute = 60_000;
const day = 24 * 60 * minute;

/** A grant that names Apps. */
type Named = Partial<Grant> & { readonly app?: string | readonly string[] };

/** Adds a token, for Apps if their names are given. */
function grant({ service }: Shop, token: string, { app: name, ...more }: Named = {}): string {
  const { store, clock } = service.context;
  const names = name === undefined ? [] : [name].flat();
  const apps = names.map((one) => store.get<{ id: string }>("SELECT id FROM apps WHERE name = ?", one)?.id ?? "");
  return addToken(
    store,
    token,
    { slug: "acme", expiresAt: null, ...(apps.length === 0 ? {} : { apps }), ...more },
    clock.now(),
  );
}

/** Opens a session with a token, or with a code of this computer. */
async function session({ url, service }: Shop, token?: string): Promise<Headers> {
  const answer = await signIn(url, token === undefined ? { code: service.consoleCode() } : { token });
  if (answer.status !== 200) throw new Error(`sign-in was answered with ${answer.status} ${answer.text}`);
  return { ...cookieAndKey(answer), "sec-fetch-site": "same-origin" };
}

const all = { effects: ["read", "reveal", "operate", "change"] } as const;
const operates = { effects: ["read", "operate"] } as const;
const reads = { effects: ["read"] } as const;
const acme = { owns: ["holder", "app", "organization"], sees: ["shop", "other", "acme"] } as const;
const ofShop = { owns: ["holder", "app"], sees: ["shop"], role: "deploy" } as const;
const ofOther = { owns: ["holder"], sees: ["other"], role: "deploy" } as const;
const strangers = { owns: ["holder"], sees: ["theirs"] } as const;
const operator = { owns: ["holder", "operator"], sees: ["web"] } as const;
const nobody = { owns: [], effects: [], sees: [], refusal: 401 } as const;

/** A token of a grant. */
const token = (more: Named) => (shop: Shop) => {
  grant(shop, "a-token", more);
  return Promise.resolve(bearer("a-token"));
};

/** A session of such a token. */
const sessionOf = (more: Named) => (shop: Shop) => {
  grant(shop, "a-token", more);
  return session(shop, "a-token");
};

/** A token or a session of one that is no longer valid. */
const ended =
  (way: "expired" | "revoked" | "of a deleted App", as: "token" | "session") =>
  async (shop: Shop): Promise<Headers> => {
    const { clock, call } = shop;
    const expiresAt = way === "expired" ? clock.now() + minute : null;
    if (way === "of a deleted App") await call("POST", "/apps", { name: "gone", org_slug: "acme" });
    const id = grant(shop, "ended", { expiresAt, ...(way === "of a deleted App" ? { app: "gone" } : {}) });
    const headers = as === "token" ? bearer("ended") : await session(shop, "ended");
    // It was used before.
    await fetch(`${shop.url}/v1/tokens/current`, { headers: bearer("ended") });
    if (way === "revoked") revokeTokens(shop.service.context.store, id);
    if (way === "of a deleted App") await call("DELETE", "/apps/gone");
    clock.advance(minute);
    return headers;
  };

/** Everyone, by name. */
export const senders: Readonly<Record<string, Sender>> = {
  "a token of the organization": { headers: token({}), ...acme, ...all },
  "a token that expires later": {
    headers: (shop) => token({ expiresAt: shop.clock.now() + day })(shop),
    ...acme,
    ...all,
  },
  "a token that operates": { headers: token({ role: "operate" }), ...acme, ...all, role: "operate" },
  "a token that deploys": { headers: token({ role: "deploy" }), ...acme, ...all, role: "deploy" },
  "a token that owns an App": { headers: token({ app: "shop", role: "own" }), ...ofShop, ...all, role: "own" },
  "a token of several Apps": { headers: token({ app: ["shop", "other"] }), ...ofShop, sees: ["shop", "other"], ...all },
  "a token of a network": { headers: token({ network: "of-shop" }), ...ofShop, ...all },
  "a read-only token": { headers: token({ role: "read" }), ...acme, ...reads },
  "an App token": { headers: token({ app: "shop" }), ...ofShop, ...all },
  "a read-only App token": { headers: token({ app: "shop", role: "read" }), ...ofShop, ...reads },
  "an App token of another App": { headers: token({ app: "other" }), ...ofOther, ...all },
  "a token of another organization": { headers: token({ slug: "strangers" }), ...strangers, ...all },
  "the operator's token": { headers: (shop) => Promise.resolve(bearer(shop.token)), ...operator, ...all },
  "a read-only token of the operator": {
    headers: token({ slug: "personal", role: "read" }),
    ...operator,
    ...reads,
  },
  "a token of a proxy": {
    headers: token({ slug: "personal", role: "proxy" }),
    ...{ owns: ["proxy"], sees: [], role: "proxy", ...all },
  },
  "a token of a proxy in another organization": {
    headers: token({ role: "proxy" }),
    ...{ owns: [], sees: [], role: "proxy", ...all },
  },
  "an App token of a proxy": {
    headers: token({ slug: "personal", app: "web", role: "proxy" }),
    ...{ owns: [], sees: [], role: "proxy", ...all },
  },
  "an App token of the operator": {
    headers: token({ slug: "personal", app: "web" }),
    owns: ["holder"],
    sees: ["web"],
    role: "deploy",
    ...all,
  },
  "the operator's session": {
    headers: (shop) => session(shop),
    owns: ["holder", "operator", "operator's session"],
    sees: ["web"],
    ...operates,
  },
  "a session of the organization": { headers: sessionOf({}), ...acme, ...operates },
  "a session of a read-only token": { headers: sessionOf({ role: "read" }), ...acme, ...reads },
  "a session of an App token": { headers: sessionOf({ app: "shop" }), ...ofShop, ...operates },
  "a session of a token that owns an App": {
    headers: sessionOf({ app: "shop", role: "own" }),
    ...ofShop,
    ...operates,
    role: "own",
  },
  "a session of another App": { headers: sessionOf({ app: "other" }), ...ofOther, ...operates },
  "a session of another organization": { headers: sessionOf({ slug: "strangers" }), ...strangers, ...operates },
  "a session whose page does not show itself": {
    headers: async (shop) => {
      const { "sec-fetch-site": _site, ...headers } = await sessionOf({ role: "read" })(shop);
      return headers;
    },
    onlyGets: true,
    ...acme,
    ...reads,
  },
  "a session that another page uses": {
    headers: async (shop) => ({ ...(await session(shop)), "sec-fetch-site": "cross-site" }),
    ...nobody,
    refusal: 403,
  },
  "the cookie of a session without the key of its page": {
    headers: async (shop) => {
      const { "console-page-key": _key, ...headers } = await session(shop);
      return headers;
    },
    ...nobody,
  },
  "no token": { headers: () => Promise.resolve({}), ...nobody },
  "an unknown token": { headers: () => Promise.resolve(bearer("unknown")), ...nobody },
  "the token of the admin listener": {
    headers: ({ admin }) => Promise.resolve(bearer(admin.token)),
    isAdmin: true,
    ...nobody,
  },
  "the id of a token": { headers: (shop) => Promise.resolve(bearer(grant(shop, "a-token"))), ...nobody },
  "an expired token": { headers: ended("expired", "token"), ...nobody },
  "a revoked token": { headers: ended("revoked", "token"), ...nobody },
  "a token of a deleted App": { headers: ended("of a deleted App", "token"), ...nobody },
  "a session of an expired token": { headers: ended("expired", "session"), ...nobody },
  "a session of a revoked token": { headers: ended("revoked", "session"), ...nobody },
  "a session of a deleted App": { headers: ended("of a deleted App", "session"), ...nobody },
  "a session that has expired": {
    async headers(shop) {
      const headers = await sessionOf({})(shop);
      shop.clock.advance(day);
      return headers;
    },
    ...nobody,
  },
  "a session of another service": {
    async headers() {
      const elsewhere = await withApp();
      return cookieAndKey(await signIn(elsewhere.url, { token: elsewhere.token }));
    },
    ...nobody,
  },
};

/** Sends a request; of a stream of events it takes what comes first. */
export function send(
  url: string,
  method: string,
  path: string,
  headers: Headers,
  body?: unknown,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url + path, { method, headers }, (response) => {
      let text = "";
      const done = (): void => resolve({ status: response.statusCode ?? 0, text });
      const isStream = String(response.headers["content-type"]).startsWith("text/event-stream");
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (!isStream) return;
        done();
        sent.destroy();
      });
      response.once("error", reject).once("end", done);
    });
    sent.once("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}
