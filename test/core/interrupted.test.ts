// A run is killed during a create, for every kind that is created by an unrepeatable request: the next create of the same
// resource continues from what exists, and creates nothing twice (F18).
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openJournal } from "../../provider/core/journal.ts";
import { checkInputs } from "../../provider/core/check.ts";
import { create, read, remove, type Caller, type Found } from "../../provider/core/verbs/index.ts";
import { CONTEXT, type Resource, type Values } from "../../provider/core/resource.ts";
import { resources } from "../../provider/registry.ts";
import { begin as beginVolume } from "../../provider/volumes/steps.ts";
import { makeApp, makeCluster, makeVolume, once, send } from "../support/around.ts";
import { httpTransport, type Outcome, type Sent, type Transport } from "../../provider/client/transport.ts";
import { currentCertificate } from "../support/certificates.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

const app = once((service) => makeApp(service, "cut-off"));
const cluster = once((service) => makeCluster(service, "cut-off"));
const volume = once(async (service) => makeVolume(service, await app(service), "ams"));

interface Kind {
  readonly given: (service: TestService) => Promise<Values>;
  /** Inputs that may have changed by the next run. */
  readonly since?: Values;
  /** Inputs that nothing can change or show later, and what a create with them instead does. */
  readonly fixed?: {
    readonly inputs: (service: TestService) => Promise<Values>;
    readonly refused?: RegExp;
  };
  /** The request that creates it. */
  readonly makes: RegExp;
  /** All objects of its kind, if the service lists them. */
  readonly all: (service: TestService) => Promise<readonly unknown[]>;
}

function resourceOf(type: string): Resource {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);
  return resource;
}

const listed =
  (path: (service: TestService) => Promise<string>, field?: string): Kind["all"] =>
  async (service) => {
    const answer = await send<unknown>(service, "GET", await path(service));
    return (field === undefined ? answer : (answer as Record<string, unknown>)[field]) as readonly unknown[];
  };
const inApp = (rest: string, field?: string) =>
  listed(async (service) => `/v1/apps/${await app(service)}/${rest}`, field);
const inCluster = (rest: string) => listed(async (service) => `/v1/postgres/${await cluster(service)}/${rest}`, "data");

