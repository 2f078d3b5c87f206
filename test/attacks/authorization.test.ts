// Authorization (docs/interface.md#authentication): every operation of the contract and every route of the service and of its
// admin listener, requested by everyone who may send a request. What each may do is decided in decisions.ts.
import { expect, test } from "vitest";
import { contract, type OperationWithBody } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { hasRole, type TokenRole } from "../../service/store/roles.ts";
import { requestExamples } from "../../service/openapi/examples.ts";
import { makeCertificate } from "../support/certificates.ts";
import { ofAdminRoutes, ofOperations, ofRoutes, ofValues, putsByName, roleOf, type Decision } from "./decisions.ts";
import { send, senders, type Sender } from "./senders.ts";
import { openShop, type Registered, type Shop } from "./shop.ts";

const operations = Object.values(contract).flatMap((group) => Object.values(group as Record<string, Operation>));

/** Bodies that fit the objects of the shop, or none; all others are the examples of the description. */
const bodiesFor = ({ backup }: Shop["params"]): Readonly<Record<string, unknown>> => ({
  ...requestExamples,
  ...({
    "apps.create": { name: "new", org_slug: "acme" },
    "machines.create": { config: { image: "nginx" } },
    "machines.update": { config: { image: "nginx", metadata: { canary: "canary-shop" } } },
    "machines.acquireLease": undefined,
    "machines.stop": undefined,
    "machines.setMemory": { limit_mb: 256 },
    "certificates.createAcme": { hostname: "new.example.com" },
    "certificates.createCustom": { hostname: "new.example.com", ...certificate },
    "volumes.extend": { size_gb: 100 },
    "platform.placements": { org_slug: "acme" },
    "postgres.create": { org_slug: "acme", region: "ams", plan: "basic" },
    "postgres.attach": { app_name: "other" },
    "postgres.restore": { backup_id: backup },
  } satisfies Readonly<Partial<Record<OperationWithBody, unknown>>>),
});

const certificate = makeCertificate({ hosts: ["new.example.com"] });

const queries: Readonly<Record<string, string>> = {
  "apps.list": "?org_slug=acme",
  "postgres.list": "?org_slug=acme",
  "machines.destroy": "?force=true",
  "machines.wait": "?timeout=1",
  "GET /console/events": "?topics=org,requests,faults",
  "GET /console/api/search": "?q=shop",
  "GET /local/proxy/feed": "?replica=one",
};

/** A request for an operation or a route. */
interface Asked {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly decision: Decision;
}

/** A path with its parameters. */
function named(name: string, path: string, params: Shop["params"]): string {
  return path.replaceAll(/:(\w+)|\{(\w+)\}/g, (_, first?: string, second?: string) => {
    const value = params[first ?? second ?? ""];
    if (value === undefined) throw new Error(`${name} has a parameter ${first ?? second} that this test does not know`);
    return encodeURIComponent(value);
  });
}

function decisionFor(decided: ReadonlyMap<string, Decision>, name: string): Decision {
  const found = decided.get(name);
  if (!found) throw new Error(`${name} has no decision: add it to test/attacks/decisions.ts`);
  return found;
}

/** Every operation of the contract; those that can show values of secrets come twice. */
function operationsOf({ params }: Shop): readonly Asked[] {
  const bodies = bodiesFor(params);
  return operations.flatMap(({ id, method, path, query }) => {
    const at = named(id, path, params) + (queries[id] ?? "");
    const asked = { name: id, method, path: at, body: bodies[id], decision: decisionFor(ofOperations, id) };
    const hasValues = query && "show_secrets" in query.shape;
    const values = { ...asked, name: `${id} with values`, path: `${at}?show_secrets=true`, decision: ofValues };
    return hasValues ? [asked, values] : [asked];
  });
}

const place = { database: "fly-db", user: "canary-acme" };

/** Bodies of the routes that need one. */
const bodiesOfRoutes: Readonly<Record<string, unknown>> = {
  "POST /local/proxy/answers": { replica: "one", number: 1, answers: [] },
  "POST /local/proxy/report": { replica: "one", run: "none", at: 0, busy: [], draining: [], awaited: [] },
  "POST /console/api/faults": { operation: "apps.get", status: 500, times: 1 },
  "POST /console/api/clusters/:cluster_id/tables": place,
  "POST /console/api/clusters/:cluster_id/query": { ...place, sql: "SELECT 1" },
};

/** Every other route of a server. */
function routesOf(
  registered: readonly Registered[],
  decided: ReadonlyMap<string, Decision>,
  { params }: Shop,
): Asked[] {
  const more = {
    ...params,
    cluster_id: params["postgres_cluster_id"] ?? "",
    id: "fault-1",
    file: "app.js",
    rollout_id: "acme.attack.shop",
    token: "unknown",
  };
  const code = `?type=Machine&id=shop/${params["machine_id"]}`;
  return registered.flatMap(({ method, url, operation }): Asked[] => {
    if (operation !== undefined) return [];
    const name = nameOf(method, url);
    const query = url === "/console/api/code" ? code : (queries[name] ?? "");
    const body = bodiesOfRoutes[name];
    const path = named(name, url.replace("*", "any"), more) + query;
    return [{ name, method, path, body, decision: decisionFor(decided, name) }];
  });
}

/** The name of a route. Fastify adds HEAD to GET, with the same handler. */
const nameOf = (method: string, url: string): string => `${method === "HEAD" ? "GET" : method} ${url}`;

