// The problems of an organization: the worst first, one by one or grouped, and why.
import { expect, test } from "vitest";
import { certificateProblem, type Certified } from "../../../service/console/certificateProblems.ts";
import { Work } from "../../../service/time/costly.ts";
import { overviewOf } from "../../../service/console/overview.ts";
import { AppProblems, clusterProblems } from "../../../service/console/problems.ts";
import type { Overview, Problem, Words } from "../../../service/console/types.ts";
import { ManualClock, type ServiceOptions } from "../../../service/index.ts";
import { callerWith, withApp } from "../client.ts";
import { thoroughTest } from "../../support/thorough.ts";
import { page, send } from "./browser.ts";

const [hour, day] = [3_600_000, 86_400_000];
const now = 100 * day;

const plain = (words: Words): string => words.map((part) => (typeof part === "string" ? part : `@${part.at}`)).join("");
const sentence = ({ subject, text }: Problem): string => subject + plain(text).replaceAll(/@\d+/g, "@");

const hostname = (more: Partial<Certified>): Certified => ({
  ...{ hostname: "www.example.com", created_at: now - 2 * hour, acme_status: null, acme_created_at: null },
  ...{ issued_at: null, expires_at: null, custom_status: null, custom_created_at: null, custom_expires_at: null },
  ...{ rate_limited_until: null, problems: "[]" },
  ...more,
});
const ofCertificate = (more: Partial<Certified>): string | undefined => {
  const found = certificateProblem(hostname(more), now);
  return found && `${found.kind}:${plain(found.text)}`;
};
const reported = (message: string, code = "HOSTNAME_NOT_POINTED") => JSON.stringify([{ code, message }]);

test("a certificate ends soon, has expired, waits or could not be issued", () => {
  const own = (left: number) => ({ custom_status: "active", custom_expires_at: now + left });
  const issued = (left: number, age: number) => ({
    acme_status: "active",
    issued_at: now - age,
    expires_at: now + left,
  });
  expect(ofCertificate(own(15 * day))).toBe(undefined);
  expect(ofCertificate(own(13 * day))).toBe(`certificate ends: ends at @${now + 13 * day}.`);
  expect(ofCertificate({ ...own(13 * day), ...issued(60 * day, day) })).toBe(undefined);
  expect(ofCertificate(own(-day))).toBe(`certificate failed: has expired at @${now - day}.`);
  // Renewed after two thirds of its time: with nine days to go, one of 90 days should have been, and one of 14 days not yet.
  expect(ofCertificate({ ...issued(9 * day, 81 * day), problems: reported("no record.") })).toBe(
    `certificate ends: ends at @${now + 9 * day}: no record.`,
  );
  expect(ofCertificate(issued(9 * day, 5 * day))).toBe(undefined);
  expect(ofCertificate({ acme_status: "pending_validation" })).toBe(
    `certificate waits: has waited for its validation since @${now - 2 * hour}.`,
  );
  expect(ofCertificate({ acme_status: "pending_validation", created_at: now - hour })).toBe(undefined);
  expect(ofCertificate({ custom_status: "pending_ownership", custom_created_at: now - 3 * hour })).toBe(
    `certificate waits: has waited for its validation since @${now - 3 * hour}.`,
  );
  const refused = { acme_status: "pending_validation", created_at: now, problems: reported("no", "AUTHORITY_REFUSED") };
  expect(ofCertificate(refused)).toBe("certificate failed: could not be issued: no.");
  expect(ofCertificate({ ...refused, problems: "[]", rate_limited_until: now + 1 })).toBe(
    "certificate failed: could not be issued.",
  );
  expect(ofCertificate({})).toBe(undefined);
});

test("a cluster has failed, takes too long, is full or has no backup", () => {
  const row = { status: "ready", created_at: now - 10 * day, disk_size_gb: 10, storage_used_bytes: null } as const;
  const of = (more: object, backedUp: number | null | undefined = now) =>
    clusterProblems({ ...row, ...more }, backedUp, now).map(({ kind, text }) => `${kind}:${plain(text)}`);
  expect(of({})).toEqual([]);
  expect(of({ status: "failed" })).toEqual(["cluster failed: has failed: it could not be set up."]);
  expect(of({ status: "creating", created_at: now - 60_000 })).toEqual([]);
  expect(of({ status: "initializing", created_at: now - hour })).toEqual([
    `cluster failed: is not ready: it has been set up since @${now - hour}.`,
  ]);
  expect(of({ storage_used_bytes: 9.5e9 })).toEqual(["cluster full: uses 95 % of its disk."]);
  expect(of({}, null)).toEqual(["no backup: has no completed backup."]);
  expect(of({ created_at: now - day }, null)).toEqual([]);
  expect(of({}, now - 3 * day)).toEqual([`no backup: has no completed backup since @${now - 3 * day}.`]);
  expect(clusterProblems(row, undefined, now)).toEqual([]);
  expect(of({ status: "deleting" }, null)).toEqual([]);
});