const kinds: Record<string, Kind> = {
  App: {
    given: () => Promise.resolve({ name: "cut-off-app" }),
    fixed: { inputs: () => Promise.resolve({ network: "inside" }), refused: /other values of network, which/ },
    makes: /^POST .*\/apps$/,
    all: listed(() => Promise.resolve("/v1/apps?org_slug=personal"), "apps"),
  },
  Machine: {
    given: async (service) => ({ app: await app(service), config: { image: "registry.example.com/a:1" } }),
    makes: /^POST .*\/machines$/,
    all: inApp("machines"),
  },
  Volume: {
    given: async (service) => ({ app: await app(service), region: "ams", name: "data" }),
    since: { snapshotRetention: 9, autoBackupEnabled: false },
    fixed: { inputs: async (service) => ({ sourceVolumeId: await volume(service) }) },
    makes: /^POST .*\/volumes$/,
    all: inApp("volumes"),
  },
  VolumeSnapshot: {
    given: async (service) => ({ app: await app(service), volume: await volume(service) }),
    makes: /^POST .*\/snapshots$/,
    all: listed(async (service) => `/v1/apps/${await app(service)}/volumes/${await volume(service)}/snapshots`),
  },
  IpAssignment: {
    given: async (service) => ({ app: await app(service), type: "v6" }),
    makes: /^POST .*\/ip_assignments$/,
    all: inApp("ip_assignments", "ips"),
  },
  AcmeCertificate: {
    given: async (service) => ({ app: await app(service), hostname: "cut-off.example.com" }),
    makes: /^POST .*\/certificates\/acme$/,
    all: inApp("certificates", "certificates"),
  },
  CustomCertificate: {
    given: async (service) => {
      const { fullchain, private_key: privateKey } = currentCertificate({ hosts: ["own.example.com"] });
      return { app: await app(service), hostname: "own.example.com", fullchain, privateKey };
    },
    makes: /^POST .*\/certificates\/custom$/,
    all: inApp("certificates", "certificates"),
  },
  SecretKey: {
    given: async (service) => ({ app: await app(service), name: "CUT_OFF", type: "nacl_sign" }),
    makes: /^POST .*\/secretkeys\/CUT_OFF\/generate$/,
    all: inApp("secretkeys", "secret_keys"),
  },
  PostgresCluster: {
    given: () => Promise.resolve({ region: "fra", plan: "basic", deletionProtection: false }),
    fixed: {
      inputs: async (service) => ({ region: undefined, plan: undefined, fork: { cluster: await cluster(service) } }),
      refused: /other values of region, plan, fork, which/,
    },
    makes: /^POST .*\/postgres$/,
    all: listed(() => Promise.resolve("/v1/postgres?org_slug=personal"), "data"),
  },
  PostgresDatabase: {
    given: async (service) => ({ cluster: await cluster(service), name: "orders", allowDataLoss: true }),
    makes: /^POST .*\/databases$/,
    all: inCluster("databases"),
  },
  PostgresUser: {
    given: async (service) => ({ cluster: await cluster(service), username: "orders", role: "writer" }),
    since: { role: "reader" },
    makes: /^POST .*\/users$/,
    all: inCluster("users"),
  },
  PostgresExtension: {
    given: async (service) => ({
      cluster: await cluster(service),
      database: "fly-db",
      name: "citext",
      createSchema: true,
    }),
    since: { schema: "tools" },
    makes: /^POST .*\/extensions$/,
    all: async (service) => {
      const path = `/v1/postgres/${await cluster(service)}/databases/fly-db/extensions`;
      const { data } = await send<{ data: { installed: unknown }[] }>(service, "GET", path);
      return data.filter(({ installed }) => installed !== null);
    },
  },
  PostgresBackup: {
    given: async (service) => ({ cluster: await cluster(service), type: "full" }),
    makes: /^POST .*\/backups$/,
    all: inCluster("backups"),
  },
};

