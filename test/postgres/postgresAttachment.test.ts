import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { runs } from "../../provider/dynamic/run.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, makeCluster, once, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const anotherApp = once((service) => makeApp(service, "another"));
const anotherCluster = once(async (service) => {
  const cluster = await makeCluster(service, "another");
  await send(service, "POST", `/v1/postgres/${cluster}/users`, { username: "anna", role: "writer" });
  return cluster;
});

const setSecret = (service: TestService, { app, secretName }: Record<string, unknown>, value: string | null) =>
  send(service, "POST", `/v1/apps/${String(app)}/secrets`, { values: { [String(secretName)]: value } });

lifecycle("PostgresAttachment", {
  writeOnly: ["secretName", "uri", "user", "password", "database"],
  sent: ["uri", "user", "password", "database"],
  steady: {
    uri: "what became of the secret shows at secretName",
    user: "likewise",
    password: "likewise",
    database: "likewise",
  },
  given: async (service) => ({
    cluster: await makeCluster(service, "main"),
    app: await makeApp(service, "web"),
  }),
  changes: async (service) => {
    const cluster = await anotherCluster(service);
    return [
      { set: { secretName: "DATABASE_URL" }, expect: "update" },
      { set: { uri: "postgres://elsewhere" }, expect: "update" },
      { set: { app: await anotherApp(service) }, expect: "replace" },
      { set: { cluster }, expect: "delete-replace" },
      { set: { uri: null, user: `${cluster}/user/anna` }, expect: "update", then: { user: `${cluster}/user/anna` } },
      { set: { user: "other" }, expect: "update", diffOnly: true },
      { set: { password: "password" }, expect: "update" },
      { set: { database: `${cluster}/database/shop` }, expect: "update" },
      { set: { password: undefined }, expect: "update" },
      { set: { user: undefined, database: undefined, uri: "postgres://elsewhere" }, expect: "update" },
      { set: { secretName: undefined, uri: undefined }, expect: "update" },
      { set: { secretName: "DATABASE_URL", user: `${cluster}/user/anna` }, expect: "update" },
    ];
  },
  drift: [
    { interfere: (service, state) => setSecret(service, state, "mine"), shows: { secretName: undefined } },
    {
      interfere: (service, { app }) => setSecret(service, { app, secretName: "DATABASE_URL" }, null),
      shows: { secretName: undefined },
    },
  ],
});

