// People sign in to the console with an OpenID Connect provider (docs/service.md#people).
import { expect, test } from "vitest";
import { createService, ManualClock } from "../../../service/index.ts";
import { openIdSignIn } from "../../../service/identity/signIn.ts";
import { addPeople, peopleOf, removeTrust } from "../../../service/store/trusts.ts";
import { listTokens } from "../../../service/store/tokens.ts";
import type { Role } from "../../../service/store/roles.ts";
import { freePort } from "../../support/freePort.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { FormBrowser } from "../../support/formBrowser.ts";
import { startProvider } from "../../support/provider.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A service and its provider. */
async function start() {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const provider = await startProvider(`${url}/console/signed-in`);
  const folder = mkdtempSync(join(tmpdir(), "machines-secret-"));
  afterThisTest(() => rmSync(folder, { recursive: true }));
  const secretFile = join(folder, "secret");
  writeFileSync(secretFile, "of-the-client\n");
  const options = {
    issuer: provider.url,
    clientId: "machines",
    secretFile,
    groupsClaim: "groups",
    scope: "openid profile email",
  };
  const clock = new ManualClock();
  const service = createService({ clock, console: "write", signIn: openIdSignIn(options) });
  await service.app.listen({ host: "127.0.0.1", port });
  afterThisTest(() => service.close());
  let count = 0;
  const add = (role: Role, group?: string, slug = "personal"): Promise<string> => {
    const id = `people${++count}`;
    const own = { slug, role, group, apps: undefined, network: undefined };
    return service.context.store.write(() => addPeople(service.context.store, id, own, clock.now())).then(() => id);
  };
  const browser = new FormBrowser();
  /** Signs a person in, and returns what the address of the page has. */
  const signIn = async (login: string, own = browser): Promise<string> => {
    const back = await own.signIn(`${url}/console/sign-in`, login, `${url}/console/signed-in`);
    const page = await own.request(back);
    expect(page.status).toBe(302);
    return page.headers.get("location") ?? "";
  };
  /** Opens a session with what the address of the page has, and returns a function that sends requests in its name. */
  const open = async (fragment: string) => {
    const code = decodeURIComponent(/^\/#code=(.+)$/.exec(fragment)?.[1] ?? "");
    const answer = await fetch(`${url}/console/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code }),
    });
    if (answer.status !== 200) return { status: answer.status };
    const { page_key } = (await answer.json()) as { page_key: string };
    const headers = { cookie: answer.headers.getSetCookie()[0]?.split(";")[0] ?? "", "console-page-key": page_key };
    const ask = (method: string, path: string) =>
      fetch(url + path, { method, headers: { ...headers, "sec-fetch-site": "same-origin" } });
    return { status: 200, ask, view: async () => (await (await ask("GET", "/console/session")).json()) as object };
  };
  return { url, provider, service, clock, add, browser, signIn, open };
}

test("a person signs in with the role of a group, and under a name", async () => {
  const { provider, service, clock, add, signIn, open, url } = await start();
  await add("operate", "platform");
  provider.people["ada"] = { email: "ada@example.com", groups: ["platform", "other"] };
  expect(await (await fetch(`${url}/console/provider`)).json()).toEqual({ name: "127.0.0.1" });
  const session = await open(await signIn("ada"));
  expect(await session.view?.()).toMatchObject({
    role: "operate",
    organization: "personal",
    isOperator: false,
    canWrite: true,
  });
  const [token] = listTokens(service.context.store, clock.now()).filter(({ trust }) => trust !== null);
  expect(token).toMatchObject({ name: "ada@example.com", role: "operate", org: "personal" });
  expect(token?.expires_at).toBe(clock.now() + 12 * 3600_000);
});

test("of several groups the one with the highest role counts", async () => {
  const { provider, add, signIn, open } = await start();
  await add("read");
  await add("deploy", "deployers");
  await add("operate", "platform");
  provider.people["ada"] = { groups: ["platform", "deployers"] };
  expect(await (await open(await signIn("ada"))).view?.()).toMatchObject({ role: "deploy" });
});

test("a group may be of another organization", async () => {
  const { provider, add, signIn, open } = await start();
  await add("own", "team", "team");
  provider.people["ada"] = { groups: ["team"] };
  expect(await (await open(await signIn("ada"))).view?.()).toMatchObject({ organization: "team", role: "own" });
});

test("a person in no group is told so, and gets nothing", async () => {
  const { provider, service, clock, add, signIn } = await start();
  await add("own", "platform");
  provider.people["eve"] = { groups: ["plat", "platform2"] };
  expect(await signIn("eve")).toBe("/#sign-in=no%20group");
  expect(listTokens(service.context.store, clock.now()).filter(({ trust }) => trust !== null)).toEqual([]);
});

test("a code opens one session", async () => {
  const { add, signIn, open } = await start();
  await add("read");
  const fragment = await signIn("ada");
  expect((await open(fragment)).status).toBe(200);
  expect((await open(fragment)).status).toBe(401);
});

test("the answer of the provider counts once, and only in the browser that asked", async () => {
  const { url, add, browser } = await start();
  await add("own");
  const back = await browser.signIn(`${url}/console/sign-in`, "ada", `${url}/console/signed-in`);
  const locationOf = async (own: FormBrowser) => (await own.request(back)).headers.get("location");
  // Another one, which has not begun or has begun its own.
  expect(await locationOf(new FormBrowser())).toBe("/#sign-in=expired");
  const other = new FormBrowser();
  await other.request(`${url}/console/sign-in`);
  expect(await locationOf(other)).toBe("/#sign-in=refused");
  const cookie = browser.cookies(url);
  expect(await locationOf(browser)).toMatch(/^\/#code=/);
  // Again, with the cookie that the browser has removed.
  const again = await fetch(back, { redirect: "manual", headers: { cookie } });
  expect(again.headers.get("location")).toBe("/#sign-in=refused");
});

test("a changed cookie is no proof", async () => {
  const { url, add, browser } = await start();
  await add("own");
  const back = await browser.signIn(`${url}/console/sign-in`, "ada", `${url}/console/signed-in`);
  const [name = "", value = ""] = browser.cookies(url).split("=");
  const kept = JSON.parse(Buffer.from(value, "base64url").toString()) as object;
  const changed = Buffer.from(JSON.stringify({ ...kept, until: Number.MAX_SAFE_INTEGER })).toString("base64url");
  const answer = await fetch(back, { redirect: "manual", headers: { cookie: `${name}=${changed}` } });
  expect(answer.headers.get("location")).toBe("/#sign-in=expired");
});

test("a session ends with its group, and signing out leaves no token", async () => {
  const { service, clock, add, signIn, open } = await start();
  const id = await add("read");
  const session = await open(await signIn("ada"));
  await service.context.store.write(() => removeTrust(service.context.store, id, true));
  clock.advance(2000);
  expect((await session.ask?.("GET", "/console/session"))?.status).toBe(401);
  await add("read");
  const next = await open(await signIn("ada", new FormBrowser()));
  expect((await next.ask?.("DELETE", "/console/session"))?.status).toBe(204);
  expect(listTokens(service.context.store, clock.now()).filter(({ trust }) => trust !== null)).toEqual([]);
  expect(peopleOf(service.context.store).map(({ usedAt }) => usedAt !== null)).toEqual([true]);
});

test("a provider that does not answer is no end of the console", async () => {
  const { url, provider, add, browser } = await start();
  await add("read");
  await provider.close();
  const answer = await browser.request(`${url}/console/sign-in`);
  expect(answer.headers.get("location")).toBe("/#sign-in=unreachable");
});

test("without a provider there is no way to it", async () => {
  const service = createService({});
  afterThisTest(() => service.close());
  const url = await service.app.listen({ host: "127.0.0.1", port: 0 });
  expect(await (await fetch(`${url}/console/provider`)).json()).toEqual({ name: null });
  expect((await fetch(`${url}/console/sign-in`, { redirect: "manual" })).status).toBe(404);
});