describe.each(Object.entries(kinds))("an interrupted create of %s", (type, { given, since, fixed, makes, all }) => {
  const resource = resourceOf(type);
  let service: TestService;
  let home: string;
  let said: string[];
  let written: Values;

  beforeAll(async () => {
    service = await startService();
    written = { ...(await given(service)), [CONTEXT]: { owner: `owner-of-${type}`, name: "made" } };
  });
  afterAll(() => service.close());
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "cut-off-"));
    said = [];
  });
  afterEach(() => rmSync(home, { recursive: true }));

  /** A create in a new process; one that `dies` never ends. */
  function begin(
    dies?: "before" | "after",
    since: Values = {},
  ): {
    readonly made: Promise<Found>;
    readonly dead: Promise<void>;
    caller: Caller;
  } {
    const intents = openJournal((message) => said.push(message), home);
    let died: () => void = () => undefined;
    const dead = new Promise<void>((resolve) => (died = resolve));
    const { api, run } = jumpingClient(service, intents, {
      dies({ method, url }, moment) {
        if (moment !== dies || !makes.test(`${method} ${url}`)) return false;
        died();
        return true;
      },
    });
    // Another resource in the state identifies the state.
    run.stateIds.note("0123456789ab");
    const { inputs, problems } = checkInputs(
      resource,
      {},
      { ...written, ...since },
      {
        randomHex: () => "0123456",
        run,
      },
    );
    expect(problems).toEqual([]);
    const caller = { api, run, progress: () => undefined, warn: (message: string) => void said.push(message) };
    return { made: create(resource, inputs, caller), dead, caller };
  }

  test("a create that was interrupted before its request was sent creates one object", async () => {
    const before = (await all(service)).length;
    await begin("before").dead;
    const { made, caller } = begin();
    const { id, state } = await made;
    expect(await all(service)).toHaveLength(before + 1);
    expect(said).toEqual([]);
    await remove(resource, id, state, caller);
  });

  test("a create that was interrupted after its request was applied adopts the created object", async () => {
    await begin("after").dead;
    const before = (await all(service)).length;
    const { made, caller } = begin();
    const { id, state } = await made;
    expect(await all(service)).toHaveLength(before);
    expect(said).toEqual([expect.stringMatching(/was created by an interrupted run; it is adopted/)]);
    await remove(resource, id, state, caller);
  });

  if (since)
    test("a create whose inputs changed since the interruption adopts the created object and updates it", async () => {
      await begin("after").dead;
      const before = (await all(service)).length;
      const { made, caller } = begin(undefined, since);
      const { id, state } = await made;
      expect(await all(service)).toHaveLength(before);
      expect((await read(resource, id, state, caller))?.state).toMatchObject(since);
      await remove(resource, id, state, caller);
    });

  if (fixed)
    test("an object created with other inputs that nothing shows or changes is reported, and not adopted", async () => {
      const others = await fixed.inputs(service);
      await begin("after").dead;
      const before = await all(service);
      const { made, caller } = begin(undefined, others);
      if (fixed.refused === undefined) {
        const { id, state } = await made;
        expect(await all(service)).toHaveLength(before.length + 1);
        expect(said).toEqual([expect.stringMatching(/was creating .*, and these are new among/)]);
        await remove(resource, id, state, caller);
        return;
      }
      await expect(made).rejects.toThrow(fixed.refused);
      expect(await all(service)).toEqual(before);
      // With the inputs of the interrupted run, it is adopted.
      const again = begin();
      const { id, state } = await again.made;
      expect(said).toEqual([expect.stringMatching(/was created by an interrupted run; it is adopted/)]);
      await remove(resource, id, state, again.caller);
    });

  test("a create whose id was returned is reported, and the object is neither adopted nor changed", async () => {
    const first = await begin().made;
    const { made, caller } = begin();
    // A taken name cannot be used twice; the service or the provider reports that.
    const second = await made.catch(() => undefined);
    expect(said).toContainEqual(
      expect.stringMatching(`${type} ${first.id} was created for this resource by an earlier run`),
    );
    if (second) await remove(resource, second.id, second.state, caller);
    expect(await read(resource, first.id, first.state, caller)).toBeDefined();
    await remove(resource, first.id, first.state, caller);
    said = [];
    const { id, state } = await begin().made;
    expect(said).toEqual([]);
    await remove(resource, id, state, caller);
  });
});