test("up to three of a kind are named, and more are one problem", () => {
  const problems = new AppProblems("web");
  const add = (name: string) => {
    problems.count("Machine failed", 1);
    problems.name("Machine failed", name, { subject: `Machine ${name} of web`, text: [], place: { app: "web" } });
  };
  for (const name of ["a", "b", "c"]) add(name);
  expect(problems.all.map(({ subject }) => subject)).toEqual(["a", "b", "c"].map((name) => `Machine ${name} of web`));
  for (let i = 0; i < 1997; i++) add(`${i}`);
  expect(problems.all).toEqual(
    [{ kind: "Machine failed", subject: "2,000 Machines of web", text: [" have failed."], n: 2000 }].map((one) => ({
      ...one,
      place: { app: "web", query: "state=failed" },
    })),
  );
});

/** A service with an App and a session of its console, whose clock stands still. */
async function withConsole(options: ServiceOptions = {}) {
  const clock = new ManualClock();
  const started = await withApp({ delays: "believable", ...options, clock });
  const visit = await page(started);
  const overview = async (): Promise<Overview> => {
    for (;;) {
      const { status, body, text } = await visit("GET", "/console/api/overview");
      if (status !== 200) throw new Error(`the overview answered ${status}: ${text}`);
      if (body.freshIn === undefined) return body;
      await new Promise((resolve) => setTimeout(resolve, body.freshIn));
    }
  };
  const sentences = async () => (await overview()).problems.first.map(sentence);
  /** Lets time pass until the problems are these. */
  const become = (wanted: readonly unknown[], ms = 500) =>
    expect
      .poll(() => {
        clock.advance(ms);
        return sentences();
      })
      .toEqual(wanted);
  return { ...started, clock, overview, sentences, become };
}

const simulate = (what: string, more: object = {}) => ({ env: { MACHINES_SIMULATE: what }, ...more });

test("an organization without problems says so", async () => {
  const { machine, overview, clock } = await withConsole();
  await machine({ checks: { alive: { type: "tcp", port: 80 } } });
  clock.advance(5000);
  expect((await overview()).problems).toEqual({ total: 0, first: [] });
});

test("Machines that failed, crash again and again or have critical checks are problems, and leave when they are repaired", async () => {
  const { call, machine, machines, become, overview } = await withConsole();
  const check = { checks: { alive: { type: "tcp", port: 80 } } };
  const failed = await machine(simulate("exit:3"), { name: "worker" });
  await machine(simulate("checks:critical", check), { name: "api" });
  await machine(simulate("exit:1", { restart: { policy: "always" } }), { name: "loop" });
  const words = "last words: it ends with code";
  const loops = expect.stringMatching(
    /^Machine loop of web crashes again and again\. Exited with code 1, (?:twice|\S+ times)(?:,| since).*; last words: /,
  );
  const critical =
    "Machine api of web runs, but its checks fail. Its check alive has been critical since @: connection refused.";
  await become([
    `Machine worker of web has failed. Exited with code 3, eleven times since @; ${words} 3, as MACHINES_SIMULATE=exit:3 asks.`,
    loops,
    critical,
  ]);
  expect((await overview()).problems.first[0]).toMatchObject({
    kind: "Machine failed",
    place: { app: "web", machine: failed.id },
  });
  await call("POST", `${machines}/${failed.id}`, { config: { image: "nginx" } });
  await become([loops, critical]);
});

test("many of an App are one problem, with a link to its list", async () => {
  const { machine, become, overview } = await withConsole();
  for (let i = 0; i < 4; i++) await machine(simulate("crash", { restart: { policy: "no" } }));
  await become(["4 Machines of web have failed."]);
  expect((await overview()).problems).toMatchObject({
    total: 1,
    first: [{ place: { app: "web", query: "state=failed" } }],
  });
});

