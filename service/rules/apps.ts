// Apps (docs/interface.md#apps).
import type { contract } from "../../api/index.ts";
import { parseDuration } from "../../api/schema.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, OrgRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { cnameOf } from "../lifecycle/hostnames.ts";
import { addToken, longestExpiryMs, isFor, isForAll, tokensOfApp, trustOfToken } from "../store/tokens.ts";
import { count } from "./counts.ts";
import { appOf, openAppOf, orgOf, orgOfNewApp, callerOrg } from "./find.ts";
import { pageOf } from "./pages.ts";
import type { Rules } from "./rule.ts";
import { requireRole } from "./roles.ts";

/** Tokens of an App that have not expired. */
const mostTokens = 10_000;

function shown(context: Context, app: AppRow, org: OrgRow) {
  const machine_count = count(
    context,
    "SELECT count(*) AS n FROM machines WHERE app = ? AND destroyed_at IS NULL",
    app.id,
  );
  return {
    id: app.id,
    internal_numeric_id: app.number,
    name: app.name,
    // ASSUMED: an App is `pending` while it has no Machine, else `deployed`.
    status: machine_count === 0 ? "pending" : "deployed",
    network: app.network,
    machine_count,
    volume_count: count(
      context,
      "SELECT count(*) AS n FROM volumes WHERE app = ? AND state NOT IN ('scheduling_destroy', 'pending_destroy')",
      app.id,
    ),
    organization: { name: org.name, slug: org.slug, internal_numeric_id: org.id },
    // ASSUMED: the CNAME target of an App is what its hostnames' CNAME records must have as their value.
    cname_target: cnameOf(app.name),
    ...(app.role === null ? {} : { app_role: app.role }),
    ...urlsOf(context, app),
  };
}

/** Where the proxy serves an App, whether it has such services or not: the addresses never change. */
function urlsOf({ proxyPorts, publicNames }: Context, { name }: AppRow) {
  if (!proxyPorts || proxyPorts.http === 0) return {};
  const { http, https } = proxyPorts;
  const { appsDomain } = publicNames;
  if (appsDomain !== undefined) {
    const host = `${name}.${appsDomain}`;
    return {
      http_url: `http://${host}${http === 80 ? "" : `:${http}`}`,
      https_url: `https://${host}${https === 443 ? "" : `:${https}`}`,
    };
  }
  return { http_url: `http://${name}.localhost:${http}`, https_url: `https://${name}.localhost:${https}` };
}

/** The answer to a create: the App, and its time. */
const created = (context: Context, app: AppRow, org: OrgRow) => ({
  ...shown(context, app, org),
  created_at: app.created_at,
});

/** The rules of the App operations. */
export const apps: Rules<typeof contract.apps> = {
  list({ context, caller, query }) {
    const org = orgOf({ context, caller }, query.org_slug);
    const { role, limit } = { role: query.app_role ?? null, limit: query.limit ?? 5000 };
    const matching = "FROM apps WHERE org = ?1 AND deleting < 2 AND (?2 IS NULL OR role = ?2)";
    // ASSUMED: `total_apps` counts the Apps that pass the filter, on all pages.
    const total_apps = count(context, `SELECT count(*) AS n ${matching}`, org.id, role);
    const found = context.store.all<AppRow>(`SELECT * ${matching} ORDER BY number`, org.id, role);
    const { page, next } = pageOf(found, { limit, cursor: query.cursor }, ({ number }) => [number, ""]);
    return {
      total_apps,
      apps: page.map((app) => shown(context, app, org)),
      ...(next === undefined ? {} : { next_cursor: next }),
    };
  },

  create({ context, caller, body }) {
    if (body.org_slug === undefined || body.org_slug === "")
      throw refuse(400, "authorization: request doesn't contain org_slug");
    const org = orgOfNewApp({ context, caller }, body.org_slug, body.network ?? "default");
    const name = body.name ?? body.app_name;
    const key = body.idempotency_key ?? null;
    const first =
      key === null
        ? undefined
        : context.store.get<AppRow>("SELECT * FROM apps WHERE org = ? AND idempotency_key = ?", org.id, key);
    if (first && !isFor(caller, first)) throw refuse(403, "unauthorized");
    if (first && (name === undefined || name === first.name)) return created(context, first, org);
    // ASSUMED: an idempotency key that was used with another name is 422.
    if (first) throw refuse(422, `idempotency_key was used for the app ${JSON.stringify(first.name)}`);
    // A name is required (docs/interface.md#apps), but not with the key of an existing App. ASSUMED: an
    // empty name of an App is 400 like a missing one, because many clients send an empty one instead.
    if (name === undefined) throw refuse(400, "invalid name, got nothing, must be of type string");
    if (context.store.get("SELECT 1 FROM apps WHERE name = ?", name)) {
      throw refuse(422, "Validation failed: Name has already been taken", "name_taken");
    }
    const id = context.ids.app();
    context.store.insert("apps", {
      id,
      org: org.id,
      name,
      role: body.app_role_id ?? null,
      network: body.network ?? "default",
      idempotency_key: key,
      created_at: context.clock.now(),
    });
    context.store.touch(id);
    return created(context, appOf({ context, caller, params: { app_name: name } }), org);
  },

  get(input) {
    const app = appOf(input);
    return shown(input.context, app, callerOrg(input));
  },

  // ASSUMED: deleting an App deletes all its parts, with or without `force`, including running Machines
  // (docs/interface.md#apps).
  delete(input) {
    const { context, query } = input;
    const app = appOf(input, "Could not find App");
    if (app.deleting === 0) {
      context.store.update("apps", "id", app.id, { deleting: 1, idempotency_key: null });
      touch(context, app.id);
    }
    if (!context.timers.pending(app.id, "app.remove"))
      context.timers.after(query.force ? 0 : context.delays.app, "app.remove", app.id);
  },

  createDeployToken(input) {
    const { context, body, caller, note } = input;
    const app = openAppOf(input);
    // ASSUMED: a deploy token cannot create others, because they would outlive its revocation.
    requireRole(caller, "own");
    if (!isForAll(caller)) throw refuse(403, "unauthorized");
    const lasts = (parseDuration(body.expiry ?? "175200h") ?? 0) / 1e6;
    if (lasts <= 0 || lasts > longestExpiryMs)
      throw refuse(400, `invalid expiry, got ${JSON.stringify(body.expiry?.slice(0, 40))}, must be at most 876000h`);
    const now = context.clock.now();
    // ASSUMED: an App has at most 10,000 tokens that have not expired: one a day for as long as they last by default, and more.
    if (tokensOfApp(context.store, app.id, now) >= mostTokens)
      throw refuse(422, `Validation failed: an app has at most ${mostTokens} deploy tokens; revoke some`);
    const token = context.ids.accessToken();
    // ASSUMED: no deploy token outlives the token that created it; none lasts longer than a hundred years.
    const expiresAt = Math.min(now + lasts, caller.expiresAt ?? Number.POSITIVE_INFINITY);
    // What a trust has given ends with it, and so does this.
    const trust = trustOfToken(context.store, caller.id);
    const id = addToken(context.store, token, { slug: caller.slug, apps: [app.id], trust, expiresAt }, now);
    note(`token ${id}`);
    return { token };
  },
};