describe("an object that appeared since the interrupted run, and may belong to others", () => {
  let service: TestService;
  beforeAll(async () => (service = await startService()));
  afterAll(() => service.close());

  const wanted = { name: "data", region: "ams", sizeGb: 1 };
  test.each([
    ["of another size", { size_gb: 2 }, 0],
    ["created much later", { size_gb: 1 }, 3600_000],
  ])("a volume %s is reported and left alone; another one is created", async (_, theirs, later) => {
    const place = await makeApp(service, `suspects-${later}`);
    const home = mkdtempSync(join(tmpdir(), "suspects-"));
    const intents = openJournal(() => undefined, home);
    await intents.write({
      ...{ owner: "owner1", op: "op1", endpoint: service.url, name: "data", before: [] },
      place: `volumes of App ${place}`,
      at: Date.now() - later,
    });
    const body = { name: "data", region: "ams", ...theirs };
    const { id } = await send<{ id: string }>(service, "POST", `/v1/apps/${place}/volumes`, body);
    const said: string[] = [];
    const { api, run } = jumpingClient(service, intents);
    const call = { api, run, progress: () => undefined, warn: (message: string) => void said.push(message) };
    const made = await beginVolume(call, "owner1", place, wanted);
    expect(made.id).not.toBe(id);
    expect(said).toEqual([expect.stringContaining(`these are new among the volumes of App ${place}: ${id}.`)]);
    rmSync(home, { recursive: true });
  });

  test.each([
    [
      "of another name",
      "volumes of App renamed",
      (place: string, id: string) => `among the volumes of App ${place}: ${id}.`,
    ],
    ["in another App", "volumes of App before", () => "was creating other among the volumes of App before."],
  ])("a volume whose create was begun %s is reported; the requested one is created", async (_, begunIn, reported) => {
    const place = await makeApp(service, begunIn === "volumes of App renamed" ? "renamed" : "moved");
    const home = mkdtempSync(join(tmpdir(), "suspects-"));
    const intents = openJournal(() => undefined, home);
    await intents.write({
      ...{ owner: "owner1", op: "op1", endpoint: service.url, name: "other", before: [] },
      place: begunIn,
      at: Date.now(),
    });
    const begun = { name: "other", region: "ams", size_gb: 1 };
    const { id } = await send<{ id: string }>(service, "POST", `/v1/apps/${place}/volumes`, begun);
    const said: string[] = [];
    const { api, run } = jumpingClient(service, intents);
    const call = { api, run, progress: () => undefined, warn: (message: string) => void said.push(message) };
    expect((await beginVolume(call, "owner1", place, wanted)).id).not.toBe(id);
    expect(said).toEqual([expect.stringContaining(reported(place, id))]);
    rmSync(home, { recursive: true });
  });

  test("a volume that appears late is waited for and adopted", async () => {
    const place = await makeApp(service, "late");
    const home = mkdtempSync(join(tmpdir(), "suspects-"));
    const intents = openJournal(() => undefined, home);
    await intents.write({
      ...{ owner: "owner1", op: "op1", endpoint: service.url, name: "data", before: [] },
      place: `volumes of App ${place}`,
      at: Date.now(),
    });
    const body = { name: "data", region: "ams", size_gb: 1 };
    const { id } = await send<{ id: string }>(service, "POST", `/v1/apps/${place}/volumes`, body);
    service.fail({ operation: "volumes.list", list: { keep: 0 }, times: 3 });
    const { api, run } = jumpingClient(service, intents);
    const call = { api, run, progress: () => undefined, warn: () => undefined };
    expect((await beginVolume(call, "owner1", place, wanted)).id).toBe(id);
    rmSync(home, { recursive: true });
  });
});

describe("several objects of one kind in one place", () => {
  let service: TestService;
  let home: string;
  let place = "";
  let count = 0;
  beforeAll(async () => (service = await startService()));
  afterAll(() => service.close());
  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), "siblings-"));
    place = await makeApp(service, `siblings-${++count}`);
  });
  afterEach(() => {
    service.service.faults.clear();
    rmSync(home, { recursive: true });
  });

  /** A process of its own, and how it creates an address for an owner. */
  const started = (dies?: (made: number) => boolean) => {
    let [made, died] = [0, (): void => undefined];
    const dead = new Promise<void>((resolve) => (died = resolve));
    const { api, run } = jumpingClient(
      service,
      openJournal(() => undefined, home),
      {
        dies({ method, url }, moment) {
          if (moment !== "after" || !/^POST .*\/ip_assignments$/.test(`${method} ${url}`)) return false;
          const isEnd = dies?.(++made) === true;
          if (isEnd) died();
          return isEnd;
        },
      },
    );
    const said: string[] = [];
    const caller = { api, run, progress: () => undefined, warn: (message: string) => void said.push(message) };
    const address = (owner: string) =>
      create(resourceOf("IpAssignment"), { app: place, type: "v6", [CONTEXT]: { owner } }, caller);
    return { address, said, dead };
  };
  const there = async () =>
    (await send<{ ips: { ip: string }[] }>(service, "GET", `/v1/apps/${place}/ip_assignments`)).ips.length;

  test("an object of one resource is not attributed to another one that failed before", async () => {
    const first = started();
    service.fail({ operation: "ipAssignments.assign", when: "before", status: 503, times: 3 });
    const [failed, made] = await Promise.allSettled([first.address("one"), first.address("two")]);
    expect([failed.status, made.status]).toEqual(["rejected", "fulfilled"]);
    const again = started();
    const { id } = await again.address("one");
    expect(made.status === "fulfilled" && made.value.id).not.toBe(id);
    expect(again.said.join()).not.toMatch(/adopted/);
    expect(await there()).toBe(2);
  });

  test("after a kill, each resource gets its own object in any order", async () => {
    const killed = started(() => true);
    void killed.address("one");
    await killed.dead;
    const again = started();
    const two = await again.address("two");
    const one = await again.address("one");
    expect(one.id).not.toBe(two.id);
    expect(again.said).toEqual([expect.stringMatching(/is adopted/)]);
    expect(await there()).toBe(2);
  });

  test("several created objects without a returned id are identified by what each resource had found", async () => {
    const intents = openJournal(() => undefined, home);
    const begun = (owner: string, before: readonly string[]) =>
      intents.write({
        ...{ owner, op: owner, endpoint: service.url, place: `addresses of App ${place}`, name: "v6" },
        ...{ before, at: Date.now() + before.length },
      });
    const made = async () =>
      (await send<{ ip: string }>(service, "POST", `/v1/apps/${place}/ip_assignments`, { type: "v6" })).ip;
    await begun("one", []);
    const first = await made();
    await begun("two", [first]);
    const second = await made();
    const again = started();
    expect((await again.address("one")).id).toBe(`${place}/${first}`);
    expect((await again.address("two")).id).toBe(`${place}/${second}`);
    expect(await there()).toBe(2);
  });
});

