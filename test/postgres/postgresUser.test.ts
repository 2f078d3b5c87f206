import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bind, type Bound } from "../support/binding.ts";
import { makeCluster, once, send } from "../support/around.ts";
import { handled } from "../support/handled.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const another = once((service) => makeCluster(service, "another"));

lifecycle("PostgresUser", {
  // Only the program knows why a password was changed.
  writeOnly: ["rotationTriggers"],
  steady: { rotationTriggers: "a reason to rotate, of which the service knows nothing" },
  given: async (service) => ({ cluster: await makeCluster(service, "main"), username: "anna", role: "writer" }),
  changes: async (service) => [
    { set: { role: "reader" }, expect: "update" },
    { set: { rotationTriggers: { month: "2026-01" } }, expect: "update" },
    { set: { rotationTriggers: { month: "2026-02" }, role: "schema_admin" }, expect: "update" },
    { set: { rotationTriggers: undefined }, expect: "update" },
    { set: { killSessions: true }, expect: "no request" },
    { set: { username: "berta" }, expect: "replace" },
    { set: { cluster: await another(service) }, expect: "replace" },
  ],
  drift: [
    {
      interfere: (service, { cluster, username }) =>
        send(service, "PATCH", `/v1/postgres/${String(cluster)}/users/${String(username)}`, { role: "reader" }),
      shows: { role: "reader" },
    },
  ],
});

