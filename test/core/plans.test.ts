// Plans, for every type: an update stops if the service has changed since the preview, and does its work otherwise. The bindings share
// this; test/e2e/plans.test.ts runs both with the real CLI.
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { makeApp, makeCluster, makeMachine, send } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { currentCertificate } from "../support/certificates.ts";
import { entriesOf, none, type EveryType } from "../support/everyType.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const image = (tag: string): string => `registry.example.com/web:${tag}`;
const config = { image: image("1") };
const day = 24 * 3600_000;
const hosts = ["www.example.com"];
const certificate = (days: number): Values => {
  const { fullchain, private_key: privateKey } = currentCertificate({
    hosts,
    until: new Date(Date.now() + days * day),
  });
  return { fullchain, privateKey };
};

interface MachineShown {
  readonly id: string;
  readonly config: Values;
}

/** A path in the App of a state, or in its cluster. */
const at = (state: Values, rest: string): string =>
  Object.hasOwn(state, "app")
    ? `/v1/apps/${String(state["app"])}${rest}`
    : `/v1/postgres/${String(state["cluster"])}${rest}`;
const setSecret = (service: TestService, state: Values, name: string, value: string) =>
  send(service, "POST", at(state, `/secrets/${name}`), { value });
/** Gives a Machine another version. */
const newVersion = async (service: TestService, path: string): Promise<void> => {
  const live = await send<MachineShown>(service, "GET", path);
  await send(service, "POST", path, { config: { ...live.config, env: { OURS: "no" } } });
};

interface Planned {
  readonly given: (service: TestService) => Promise<Values>;
  /** Inputs of the changed program. */
  readonly change: Values;
  /** What others change. */
  readonly interfere: (service: TestService, state: Values) => Promise<unknown>;
  /** What the message names. */
  readonly names: RegExp;
}

const onlyExistence = none("nobody can change it in a way that matters to it: that it exists is compared");
const table: EveryType<Planned> = {
  AcmeCertificate: onlyExistence,
  App: {
    given: () => Promise.resolve({ name: "plan-app" }),
    change: { name: "plan-other" },
    interfere: async (service) => {
      await send(service, "DELETE", "/v1/apps/plan-app");
      await makeApp(service, "plan-app");
    },
    names: /appId was \w+ and is \w+/,
  },
  AppSecrets: {
    given: async (service) => ({
      app: await makeApp(service, "plan-secrets"),
      values: { A: "first-value", B: "second-value" },
    }),
    change: { values: { A: "first-value", B: "third-value" } },
    interfere: (service, state) => setSecret(service, state, "A", "theirs"),
    names: /secret A differs\./,
  },
  CertificateValidation: onlyExistence,
  Ciphertext: onlyExistence,
  CustomCertificate: {
    given: async (service) => ({ app: await makeApp(service, "plan-cert"), hostname: hosts[0], ...certificate(90) }),
    change: certificate(200),
    interfere: (service, state) =>
      send(service, "POST", at(state, "/certificates/custom"), {
        hostname: hosts[0],
        ...currentCertificate({ hosts, until: new Date(Date.now() + 20 * day) }),
      }),
    names: /expiresAt was .* and is /,
  },
  DeployToken: onlyExistence,
  Fleet: {
    given: async (service) => ({ app: await makeApp(service, "plan-fleet"), name: "web", regions: { ams: 2 }, config }),
    change: { config: { image: image("2") } },
    interfere: async (service, state) => {
      const [first] = await send<MachineShown[]>(service, "GET", at(state, "/machines"));
      await newVersion(service, at(state, `/machines/${first?.id ?? ""}`));
    },
    names: /Machine web-ams-\d was plan-fleet\/\w+ \w+ and is plan-fleet\/\w+ \w+/,
  },
  IpAssignment: onlyExistence,
  Machine: {
    given: async (service) => ({ app: await makeApp(service, "plan-machine"), region: "ams", config }),
    change: { config: { image: image("2") } },
    interfere: (service, state) => newVersion(service, at(state, `/machines/${String(state["machineId"])}`)),
    names: /version was \w+ and is \w+/,
  },
  MachineCommand: none("it changes nothing that it could compare"),
  MachineMetadata: {
    given: async (service) => {
      const app = await makeApp(service, "plan-metadata");
      const machine = await makeMachine(service, app, { region: "ams", config });
      return { app, machine, values: { role: "ours" } };
    },
    change: { values: { role: "ours", more: "x" } },
    interfere: (service, state) =>
      send(service, "POST", at(state, `/machines/${String(state["machineId"])}/metadata/role`), { value: "theirs" }),
    names: /values differs/,
  },
  PostgresAttachment: {
    given: async (service) => ({
      cluster: await makeCluster(service, "attached"),
      app: await makeApp(service, "plan-attached"),
      secretName: "URL",
    }),
    change: { uri: "postgres://elsewhere" },
    interfere: (service, { app }) => setSecret(service, { app }, "URL", "theirs"),
    names: /secret URL differs/,
  },
  PostgresBackup: onlyExistence,
  PostgresCluster: none("a change replaces it, and nobody else can change it in place"),
  PostgresDatabase: onlyExistence,
  PostgresExtension: none("a change replaces it, and nobody else can change it in place"),
  PostgresUser: {
    given: async (service) => ({ cluster: await makeCluster(service, "users"), username: "anna", role: "writer" }),
    change: { rotationTriggers: { month: "2026-02" } },
    interfere: (service, state) =>
      send(service, "PATCH", at({ cluster: state["cluster"] }, "/users/anna"), { role: "reader" }),
    names: /role differs/,
  },
  Secret: {
    given: async (service) => ({ app: await makeApp(service, "plan-secret"), name: "TOKEN", value: "first-value" }),
    change: { value: "second-value" },
    interfere: (service, state) => setSecret(service, state, "TOKEN", "theirs"),
    names: /digest differs/,
  },
  SecretKey: {
    given: async (service) => ({
      ...{ app: await makeApp(service, "plan-key"), name: "SIGN", type: "nacl_sign" },
      allowDataLoss: true,
    }),
    change: { type: "hs256" },
    interfere: async (service, state) => {
      await send(service, "DELETE", at(state, "/secretkeys/SIGN"));
      await send(service, "POST", at(state, "/secretkeys/SIGN/generate"), { type: "nacl_sign" });
    },
    names: /publicKey was .* and is /,
  },
  Signature: onlyExistence,
  Volume: {
    given: async (service) => ({ app: await makeApp(service, "plan-volume"), region: "ams", sizeGb: 1 }),
    change: { sizeGb: 3 },
    interfere: (service, state) =>
      send(service, "PUT", at(state, `/volumes/${String(state["volumeId"])}/extend`), { size_gb: 2 }),
    names: /currentSizeGb was 1 and is 2/,
  },
  VolumeSnapshot: onlyExistence,
};