test("a secret key that others created much later is left alone, even if a note matches", async () => {
  const service = await startService();
  const home = mkdtempSync(join(tmpdir(), "theirs-"));
  const place = await makeApp(service, "theirs");
  const intents = openJournal(() => undefined, home);
  await intents.write({
    ...{ owner: "owner1", op: "op1", endpoint: service.url, place: `secret keys of App ${place}`, name: "SIGN" },
    ...{ before: [], at: Date.now() - 3600_000 },
  });
  const theirs = await send(service, "POST", `/v1/apps/${place}/secretkeys/SIGN/generate`, { type: "nacl_sign" });
  const { api, run } = jumpingClient(service, intents);
  const caller = { api, run, progress: () => undefined, warn: () => undefined };
  const value = Buffer.alloc(32, 7).toString("base64");
  const inputs = { app: place, name: "SIGN", type: "nacl_sign", value, [CONTEXT]: { owner: "owner1" } };
  await expect(create(resourceOf("SecretKey"), inputs, caller)).rejects.toThrow(/has a secret key SIGN already/);
  const live = await send(service, "GET", `/v1/apps/${place}/secretkeys/SIGN`);
  expect(live["public_key"]).toBe(theirs["public_key"]);
  rmSync(home, { recursive: true });
  await service.close();
});