describe("PostgresAttachment", () => {
  let service: TestService;
  let attachment: Bound;
  let cluster: string;
  beforeAll(async () => {
    service = await startService();
    attachment = bind("PostgresAttachment", service);
    cluster = await makeCluster(service, "main");
  });
  afterAll(() => service.close());

  const make = async (inputs: Record<string, unknown>) => {
    const checked = await attachment.check({}, { cluster, ...inputs });
    expect(checked.failures).toEqual([]);
    const made = await attachment.create(checked.inputs);
    // A run does not delete what it adopts, so a new run begins.
    runs.begin();
    return { inputs: checked.inputs, ...made };
  };
  const secretsOf = async (app: string) => {
    const path = `/v1/apps/${app}/secrets?show_secrets=true`;
    const { secrets } = await send<{ secrets: { name: string; value: string }[] }>(service, "GET", path);
    return Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
  };
  const sentBy = async (work: () => Promise<unknown>) => {
    const before = service.requests.length;
    await work();
    return service.requests.slice(before).map(({ operation }) => operation);
  };
  const credentials = async (user: string) =>
    (await send<{ data: { password: string } }>(service, "GET", `/v1/postgres/${cluster}/users/${user}/credentials`))
      .data.password;

  test("an attachment without a secret is one request, and an existing one is adopted (F32)", async () => {
    const app = await makeApp(service, "plain");
    for (const status of [201, 200]) {
      const sent = await sentBy(() => make({ app }));
      expect(sent).toEqual(["postgres.attach"]);
      expect(service.requests.at(-1)?.status).toBe(status);
    }
    expect(await secretsOf(app)).toEqual({});
  });

  test("PostgresAttachment sets the secret to the cluster's pooler URI with one write, and unsets it on deletion", async () => {
    const app = await makeApp(service, "with-secret");
    let made = { id: "", state: {} as Record<string, unknown>, inputs: {} as Record<string, unknown> };
    const sent = await sentBy(async () => (made = await make({ app, secretName: "DATABASE_URL" })));
    expect(sent.filter((operation) => operation?.startsWith("secrets."))).toEqual(["secrets.list", "secrets.update"]);
    const uri = `postgresql://fly-user:${await credentials("fly-user")}@pgbouncer.${cluster}.postgres.machines.test:5432/fly-db`;
    expect(await secretsOf(app)).toEqual({ DATABASE_URL: uri });
    expect(made.id).toBe(`${cluster}/${app}`);
    expect(made.state["secretsVersion"]).toBe(1);
    expect(JSON.stringify(made.state)).not.toContain(uri);
    await attachment.delete(made.id, made.state);
    expect(await secretsOf(app)).toEqual({});
    expect(await attachment.read(made.id, made.state)).toBeUndefined();
  });

  test("any user, password and database are escaped in the URI", async () => {
    const app = await makeApp(service, "escaped");
    const password = "a/b?c#d@e:f g%20";
    const database = `${cluster}/database/shop_1`;
    await make({ app, secretName: "URL", user: `${cluster}/user/anna`, password, database });
    const uri = new URL(String((await secretsOf(app))["URL"]));
    expect(uri.username).toBe("anna");
    expect(decodeURIComponent(uri.password)).toBe(password);
    expect(uri.pathname).toBe("/shop_1");
  });

  test("a changed name moves the secret, and no name unsets it", async () => {
    const app = await makeApp(service, "renamed");
    const { id, state, inputs } = await make({ app, secretName: "ONE", uri: "postgres://x" });
    const two = { ...inputs, secretName: "TWO" };
    const moved = await attachment.update(id, state, two);
    expect(await secretsOf(app)).toEqual({ TWO: "postgres://x" });
    const bare = await attachment.update(id, moved, { cluster, app });
    expect(await secretsOf(app)).toEqual({});
    expect(bare).not.toHaveProperty("secretDigest");
  });

  test("a secret that another writer has set is overwritten with a warning, its own without", async () => {
    const app = await makeApp(service, "taken");
    for (const secretName of ["ONE", "TWO"]) await setSecret(service, { app, secretName }, "theirs");
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const warningOf = async (work: () => Promise<unknown>) => {
      said.mockClear();
      await work();
      return said.mock.calls.join("\n");
    };
    try {
      const { inputs } = await attachment.check({}, { cluster, app, secretName: "ONE", uri: "postgres://x" });
      let made = { id: "", state: {} as Record<string, unknown> };
      expect(await warningOf(async () => (made = await attachment.create(inputs)))).toMatch(
        /App taken has ONE already/,
      );
      const { id } = made;
      let { state } = made;
      const changed = { ...inputs, uri: "postgres://y" };
      expect(await warningOf(async () => (state = await attachment.update(id, state, changed)))).toBe("");
      const next = { ...inputs, secretName: "TWO" };
      expect(await warningOf(() => attachment.update(id, state, next))).toMatch(/App taken has TWO already/);
      expect(await secretsOf(app)).toEqual({ TWO: "postgres://x" });
    } finally {
      said.mockRestore();
    }
  });

  test("if the secret could not be set, the attachment stays in the state and is repaired", async () => {
    const app = await makeApp(service, "partly");
    service.fail({ operation: "secrets.update", status: 400, when: "before", times: 1 });
    const { inputs } = await attachment.check({}, { cluster, app, secretName: "URL", uri: "postgres://x" });
    const failure = await attachment.create(inputs).catch((error: unknown) => error);
    const { id, properties } = failure as { id: string; properties: Record<string, unknown> };
    expect(id).toBe(`${cluster}/${app}`);
    expect(properties).not.toHaveProperty("secretName");
    expect(await attachment.update(id, properties, inputs)).toMatchObject({ secretName: "URL" });
    expect(await secretsOf(app)).toEqual({ URL: "postgres://x" });
  });

  test("a 404 about the App does not prove that the attachment is gone, so it is detached", async () => {
    const app = await makeApp(service, "answers-404");
    const { id, state } = await make({ app, secretName: "URL", uri: "postgres://x" });
    service.fail({ operation: "secrets.update", status: 404, when: "before", times: 1 });
    expect(await sentBy(() => attachment.delete(id, state))).toEqual([
      ...["secrets.list", "secrets.update", "apps.get", "postgres.detach"],
    ]);
    expect(await attachment.read(id, state)).toBeUndefined();
  });

  test("without proof that the App is gone, neither the secret nor the attachment is forgotten", async () => {
    const app = await makeApp(service, "still-listed");
    const { id, state } = await make({ app, secretName: "URL", uri: "postgres://x" });
    const missing = { status: 404, when: "before", times: "always" } as const;
    for (const operation of ["secrets.get", "secrets.update", "apps.get"]) service.fail({ operation, ...missing });
    try {
      await expect(attachment.read(id, state)).rejects.toThrow(/404 for App still-listed and still lists it/);
      await expect(attachment.delete(id, state)).rejects.toThrow(/404 for App still-listed and still lists it/);
    } finally {
      service.service.faults.clear();
    }
    expect((await attachment.read(id, state))?.state).toEqual(state);
  });

  test("an attachment is gone if it was detached outside or its App was deleted", async () => {
    for (const undo of [
      (app: string) => send(service, "DELETE", `/v1/postgres/${cluster}/attachments/${app}`),
      (app: string) => send(service, "DELETE", `/v1/apps/${app}`),
    ]) {
      const app = await makeApp(service, `undone-${service.requests.length}`);
      const { id, state } = await make({ app, secretName: "URL", uri: "postgres://x" });
      await undo(app);
      expect(await attachment.read(id, state)).toBeUndefined();
      await attachment.delete(id, state);
    }
  });

  test("connection inputs are given once, and need a secret name", async () => {
    const problems = async (inputs: Record<string, unknown>) =>
      (await attachment.check({}, { cluster, app: "web", ...inputs })).failures.join("\n");
    expect(await problems({ uri: "postgres://x" })).toMatch(/uri: is a part of the secret's value; set secretName too/);
    expect(await problems({ secretName: "URL", uri: "x", user: "anna" })).toMatch(/user: cannot be combined with uri/);
    expect(await problems({ secretName: "URL", password: "x" })).toMatch(/password: needs the user/);
    expect(await problems({ secretName: "URL", user: "c/user/NOT" })).toMatch(/user: .*name of a PostgresUser/);
    expect(await problems({ secretName: "URL", user: "c/user/anna" })).toBe("");
  });
});