let count = 0;
const folder = mkdtempSync(join(tmpdir(), "machines-plans-"));
afterEach(() => vi.unstubAllEnvs());

/** Begins a run with one of the variables, or none. */
async function begin(bound: Bound, variables: Readonly<Record<string, string>>): Promise<void> {
  vi.unstubAllEnvs();
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  await bound.nextRun();
}

describe.each(entriesOf(table))("a plan of a %s", (type, { given, change, interfere, names }) => {
  let service: TestService;
  let bound: Bound;
  let program: Values;
  let inputs: Values;
  let id: string;
  let state: Values;

  beforeAll(async () => {
    service = await startService();
    bound = bind(type, service);
    program = { ...(await given(service)), __context: { owner: `plan of a ${type}`, name: "planned" } };
    ({ inputs } = await bound.check({}, program));
    await bound.nextRun();
    ({ id, state } = await bound.create(inputs));
  });
  afterAll(() => service.close());

  const changed = async (): Promise<Values> => {
    const { inputs: next, failures } = await bound.check(inputs, { ...program, ...change });
    expect(failures).toEqual([]);
    return next;
  };
  /** A preview of the change, whose file is returned. */
  const preview = async (): Promise<string> => {
    const file = join(folder, `${++count}.json`);
    await begin(bound, { MACHINES_SAVE_PLAN: file });
    const before = service.requests.length;
    const asked = await changed();
    expect(await bound.diff(id, state, asked)).not.toBe("same");
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
    return file;
  };
  const writes = async (work: () => Promise<unknown>): Promise<number> => {
    const before = service.requests.length;
    await work();
    return service.requests.slice(before).filter((seen) => isWrite(seen) && !/Lease/.test(seen.operation ?? "")).length;
  };
  const hasChanged = (since: string) =>
    expect.objectContaining({ message: expect.stringMatching(new RegExp(`has changed since ${since}`)) });

  test("stops before the change when others have changed it since the preview, and changes nothing", async () => {
    const file = await preview();
    expect(await writes(() => interfere(service, state))).toBeGreaterThan(0);
    await begin(bound, { MACHINES_PLAN: file });
    const next = await changed();
    const refused = await bound.diff(id, state, next).catch((error: unknown) => error);
    expect(refused).toEqual(hasChanged("the preview of this plan"));
    expect(String(refused)).toMatch(names);
    expect(await writes(() => expect(bound.update(id, state, next)).rejects.toEqual(hasChanged("the preview")))).toBe(
      0,
    );
    await begin(bound, { MACHINES_PLAN: await planWithout() });
    expect(await writes(() => expect(bound.delete(id, state)).rejects.toEqual(hasChanged("the state was last")))).toBe(
      0,
    );
  });

  /** The file of a preview that has not seen the object: the engine does not send a preview what it deletes. */
  const planWithout = async (): Promise<string> => {
    const file = join(folder, `${++count}.json`);
    await begin(bound, { MACHINES_SAVE_PLAN: file });
    const app = await makeApp(service, `other-${count}`);
    const other = { app, name: "OTHER", value: "x", __context: { owner: "other" } };
    expect((await bind("Secret", service).check({}, other)).failures).toEqual([]);
    expect(readFileSync(file, "utf8")).toContain("OTHER");
    return file;
  };

  test("changes and deletes what nobody has changed, and the file holds no secret", async () => {
    await begin(bound, {});
    const found = await bound.read(id, state);
    ({ state } = found ?? { state });
    const file = await preview();
    const text = readFileSync(file, "utf8");
    for (const secret of ["first-value", "second-value", "third-value", "theirs", "ours"])
      expect(text).not.toContain(`"${secret}"`);
    await begin(bound, { MACHINES_PLAN: file });
    const next = await changed();
    if ((await bound.diff(id, state, next)) === "update")
      expect(await writes(async () => (state = await bound.update(id, state, next)))).toBeGreaterThan(0);
    await begin(bound, { MACHINES_PLAN: await planWithout() });
    expect(await writes(() => bound.delete(id, state))).toBeGreaterThan(0);
  });
});