describe("an object of an interrupted run whose program has changed since", () => {
  let service: TestService;
  let home: string;
  let count = 0;
  beforeAll(async () => (service = await startService()));
  afterAll(() => service.close());
  beforeEach(() => (home = mkdtempSync(join(tmpdir(), "changed-"))));
  afterEach(() => {
    service.service.faults.clear();
    rmSync(home, { recursive: true });
  });

  /** A run of its own; its create never ends if the process dies after a request. */
  function run(type: string, dies?: RegExp, transport?: Transport) {
    const resource = resourceOf(type);
    const said: string[] = [];
    let died = (): void => undefined;
    const dead = new Promise<void>((resolve) => (died = resolve));
    const intents = openJournal((message) => said.push(message), home);
    const { api, run: ofRun } = jumpingClient(service, intents, {
      ...(transport && { transport }),
      dies({ method, url }, moment) {
        if (moment !== "after" || dies?.test(`${method} ${url}`) !== true) return false;
        died();
        return true;
      },
    });
    const caller = { api, run: ofRun, progress: () => undefined, warn: (message: string) => void said.push(message) };
    const made = (written: Values): Promise<Found> => {
      const declared = { ...written, [CONTEXT]: { owner: `owner-of-${type}`, name: "made" } };
      const { inputs, problems } = checkInputs(resource, {}, declared, { randomHex: () => "0123456", run: ofRun });
      expect(problems).toEqual([]);
      return create(resource, inputs, caller);
    };
    return { made, dead, said };
  }

  /** Creates it in a run that is killed after the request, and again in the next run. */
  async function again(type: string, makes: RegExp, first: Values, next: Values) {
    const killed = run(type, makes);
    void killed.made(first);
    await killed.dead;
    const { made, said } = run(type);
    return { ...(await made(next)), said };
  }

  test("a secret key whose value was left out since is neither adopted nor overwritten", async () => {
    const place = await makeApp(service, "changed-key");
    const path = `/v1/apps/${place}/secretkeys/SIGN`;
    const given = { app: place, name: "SIGN", type: "nacl_sign" };
    const value = Buffer.alloc(32, 7).toString("base64");
    await expect(again("SecretKey", /POST .*\/SIGN$/, { ...given, value }, given)).rejects.toThrow(
      /other values of value/,
    );
    const theirs = await send(service, "POST", path.replace("SIGN", "KNOWN"), { type: "nacl_sign", value });
    expect(await send(service, "GET", path)).toMatchObject({ public_key: theirs["public_key"] });
  });

  test("a secret key that the service has generated is adopted as it is, because it may be in use", async () => {
    const place = await makeApp(service, "used-key");
    const path = `/v1/apps/${place}/secretkeys/SIGN`;
    const given = { app: place, name: "SIGN", type: "nacl_sign" };
    const killed = run("SecretKey", /POST .*\/SIGN\/generate$/);
    void killed.made(given);
    await killed.dead;
    const before = await send(service, "GET", path);
    await run("SecretKey").made(given);
    expect(await send(service, "GET", path)).toEqual(before);
  });

  const triggered = {
    VolumeSnapshot: async () => {
      const place = await makeApp(service, `changed-${++count}`);
      const inputs = { app: place, volume: await makeVolume(service, place, "ams") };
      return { inputs, makes: /^POST .*\/snapshots$/ };
    },
    PostgresBackup: async () => {
      const inputs = { cluster: await makeCluster(service, `changed-${++count}`) };
      return { inputs, makes: /^POST .*\/backups$/ };
    },
  };
  test.each(Object.entries(triggered))(
    "a %s of other triggers is reported, and another one is taken",
    async (type, given) => {
      const { inputs, makes } = await given();
      const killed = run(type, makes);
      void killed.made({ ...inputs, triggers: { release: "hush-1", by: "us" } });
      await killed.dead;
      const journals = join(home, "machines", "intents");
      const noted = readdirSync(journals).map((name) => readFileSync(join(journals, name), "utf8"));
      expect(noted.join("")).not.toContain("hush-1");
      const next = run(type);
      const { id } = await next.made({ ...inputs, triggers: { release: "hush-2", by: "us" } });
      expect(next.said).toEqual([expect.stringMatching(/was creating .*, and these are new among/)]);
      expect(next.said.join()).not.toContain(id.split("/").at(-1));
    },
  );
  test.each(Object.entries(triggered))("a %s of the same triggers in another order is adopted", async (type, given) => {
    const { inputs, makes } = await given();
    const { said } = await again(
      type,
      makes,
      { ...inputs, triggers: { release: "1", by: "us" } },
      { ...inputs, triggers: { by: "us", release: "1" } },
    );
    expect(said).toEqual([expect.stringMatching(/is adopted/)]);
  });

  const region = "fra";
  test.each([
    ["spelled", { plan: "basic" }, { plan: "Basic" }],
    ["with defaults", {}, { diskSizeGb: 10, pgMajorVersion: "16", poolMode: "session", postgisEnabled: false }],
    ["without defaults", { diskSizeGb: 10, poolMode: "session" }, {}],
  ])("a cluster is adopted if the same inputs are written otherwise: %s", async (_, first, next) => {
    const given = { name: `written-${++count}`, region, plan: "basic", deletionProtection: false };
    const { said } = await again(
      "PostgresCluster",
      /^POST .*\/postgres$/,
      { ...given, ...first },
      { ...given, ...next },
    );
    expect(said).toEqual([expect.stringMatching(/is adopted/)]);
  });

  test("an App is adopted if its default network is named now", async () => {
    const name = `written-${++count}`;
    const { said } = await again("App", /^POST .*\/apps$/, { name }, { name, network: "default" });
    expect(said).toEqual([expect.stringMatching(/is adopted/)]);
  });

  test("an address on a network that was left out since is reported, and another one is assigned", async () => {
    const place = await makeApp(service, `changed-${++count}`);
    await send(service, "POST", "/v1/apps", { name: `${place}-far`, org_slug: "personal", network: "far" });
    const given = { app: place, type: "private_v6" };
    const { id, state, said } = await again(
      "IpAssignment",
      /^POST .*\/ip_assignments$/,
      { ...given, network: "far" },
      given,
    );
    expect(state["network"]).not.toBe("far");
    expect(said).toEqual([expect.stringMatching(/was creating private_v6, and these are new among/)]);
    expect(said.join()).not.toContain(id.split("/").at(-1));
  });

  test.each([{ network: "default" }, { organization: "personal" }])(
    "an address is adopted if its default is named now: %o",
    async (named) => {
      const given = { app: await makeApp(service, `named-${++count}`), type: "private_v6" };
      const { said } = await again("IpAssignment", /^POST .*\/ip_assignments$/, given, { ...given, ...named });
      expect(said).toEqual([expect.stringMatching(/is adopted/)]);
    },
  );

  const file = ({ fullchain, private_key: privateKey }: ReturnType<typeof currentCertificate>) => ({
    fullchain,
    privateKey,
  });
  const value = Buffer.alloc(32, 7).toString("base64");
  const overwritten = {
    SecretKey: [/\/secretkeys\/SIGN/, "secretKeys.set", { name: "SIGN", type: "nacl_sign", value }],
    CustomCertificate: [
      /\/certificates/,
      "certificates.createCustom",
      { hostname: "late.example.com", ...file(currentCertificate({ hosts: ["late.example.com"] })) },
    ],
  } as const;
  test.each(Object.entries(overwritten))(
    "a %s that is adopted late is adopted again if the answer to that is lost",
    async (type, [path, operation, given]) => {
      const inputs = { app: await makeApp(service, `late-${++count}`), ...given };
      const makes = new RegExp(`^POST .*${path.source}`);
      // As if the killed run were ten minutes ago: in its entry, and in what the service shows of that time.
      const killed = run(type, makes);
      void killed.made(inputs);
      await killed.dead;
      const aged = (text: string): string =>
        text.replaceAll(/(?<=_at":")[^"]+/g, (time) => new Date(Date.parse(time) - 600_000).toISOString());
      const journals = join(home, "machines", "intents");
      for (const name of readdirSync(journals)) {
        const lines = readFileSync(join(journals, name), "utf8");
        writeFileSync(
          join(journals, name),
          lines.replaceAll(/(?<="at":)\d+/g, (at) => String(Number(at) - 600_000)),
        );
      }
      const direct = httpTransport({});
      const old = async (request: Sent): Promise<Outcome> => {
        const outcome = await direct(request);
        return outcome.kind === "answer" ? { ...outcome, text: aged(outcome.text) } : outcome;
      };
      service.fail({ operation, when: "after", status: 503, times: 20 });
      const late = run(type, undefined, Object.assign(old, { close: () => direct.close() }));
      await expect(late.made(inputs)).rejects.toThrow(operation);
      expect(late.said).toEqual([expect.stringMatching(/is adopted/)]);
      service.service.faults.clear();
      const { made, said } = run(type);
      await made(inputs);
      expect(said).toEqual([expect.stringMatching(/is adopted/)]);
    },
  );

  test("an object that is adopted late is adopted again if the run is killed before it writes it again", async () => {
    const inputs = { app: await makeApp(service, `late-${++count}`), name: "SIGN", type: "nacl_sign", value };
    const killed = run("SecretKey", /^POST .*\/SIGN$/);
    void killed.made(inputs);
    await killed.dead;
    service.fail({ operation: "secretKeys.set", when: "before", status: 503, times: 20 });
    await expect(run("SecretKey").made(inputs)).rejects.toThrow("secretKeys.set");
    service.service.faults.clear();
    const { made, said } = run("SecretKey");
    await made(inputs);
    expect(said).toEqual([expect.stringMatching(/is adopted/)]);
  });
});