/** Whether a sender may use an operation or a route. */
function isAllowed({ owns, effects, role, refusal, onlyGets }: Sender, { name, decision, method }: Asked): boolean {
  const { owner, effect } = decision;
  if (owner === "any page") return true;
  if (owner === "anyone") return refusal !== 403;
  const needed = decision === ofValues ? "own" : roleOf(name, decision);
  if (role !== undefined && !mayAs(role, needed)) return false;
  return owns.includes(owner) && effects.includes(effect) && (!onlyGets || reads.has(method));
}

const mayAs = (role: TokenRole, needed: TokenRole): boolean =>
  needed === "proxy" ? role === "proxy" : hasRole(role, needed);

const reads: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** Objects come before what they are in, when they are removed. */
const rank = ({ method, path }: Asked): number => (method === "DELETE" ? 100 - path.split("/").length : 0);

/** Everything that the owner can see, as one text; except for processes, whose load changes by itself. */
async function everything({ url }: Shop, all: readonly Asked[]): Promise<string> {
  const texts: string[] = [];
  for (const { name, method, path } of all) {
    if (method !== "GET" || name === "machines.processes") continue;
    const { status, text } = await send(url, method, path, { authorization: "Bearer owner" });
    texts.push(`${name} ${status} ${text}`);
  }
  return texts.join("\n");
}

const canaries = ["shop", "other", "acme", "theirs", "web"];

/** The canaries in a text that a sender may not see. */
const foreignIn = (text: string, sees: readonly string[]): readonly string[] =>
  canaries.filter((name) => !sees.includes(name) && new RegExp(`canary[-_]${name}`, "i").test(text));

type Answer = Awaited<ReturnType<typeof send>>;

/** What one gets that it may use; an open route may say that the route or the session does not exist. */
function expectDone({ name, decision }: Asked, { status, text }: Answer, { sees }: Sender): void {
  const refused = ["anyone", "any page"].includes(decision.owner) ? [403] : [401, 403, 404];
  expect([name, refused.includes(status) || status >= 500], `${status} ${text}`).toEqual([name, false]);
  expect([name, foreignIn(text, sees)], text).toEqual([name, []]);
}

function expectRefused({ name, method }: Asked, { status, text }: Answer, { refusal }: Sender): void {
  const wanted = refusal === undefined ? [403, 404] : [refusal];
  expect([name, wanted.includes(status)], `${status} ${text}`).toEqual([name, true]);
  if (method !== "HEAD") expect([name, Object.keys(JSON.parse(text) as object)]).toEqual([name, ["error"]]);
  expect([name, foreignIn(text, [])], text).toEqual([name, []]);
}

test("F95: every operation and every route has a decision, and no other has one", async () => {
  const shop = await openShop();
  const namesOf = (registered: readonly Registered[]): readonly string[] => [
    ...new Set(
      registered.flatMap(({ method, url, operation }) => (operation === undefined ? nameOf(method, url) : [])),
    ),
  ];
  const ids = operations.map(({ id }) => id).sort();
  expect([...ofOperations.keys()].sort()).toEqual(ids);
  expect(shop.ofService.flatMap(({ operation }) => operation ?? []).sort()).toEqual(ids);
  expect([...ofRoutes.keys()].sort()).toEqual(namesOf(shop.ofService).toSorted());
  expect([...ofAdminRoutes.keys()].sort()).toEqual(namesOf(shop.ofAdmin).toSorted());
});

test.each(Object.entries(senders))("F95: %s may use what was decided, and nothing else", async (_, sender) => {
  const shop = await openShop();
  const inContract = operationsOf(shop);
  const all = [...inContract, ...routesOf(shop.ofService, ofRoutes, shop)];
  const headers = await sender.headers(shop);
  // Browsers send the origin of the page with a WebSocket.
  const ask = ({ method, path, body }: Asked) =>
    send(shop.url, method, path, path.endsWith("/terminal") ? { ...headers, origin: shop.url } : headers, body);
  const [allowed, refused] = [
    all.filter((one) => isAllowed(sender, one)),
    all.filter((one) => !isAllowed(sender, one)),
  ];
  for (const one of allowed.filter(({ method }) => method === "GET")) expectDone(one, await ask(one), sender);
  const before = await everything(shop, inContract);
  for (const one of refused) expectRefused(one, await ask(one), sender);
  for (const one of routesOf(shop.ofAdmin, ofAdminRoutes, shop)) {
    const { status } = await send(shop.admin.url, one.method, one.path, sender.isAdmin ? {} : headers, one.body);
    expect([one.name, status]).toEqual([one.name, sender.refusal ?? 401]);
  }
  expect(await everything(shop, inContract)).toBe(before);
  const changes = allowed.filter(({ method }) => !reads.has(method)).sort((a, b) => rank(a) - rank(b));
  for (const one of changes) expectDone(one, await ask(one), sender);
});

test("F95: what an App has is not found through another App", async () => {
  const shop = await openShop();
  const inContract = operationsOf(shop);
  const before = await everything(shop, inContract);
  const within = operations.filter(
    ({ id, path }) => path.includes("{app_name}") && path.split("{").length > 2 && !putsByName.includes(id),
  );
  const across = operationsOf({ ...shop, params: { ...shop.params, app_name: "other" } });
  for (const { id } of within)
    for (const { name, method, path, body } of across.filter((one) => one.name.split(" ")[0] === id)) {
      const { status, text } = await send(shop.url, method, path, { authorization: "Bearer owner" }, body);
      expect([name, status], text).toEqual([name, 404]);
      expect([name, foreignIn(text, ["other", "acme"])], text).toEqual([name, []]);
    }
  expect(await everything(shop, inContract)).toBe(before);
});