/** A resource of a program, with its inputs in the program. */
interface Part {
  readonly type: string;
  readonly inputs: Values;
}

interface Move {
  readonly from: Part;
  readonly to: Part;
  /** The resource that gets the name, before it does. */
  readonly before?: Part;
  /** What the preview knows of it afterwards, if that is not all. */
  readonly previewed?: Part;
}

describe("a plan that moves the name of a secret", () => {
  let service: TestService;
  let cluster: string;
  beforeAll(async () => {
    service = await startService();
    cluster = await makeCluster(service, "moving");
  });
  afterAll(() => service.close());

  const secret = (value: string): Part => ({ type: "Secret", inputs: { name: "TOKEN", value } });
  const several = (values: Values): Part => ({ type: "AppSecrets", inputs: { values } });
  const attachment = (uri: string): Part => ({ type: "PostgresAttachment", inputs: { secretName: "TOKEN", uri } });
  const toNewCluster = { ...attachment("other").inputs, cluster: UNKNOWN };
  const moves: Readonly<Record<string, Move>> = {
    "from a Secret to new AppSecrets": { from: secret("mine"), to: several({ TOKEN: "other" }) },
    "from a Secret to AppSecrets": {
      ...{ from: secret("mine"), to: several({ X: "x", TOKEN: "other" }) },
      before: several({ X: "x" }),
    },
    "from deleted AppSecrets to a Secret": { from: several({ TOKEN: "mine" }), to: secret("other") },
    "from a Secret to a PostgresAttachment": { from: secret("mine"), to: attachment("other") },
    "from a Secret to a PostgresAttachment of a new cluster": {
      ...{ from: secret("mine"), to: attachment("other") },
      previewed: { type: "PostgresAttachment", inputs: toNewCluster },
    },
    "from a PostgresAttachment to a Secret": { from: attachment("mine"), to: secret("other") },
  };

  /** A resource in a run: as the engine declares, compares, creates, updates and deletes it. */
  class Moving {
    readonly #bound: Bound;
    readonly #context: Values;
    #made: { readonly inputs: Values; readonly id: string; readonly state: Values } | undefined;
    constructor(type: string, app: string, owner: string) {
      this.#bound = bind(type, service);
      const parents = type === "PostgresAttachment" ? { app, cluster } : { app };
      this.#context = { ...parents, __context: { owner: `${app} ${owner}`, name: owner } };
    }
    /** What the engine asks of it before the first change of a run. */
    async declare({ inputs }: Part): Promise<Values> {
      const { inputs: next, failures } = await this.#bound.check(this.#made?.inputs ?? {}, {
        ...this.#context,
        ...inputs,
      });
      expect(failures).toEqual([]);
      if (this.#made) await this.#bound.diff(this.#made.id, this.#made.state, next);
      return next;
    }
    async apply(inputs: Values): Promise<void> {
      const before = this.#made;
      const made = before
        ? { id: before.id, state: await this.#bound.update(before.id, before.state, inputs) }
        : await this.#bound.create(inputs);
      this.#made = { inputs, ...made };
    }
    async delete(): Promise<void> {
      if (this.#made) await this.#bound.delete(this.#made.id, this.#made.state);
      this.#made = undefined;
    }
    begin = (variables: Readonly<Record<string, string>>): Promise<void> => begin(this.#bound, variables);
  }

  /** The value of the secret in the service. */
  const valueOf = async (app: string): Promise<string | undefined> => {
    const { secrets } = await send<{ secrets: { name: string; value?: string }[] }>(
      service,
      "GET",
      `/v1/apps/${app}/secrets?show_secrets=true`,
    );
    return secrets.find(({ name }) => name === "TOKEN")?.value;
  };

  /** Makes what the move begins with, and previews the move. */
  const planned = async ({ from, to, before, previewed = to }: Move) => {
    const app = await makeApp(service, `moving-${++count}`);
    const [source, target] = [new Moving(from.type, app, "source"), new Moving(to.type, app, "target")];
    await source.begin({});
    await source.apply(await source.declare(from));
    if (before) await target.apply(await target.declare(before));
    const file = join(folder, `${app}.json`);
    await source.begin({ MACHINES_SAVE_PLAN: file });
    await target.declare(previewed);
    await source.begin({ MACHINES_PLAN: file });
    return { app, source, target };
  };

  test.each(Object.entries(moves))("%s with another value is carried out", async (_, move) => {
    const { app, source, target } = await planned(move);
    await target.apply(await target.declare(move.to));
    await source.delete();
    expect(await valueOf(app)).toBe("other");
  });

  test.each(Object.entries(moves))("%s stops if others have changed it since the preview", async (_, move) => {
    const { app, source, target } = await planned(move);
    await setSecret(service, { app }, "TOKEN", "theirs");
    const run = async () => {
      await target.apply(await target.declare(move.to));
      await source.delete();
    };
    await expect(run()).rejects.toThrow(/has changed since/);
  });

  test.each(["first", "last"])("out of AppSecrets that are changed %s is carried out, too", async (when) => {
    const staying = async (isChanged: boolean) => {
      const [all, rest] = [several({ X: "x", TOKEN: "mine" }), several({ X: "x" })];
      const app = await makeApp(service, `moving-${++count}`);
      const [source, target] = [new Moving("AppSecrets", app, "source"), new Moving("Secret", app, "target")];
      await source.begin({});
      await source.apply(await source.declare(all));
      const file = join(folder, `${app}.json`);
      await source.begin({ MACHINES_SAVE_PLAN: file });
      await source.declare(rest);
      await target.declare(secret("other"));
      await source.begin({ MACHINES_PLAN: file });
      if (isChanged) await setSecret(service, { app }, "TOKEN", "theirs");
      // The engine compares a resource when it gets to it, also after others have been changed.
      const release = async () => source.apply(await source.declare(rest));
      const claim = async () => target.apply(await target.declare(secret("other")));
      for (const step of when === "first" ? [release, claim] : [claim, release]) await step();
      return valueOf(app);
    };
    expect(await staying(false)).toBe("other");
    await expect(staying(true)).rejects.toThrow(/AppSecrets moving-\d+ has changed since the preview.*TOKEN differs/);
  });
});

describe("a plan", () => {
  let service: TestService;
  let secret: Bound;
  const wanted = (name: string) => ({ app: "new-shop", name, value: "x", __context: { owner: `plan ${name}` } });
  beforeAll(async () => {
    service = await startService();
    secret = bind("Secret", service);
    await makeApp(service, "new-shop");
  });
  afterAll(() => service.close());

  test("does not overwrite what others have created since the preview", async () => {
    const file = join(folder, "created.json");
    await begin(secret, { MACHINES_SAVE_PLAN: file });
    expect((await secret.check({}, wanted("NEW"))).failures).toEqual([]);
    await setSecret(service, { app: "new-shop" }, "NEW", "theirs");
    await begin(secret, { MACHINES_PLAN: file });
    const { inputs, failures } = await secret.check({}, wanted("NEW"));
    expect(failures).toEqual([expect.stringContaining("has changed since the preview of this plan: it was created")]);
    await expect(secret.create(inputs)).rejects.toThrow("it was created");
  });

  test("does not overwrite the new name of a secret if others have set it since the preview", async () => {
    const first = await secret.check({}, wanted("OLD"));
    const { id, state } = await secret.create(first.inputs);
    const renamed = { ...wanted("RENAMED"), __context: { owner: "plan OLD" } };
    const file = join(folder, "renamed.json");
    await begin(secret, { MACHINES_SAVE_PLAN: file });
    const { inputs } = await secret.check(first.inputs, renamed);
    expect(await secret.diff(id, state, inputs)).toBe("replace");
    // The engine checks the replacement without the inputs of the original.
    expect((await secret.check({}, renamed)).failures).toEqual([]);
    await setSecret(service, { app: "new-shop" }, "RENAMED", "theirs");
    await begin(secret, { MACHINES_PLAN: file });
    expect((await secret.check(first.inputs, renamed)).failures).toEqual([]);
    expect(await secret.diff(id, state, inputs)).toBe("replace");
    expect((await secret.check({}, renamed)).failures).toEqual([expect.stringContaining("it was created")]);
    await expect(secret.create(inputs)).rejects.toThrow("it was created");
  });

  test("does not overwrite a write-only secret that others have set since the preview", async () => {
    const several = bind("AppSecrets", service);
    const app = await makeApp(service, "write-only");
    const of = (valuesWo: Values, valuesVersion: number) => ({
      ...{ app, valuesWo, valuesVersion, __context: { owner: "plan write-only" } },
    });
    const preview = async (olds: Values, news: Values, compare: (inputs: Values) => Promise<unknown>) => {
      const file = join(folder, `write-only-${++count}.json`);
      await begin(several, { MACHINES_SAVE_PLAN: file });
      const { inputs, failures } = await several.check(olds, news);
      expect(failures).toEqual([]);
      await compare(inputs);
      return { inputs, file };
    };
    const none = () => Promise.resolve();
    const overwritten = await preview({}, of({ A: "ours" }, 1), none);
    await setSecret(service, { app }, "A", "theirs");
    await begin(several, { MACHINES_PLAN: overwritten.file });
    const { failures } = await several.check({}, of({ A: "ours" }, 1));
    expect(failures).toEqual([expect.stringContaining("secret A was none and is set")]);
    await expect(several.create(overwritten.inputs)).rejects.toThrow("secret A was none and is set");

    const before = await preview({}, of({ A: "ours" }, 1), none);
    await begin(several, { MACHINES_PLAN: before.file });
    await several.check({}, of({ A: "ours" }, 1));
    const { id, state } = await several.create(before.inputs);
    const more = of({ A: "ours", NEW: "ours" }, 2);
    const { inputs, file } = await preview(before.inputs, more, (next) => several.diff(id, state, next));
    await setSecret(service, { app }, "NEW", "theirs");
    await begin(several, { MACHINES_PLAN: file });
    expect((await several.check(before.inputs, more)).failures).toEqual([]);
    await expect(several.diff(id, state, inputs)).rejects.toThrow("secret NEW differs");
    await expect(several.update(id, state, inputs)).rejects.toThrow("secret NEW differs");
  });

  test("of what is created in an App of the same update is not compared with the App's absence", async () => {
    const file = join(folder, "new-app.json");
    const inApp = { app: "later-shop", __context: { owner: "plan later" } };
    const wantedOf = {
      AppSecrets: { ...inApp, values: { A: "x" } },
      Fleet: { ...inApp, name: "web", regions: { ams: 1 }, config },
      Secret: { ...inApp, name: "TOKEN", value: "x" },
    };
    const types = Object.entries(wantedOf).map(([type, inputs]) => ({ inputs, one: bind(type, service) }));
    await begin(secret, { MACHINES_SAVE_PLAN: file });
    for (const { one, inputs } of types) expect((await one.check({}, inputs)).failures).toEqual([]);
    await begin(secret, { MACHINES_PLAN: file });
    await makeApp(service, "later-shop");
    for (const { one, inputs } of types) {
      const checked = await one.check({}, inputs);
      expect(checked.failures).toEqual([]);
      await one.create(checked.inputs);
    }
  });

  test("of an earlier preview in the same file is not used, and a file that is none is refused", async () => {
    await begin(secret, { MACHINES_PLAN: join(folder, "missing.json") });
    const { failures } = await secret.check({}, wanted("OTHER"));
    expect(failures).toEqual([expect.stringMatching(/MACHINES_PLAN: got ".*missing.json", which cannot be read/)]);
    await begin(secret, { MACHINES_PLAN: "package.json" });
    expect((await secret.check({}, wanted("OTHER"))).failures).toEqual([
      expect.stringContaining("line 1 of the file is not of a preview"),
    ]);
    await begin(secret, { MACHINES_PLAN: "a.json", MACHINES_SAVE_PLAN: "a.json" });
    expect((await secret.check({}, wanted("OTHER"))).failures).toEqual([expect.stringContaining("are both set")]);
  });
});
