// One App from a backup, in a service that continues.
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { addRestoredApp, storedApp } from "../../service/lifecycle/restoredApp.ts";
import { listQuotas, setQuotas } from "../../service/store/quotas.ts";
import { currentCertificate } from "../support/certificates.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { callerWith, withApp } from "./client.ts";
import { folder } from "./command.ts";

const at = "/apps/web/certificates";
const host = "www.example.com";

type App = Awaited<ReturnType<typeof withApp>>;

/** Copies the store, and deletes the App `web`. Returns what restores it. */
async function deleted({ call, service }: App) {
  const { context } = service;
  const { store } = context;
  const copy = join(dirname(folder()), "copy.db");
  store.db.prepare("VACUUM INTO ?").run(copy);
  expect((await call("DELETE", "/apps/web?force=true")).status).toBe(202);
  await expect.poll(() => store.get("SELECT 1 FROM apps WHERE name LIKE 'web%'")).toBeUndefined();
  const db = new DatabaseSync(copy, { readOnly: true });
  afterThisTest(() => db.close());
  const stored = storedApp(db, "web");
  if (!stored) throw new Error("the copy has the App");
  return () => store.write(() => addRestoredApp(context, db, stored, new Set()));
}

test("a hostname that another App has by now is left out, and the App gets it by proof; earlier it was shown as active", async () => {
  const app = await withApp({ data: folder() });
  const { call, service } = app;
  const status = async () => (await call("GET", `${at}/${host}`)).body.status;
  for (const hostname of [host, "shop.example.com"]) {
    await call("POST", `${at}/acme`, { hostname });
    await expect.poll(async () => (await call("GET", `${at}/${hostname}`)).body.status).toBe("active");
  }
  await call("POST", `${at}/custom`, { hostname: host, ...currentCertificate({ hosts: [host] }) });
  const restore = await deleted(app);
  const red = callerWith(app, "token-of-red", { slug: "red" });
  await red("POST", "/apps", { name: "red", org_slug: "red" });
  await red("POST", "/apps/red/certificates/acme", { hostname: host });
  await expect.poll(async () => (await red("GET", `/apps/red/certificates/${host}`)).body.status).toBe("active");

  expect((await restore()).missing).toEqual([`hostname ${host}: it belongs to another App`]);
  const { certificates } = (await call("GET", at)).body;
  expect(certificates).toMatchObject([{ hostname: "shop.example.com", status: "active" }]);
  const { store } = service.context;
  expect(store.all("SELECT subject FROM timers WHERE subject LIKE ?", `%/${host}`)).toHaveLength(1);
  // As for every App that asks for a name of another organization.
  await call("POST", `${at}/acme`, { hostname: host });
  expect(await status()).toBe("pending_ownership");
});

test("a request for a hostname that waited for its owner waits after a restore, too", async () => {
  const app = await withApp({ data: folder() });
  const red = callerWith(app, "token-of-red", { slug: "red" });
  await red("POST", "/apps", { name: "red", org_slug: "red" });
  await red("POST", "/apps/red/certificates/acme", { hostname: host });
  await app.call("POST", `${at}/acme`, { hostname: host });
  const restore = await deleted(app);
  expect((await restore()).missing).toEqual([]);
  expect((await app.call("GET", `${at}/${host}`)).body.status).toBe("pending_ownership");
});

test("a restored App has its quotas, with what it uses of them; earlier it had none", async () => {
  const app = await withApp({ data: folder() });
  const { store } = app.service.context;
  const owner = store.get<{ org: number; app: string }>("SELECT org, id AS app FROM apps WHERE name = 'web'");
  if (!owner) throw new Error("the App exists");
  await store.write(() => setQuotas(store, owner, { machines: 1, "volume-gb": 5 }));
  await app.machine();
  await app.volume({ size_gb: 2 });
  const before = listQuotas(store);
  expect(before.map(({ used }) => used)).toEqual([1, 2]);
  const restore = await deleted(app);
  expect(listQuotas(store)).toEqual([]);
  await restore();
  expect(listQuotas(store)).toEqual(before);
  const more = await app.call("POST", app.machines, { config: { image: "nginx" } });
  expect([more.status, more.body.error]).toEqual([422, expect.stringContaining("quota exceeded")]);
});

test("an upload of an earlier version, which had no timer for its end, gets one", async () => {
  const app = await withApp({ data: folder() });
  const { timers, store } = app.service.context;
  await app.call("POST", `${at}/custom`, { hostname: host, ...currentCertificate({ hosts: [host] }) });
  const subject = () => `${store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'web'")?.id ?? ""}/${host}`;
  expect(timers.pending(subject(), "certificate.expire")).toBe(true);
  await store.write(() => timers.cancel(subject(), "certificate.expire"));
  const restore = await deleted(app);
  await restore();
  expect(timers.pending(subject(), "certificate.expire")).toBe(true);
});
