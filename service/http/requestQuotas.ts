// How many requests per second organizations and Apps may send (docs/service.md#quotas).
import type { Context } from "../context.ts";
import type { Caller } from "../rules/rule.ts";
import { isFor } from "../store/tokens.ts";

/** A limit that a request counts for. */
export interface RequestQuota {
  /** Names its bucket. */
  readonly key: string;
  /** Whose it is, as an error says. */
  readonly holder: string;
  readonly perSecond: number;
  readonly burst: number;
}

interface OrgRow {
  readonly org: number;
  readonly slug: string;
  readonly most: number;
}

interface AppRow {
  readonly id: string;
  readonly org: number;
  readonly name: string;
  readonly network: string;
  readonly most: number;
}

// A command may set a quota in another process, so they are read again this often.
const rememberedMs = 1000;

// ASSUMED: after a pause, twice the requests of a second may come at once.
const quota = (key: string, holder: string, most: number): RequestQuota => ({
  ...{ key, holder, perSecond: most, burst: 2 * most },
});

const none: readonly RequestQuota[] = [];

/** The quotas of requests, read from the store at most once a second. */
export class RequestQuotas {
  readonly #context: Pick<Context, "store" | "clock">;
  #readAt: number | undefined;
  #isEmpty = true;
  #orgs = new Map<number, RequestQuota>();
  #apps = new Map<string, AppRow & { readonly quota: RequestQuota }>();

  constructor(context: Pick<Context, "store" | "clock">) {
    this.#context = context;
  }

  /**
   * The quotas that a request counts for, by the App that its path names. ASSUMED: every request of the interface with a valid token
   * counts, also one that is refused. It counts for the App only if its token is for that App.
   */
  of(caller: Pick<Caller, "org" | "apps" | "network">, name: unknown): readonly RequestQuota[] {
    this.#refresh();
    if (this.#isEmpty) return none;
    const ofOrg = this.#orgs.get(caller.org);
    const app = typeof name === "string" ? this.#apps.get(name) : undefined;
    const ofApp = app && app.org === caller.org && isFor(caller, app) ? app.quota : undefined;
    return [ofApp ?? [], ofOrg ?? []].flat();
  }

  #refresh(): void {
    const { store, clock } = this.#context;
    const now = clock.now();
    if (this.#readAt !== undefined && now >= this.#readAt && now - this.#readAt < rememberedMs) return;
    this.#readAt = now;
    const orgs = store.all<OrgRow>(
      "SELECT q.org, o.slug, q.most FROM org_quotas q JOIN orgs o ON o.id = q.org WHERE q.kind = 'requests'",
    );
    const apps = store.all<AppRow>(
      `SELECT a.id, a.org, a.name, a.network, q.most FROM app_quotas q JOIN apps a ON a.id = q.app
       WHERE q.kind = 'requests' AND a.deleting < 2`,
    );
    this.#isEmpty = orgs.length + apps.length === 0;
    this.#orgs = new Map(
      orgs.map(({ org, slug, most }) => [org, quota(`quota org ${org}`, `organization ${slug}`, most)]),
    );
    this.#apps = new Map(
      apps.map((app) => [app.name, { ...app, quota: quota(`quota app ${app.id}`, `app ${app.name}`, app.most) }]),
    );
  }
}