describe("PostgresUser", () => {
  let service: TestService;
  let user: Bound;
  let cluster: string;
  beforeAll(async () => {
    service = await startService();
    user = bind("PostgresUser", service);
    cluster = await makeCluster(service, "main");
  });
  afterAll(() => service.close());

  const make = async (inputs: Record<string, unknown>) => {
    const checked = await user.check({}, { cluster, role: "writer", ...inputs });
    expect(checked.failures).toEqual([]);
    return { inputs: checked.inputs, ...(await user.create(checked.inputs)) };
  };
  const path = (username: string) => `/v1/postgres/${cluster}/users/${username}`;
  const passwordOf = async (username: string) =>
    (await send<{ data: { password: string } }>(service, "GET", `${path(username)}/credentials`)).data.password;
  const sentBy = async (work: () => Promise<unknown>) => {
    const before = service.requests.length;
    await work();
    return service.requests.slice(before).map(({ operation }) => operation);
  };

  test("its password is an output; one changed outside is shown without a difference", async () => {
    const { id, inputs, state } = await make({ username: "anna" });
    expect(id).toBe(`${cluster}/user/anna`);
    expect(state["password"]).toBe(await passwordOf("anna"));
    await send(service, "POST", `${path("anna")}/rotate_password`, {});
    const found = await user.read(id, state);
    expect(found?.state["password"]).toBe(await passwordOf("anna"));
    expect(found?.state["password"]).not.toBe(state["password"]);
    expect(await user.diff(id, found?.state ?? {}, inputs)).toBe("same");
  });

  test("only triggers rotate the password, once, and end sessions if requested", async () => {
    const { id, inputs, state } = await make({ username: "berta", killSessions: true });
    const next = { ...inputs, rotationTriggers: { on: "a" } };
    let after: Record<string, unknown> = {};
    const sent = await sentBy(async () => (after = await user.update(id, state, next)));
    expect(sent).toEqual(["postgres.credentials", "postgres.rotatePassword"]);
    expect(after["password"]).toBe(await passwordOf("berta"));
    expect(after["password"]).not.toBe(state["password"]);
    const role = await user.update(id, after, { ...next, role: "reader" });
    expect(role).toMatchObject({ role: "reader", password: after["password"] });
  });

  test("a change of the role and the rotation of the password both take effect", async () => {
    const { id, inputs, state } = await make({ username: "clara" });
    const after = await user.update(id, state, { ...inputs, role: "reader", rotationTriggers: { on: "a" } });
    expect(after).toMatchObject({ role: "reader", password: await passwordOf("clara") });
    expect(after["password"]).not.toBe(state["password"]);
    expect((await user.read(id, state))?.state).toMatchObject({ role: "reader" });
  });

  test.each(["before", "after"] as const)(
    "an answer lost %s the rotation is settled by reading the password",
    async (when) => {
      const { id, inputs, state } = await make({ username: `lost-${when}` });
      service.fail({ operation: "postgres.rotatePassword", status: "reset", when, times: 1 });
      const work = user.update(id, state, { ...inputs, rotationTriggers: { on: "a" } });
      if (when === "before") await expect(work).rejects.toThrow(/was not rotated: .*Run up again/);
      else expect((await work)["password"]).toBe(await passwordOf("lost-after"));
    },
  );

  describe("an update that fails after the role was sent", () => {
    const roleOf = async (username: string) =>
      (
        await send<{ data: { username: string; role: string }[] }>(service, "GET", `/v1/postgres/${cluster}/users`)
      ).data.find((one) => one.username === username)?.role;
    const failed = async (id: string, state: Record<string, unknown>, next: Record<string, unknown>) => {
      const failure = await user.update(id, state, next).catch((error: unknown) => error);
      return (failure as { properties: Record<string, unknown> }).properties;
    };

    test("an update that fails after the role was sent lowers the role again when the program is reverted", async () => {
      const { id, inputs, state } = await make({ username: "raised", role: "reader", rotationTriggers: { on: "a" } });
      const next = { ...inputs, role: "schema_admin", rotationTriggers: { on: "b" } };
      service.fail({ operation: "postgres.rotatePassword", status: 422, body: { error: "no" } });
      const left = await failed(id, state, next);
      expect(left).toMatchObject({ role: "schema_admin", rotationTriggers: { on: "a" }, password: state["password"] });
      expect(await user.diff(id, left, inputs)).toBe("update");
      expect(await user.update(id, left, inputs)).toEqual(state);
      expect([await roleOf("raised"), await passwordOf("raised")]).toEqual(["reader", state["password"]]);
    });

    test("an update that fails after the role was sent rotates with the next up", async () => {
      const { id, inputs, state } = await make({ username: "forward", role: "reader" });
      const next = { ...inputs, role: "writer", rotationTriggers: { on: "a" } };
      service.fail({ operation: "postgres.rotatePassword", status: 422, body: { error: "no" } });
      const left = await failed(id, state, next);
      expect(left).not.toHaveProperty("rotationTriggers");
      expect(await user.diff(id, left, next)).toBe("update");
      const after = await user.update(id, left, next);
      expect(after).toMatchObject({ role: "writer", password: await passwordOf("forward") });
      expect(after["password"]).not.toBe(state["password"]);
    });

    test("a role whose change has no answer is sent again, whatever the program says then", async () => {
      const { id, inputs, state } = await make({ username: "unheard", role: "reader" });
      service.fail({ operation: "postgres.updateUser", status: 503, when: "after", times: "always" });
      // Time passes only while it waits between its attempts.
      const direct = handled("PostgresUser", service, { jump: true });
      const next = { cluster, username: "unheard", role: "schema_admin" };
      const failure = await direct.update({ id, state }, next).catch((error: unknown) => error);
      service.service.faults.clear();
      expect(await roleOf("unheard")).toBe("schema_admin");
      const { properties: left } = failure as { properties: Record<string, unknown> };
      expect(await user.diff(id, left, inputs)).toBe("update");
      await user.update(id, left, inputs);
      expect(await roleOf("unheard")).toBe("reader");
    });
  });

  test("if the password is refused, the user stays to be repaired; a refresh keeps the known password", async () => {
    const refused = { operation: "postgres.credentials", status: 403, when: "before", times: 1 } as const;
    service.fail(refused);
    const { inputs } = await user.check({}, { cluster, role: "writer", username: "unseen" });
    const failure = await user.create(inputs).catch((error: unknown) => error);
    const { id: unseen, properties } = failure as { id: string; properties: Record<string, unknown> };
    expect(unseen).toBe(`${cluster}/user/unseen`);
    expect(await user.update(unseen, properties, inputs)).toMatchObject({ password: await passwordOf("unseen") });
    const { id, state } = await make({ username: "seen" });
    service.fail(refused);
    expect((await user.read(id, state))?.state).toEqual(state);
  });

  test("a user deleted outside is gone", async () => {
    const { id, state } = await make({ username: "gone" });
    await send(service, "DELETE", path("gone"));
    expect(await user.read(id, state)).toBeUndefined();
    await user.delete(id, state);
  });
});