test("certificates, clusters and regions with problems are listed, of the caller's organization alone", async () => {
  const started = await withConsole({ capacity: { fra: 1 } });
  const { call, machine, become, sentences, service, url } = started;
  await machine({}, { region: "fra" });
  await call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  await call("POST", "/postgres", { name: "db", org_slug: "personal", region: "ams", plan: "basic" });
  await call("POST", "/postgres", { name: "broken", org_slug: "personal", region: "ams", plan: "basic" });
  const { store } = service.context;
  await store.write(() => {
    store.run("UPDATE hostnames SET acme_status = 'pending_validation', acme_created_at = created_at - ?", 2 * hour);
    store.run("UPDATE clusters SET created_at = created_at - ?, status = iif(name = 'db', 'ready', 'failed')", 3 * day);
  });
  const found = [
    "Cluster broken has failed: it could not be set up.",
    "Region fra has no capacity left: it accepts no further Machine.",
    "The certificate of www.example.com (web) has waited for its validation since @.",
    "Cluster db has no completed backup.",
  ];
  await become(found, 0);
  const others = callerWith(started, "of-team", { slug: "team" });
  await others("POST", "/apps", { name: "theirs", org_slug: "team" });
  const { body } = await send(url, "GET", "/console/api/overview", { headers: { authorization: "Bearer of-team" } });
  expect(body.problems).toEqual({ total: 0, first: [] });
  const ofApp = store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'web'")?.id;
  callerWith(started, "of-web", { apps: [ofApp ?? ""] });
  const own = await send(url, "GET", "/console/api/overview", { headers: { authorization: "Bearer of-web" } });
  expect(own.body.problems.first.map(sentence)).toEqual(found.slice(1, 3));
  expect(await sentences()).toHaveLength(4);
});

thoroughTest("100,000 Machines with problems keep nobody waiting, and at most 50 problems are shown", async () => {
  const { machine, service } = await withConsole({ delays: "none" });
  await machine(simulate("exit:3"));
  const { store } = service.context;
  const columns = (table: string) =>
    store.all<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`).map(({ name }) => name);
  const copied = (table: string, changed: Readonly<Record<string, string>>, from: string) => {
    const names = columns(table);
    return `INSERT INTO ${table} (${names.join(", ")}) SELECT ${names.map((name) => changed[name] ?? `t.${name}`).join(", ")}
      FROM ${from}`;
  };
  const numbers = (n: number) =>
    `(WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${n - 1}) SELECT i FROM n)`;
  await store.write(() => {
    store.run(
      copied(
        "apps",
        { number: "t.number + 1 + i", id: "'app' || i", name: "printf('shop-%03d', i)" },
        `apps t, ${numbers(100)} WHERE t.name = 'web'`,
      ),
    );
    // A thousand in each App, of which every third one has failed, and every third one crashes again and again.
    store.run(
      copied(
        "machines",
        {
          ...{ id: "printf('%014x', i)", name: "printf('m-%06d', i)", app: "'app' || (i % 100)", restarted: "i % 3" },
          ...{ state: "iif(i % 3 = 0, 'failed', 'started')", checks: "'critical'", has_checks: "1" },
        },
        `machines t, ${numbers(100_000)}`,
      ),
    );
    store.run(
      copied(
        "events",
        { machine: "m.id", request: `json_set(t.request, '$.exit_event.restarting', json('true'))` },
        "events t, machines m WHERE t.type = 'exit' AND m.restarted > 0 AND m.id <> t.machine",
      ),
    );
  });
  // By this clock, the work lasts as long as others may wait, between any two looks at it.
  let [time, turns] = [0, 0];
  const work = new Work(
    () => (time += 5),
    () => Promise.resolve(void turns++),
  );
  const caller = { id: "", org: 1, slug: "personal", apps: null, network: null } as never;
  const { problems } = await overviewOf({ context: service.context, caller }, work);
  expect(turns).toBeGreaterThan(66_000);
  // Three for each App, the first Machine, and the region, which is full.
  expect([problems.total, problems.first.length]).toEqual([302, 50]);
  expect(problems.first.map(({ kind }) => kind)).toEqual(Array(50).fill("Machine failed"));
  expect(sentence(problems.first[0] as Problem)).toMatch(/^33[34] Machines of shop-\d+ have failed\.$/);
});
