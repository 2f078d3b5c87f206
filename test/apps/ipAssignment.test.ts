import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { bind, bindings, bindPlugin } from "../support/binding.ts";
import { gate } from "../support/gate.ts";
import { handled, type Handled } from "../support/handled.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

lifecycle("IpAssignment", {
  given: async (service) => {
    await makeApp(service, "ip-other");
    return { app: await makeApp(service, "ip-life"), type: "v4" };
  },
  changes: () =>
    Promise.resolve([
      { set: { type: "v6" }, expect: "replace" },
      { set: { region: "ams" }, expect: "replace" },
      { set: { region: "global" }, expect: "replace" },
      { set: { serviceName: "api" }, expect: "replace" },
      { set: { serviceName: undefined }, expect: "replace" },
      { set: { network: "inner" }, expect: "refused" },
      { set: { organization: "personal" }, expect: "refused" },
      { set: { type: "private_v6", network: "inner" }, expect: "replace" },
      { set: { network: "outer" }, expect: "replace" },
      { set: { organization: "elsewhere" }, expect: "replace", diffOnly: true },
      { set: { network: undefined, organization: undefined, type: "shared_v4" }, expect: "replace" },
      { set: { region: "fra" }, expect: "delete-replace" },
      { set: { app: "ip-other" }, expect: "replace" },
      { set: { type: "egress_pair" }, expect: "replace" },
    ]),
});

describe("IpAssignment", () => {
  let service: TestService;
  let ip: Handled;
  beforeEach(async () => {
    service = await startService();
    ip = handled("IpAssignment", service, { jump: true });
    await makeApp(service, "web");
  });
  afterEach(() => service.close());

  const at = "/v1/apps/web/ip_assignments";
  const addresses = async () => (await send<{ ips: { ip: string }[] }>(service, "GET", at)).ips.map((one) => one.ip);
  const sent = (operation: string) => service.requests.filter((request) => request.operation === operation).length;

  test.each([
    ["v4", {}, { shared: false, egress: false, region: "global" }],
    ["v6", { region: "ams" }, { shared: false, egress: false, region: "ams" }],
    ["shared_v4", { serviceName: "api" }, { shared: true, egress: false, serviceName: "api" }],
    ["private_v6", {}, { network: "default", organization: "personal" }],
    ["private_v6", { network: "inner", organization: "personal" }, { network: "inner", organization: "personal" }],
    ["egress_v4", {}, { egress: true }],
    ["egress_v6", { region: "fra" }, { egress: true, region: "fra" }],
    ["egress_pair", { region: "fra" }, { egress: true, region: "fra" }],
  ])("a %s with %j is assigned, read, recognised by an import and released", async (type, given, shown) => {
    const found = await ip.create({ app: "web", type, ...given });
    expect(found.state).toMatchObject({ type, ...given, ...shown });
    const all = await addresses();
    expect(found.id).toBe(`web/${all.join(",")}`);
    expect([found.state["v4"], found.state["v6"]].filter(Boolean)).toEqual(all);
    expect(found.state["createdAt"]).toMatch(/^\d{4}-.*Z$/);
    expect(await ip.read(found)).toEqual(found.state);
    const imported = await bind("IpAssignment", service).read(found.id, {});
    expect(imported?.inputs).toMatchObject({ app: "web", type });
    expect(imported?.state).toMatchObject(shown);
    await ip.delete(found);
    expect(await addresses()).toEqual([]);
    expect(await ip.read(found)).toBeUndefined();
  });

  test("a refresh reads all addresses of an App with one request", async () => {
    const found = [];
    for (let i = 0; i < 4; i++) found.push(await ip.create({ app: "web", type: "v6" }));
    const before = sent("ipAssignments.list");
    await Promise.all(found.map((one) => ip.read(one)));
    expect(sent("ipAssignments.list") - before).toBe(1);
  });

  test("an address that a list lacks is looked up again before it counts as gone", async () => {
    const found = await ip.create({ app: "web", type: "v4" });
    service.fail({ operation: "ipAssignments.list", list: { keep: 0 } });
    expect(await ip.read(found)).toEqual(found.state);
  });

  test("a pair with one half released outside shows as another type; deletion releases the rest", async () => {
    const found = await ip.create({ app: "web", type: "egress_pair" });
    await send(service, "DELETE", `${at}/${String(found.state["v4"])}`);
    const state = await ip.read(found);
    expect(state).toMatchObject({ type: "egress_v6", v6: found.state["v6"] });
    const bound = bind("IpAssignment", service);
    const { inputs } = await bound.check({}, { app: "web", type: "egress_pair" });
    expect(await bound.diff(found.id, state ?? {}, inputs)).toBe("replace");
    await ip.delete(found);
    expect(await addresses()).toEqual([]);
    await ip.delete(found);
  });

  test.each(["v4", "shared_v4", "egress_pair"])(
    "a lost answer after a %s was assigned: the address is found",
    async (type) => {
      await send(service, "POST", at, { type: "v4" });
      for (const status of [503, "reset"] as const) {
        const before = await addresses();
        service.fail({ operation: "ipAssignments.assign", when: "after", status });
        const found = await ip.create({ app: "web", type });
        const fresh = (await addresses()).filter((one) => !before.includes(one));
        expect(found.id).toBe(`web/${fresh.join(",")}`);
        expect(fresh).toHaveLength(type === "egress_pair" ? 2 : 1);
        await ip.delete(found);
      }
    },
  );

  test("an address whose answer was lost is found even if the list omits its region", async () => {
    const { id } = await ip.create({ app: "web", type: "v4" });
    const nowhere = (body: unknown) => ({
      ips: (body as { ips: object[] }).ips.map((one) => ({ ...one, region: "" })),
    });
    service.fail({ operation: "ipAssignments.list", rewrite: nowhere, times: "always" });
    service.fail({ operation: "ipAssignments.assign", when: "after", status: 503 });
    const found = await ip.create({ app: "web", type: "v4" });
    expect((await addresses()).map((one) => `web/${one}`)).toEqual([id, found.id]);
  });

  test("a request lost before it was applied is sent again after a read that shows nothing", async () => {
    service.fail({ operation: "ipAssignments.assign", when: "before", status: 503 });
    const { id } = await ip.create({ app: "web", type: "v4" });
    expect((await addresses()).map((one) => `web/${one}`)).toEqual([id]);
    service.fail({ operation: "ipAssignments.assign", when: "before", status: 503, times: 10 });
    await expect(ip.create({ app: "web", type: "v4" })).rejects.toThrow(/503.*may have taken effect/);
    expect(await addresses()).toHaveLength(1);
  });

  test("an address of another kind, region or service, assigned by others meanwhile, is not adopted", async () => {
    const { opened, open } = gate();
    service.fail({ operation: "ipAssignments.assign", when: "after", status: 503, until: () => opened });
    const creating = ip.create({ app: "web", type: "v4", serviceName: "api" });
    await expect.poll(() => sent("ipAssignments.list")).toBe(1);
    await expect.poll(addresses).toHaveLength(1);
    const [ours] = await addresses();
    for (const other of [{ type: "v4" }, { type: "v4", region: "ams", service_name: "api" }, { type: "v6" }])
      await send(service, "POST", at, other);
    open();
    expect((await creating).id).toBe(`web/${String(ours)}`);
  });

  test("if others assigned the same kind at the same time, no address is adopted, and the error lists them", async () => {
    const { opened, open } = gate();
    service.fail({ operation: "ipAssignments.assign", when: "after", status: 503, until: () => opened });
    const creating = ip.create({ app: "web", type: "v4" });
    creating.catch(() => undefined);
    await expect.poll(addresses).toHaveLength(1);
    await send(service, "POST", at, { type: "v4" });
    open();
    await expect(creating).rejects.toThrow(new RegExp(`${(await addresses()).join(", ")}.*release or import`));
  });

  test("concurrent creates of one run never adopt each other's address", async () => {
    service.fail({ operation: "ipAssignments.assign", when: "after", status: 503, times: 3 });
    const found = await Promise.all(Array.from({ length: 6 }, () => ip.create({ app: "web", type: "v6" })));
    expect(new Set(found.map(({ id }) => id)).size).toBe(6);
    expect((await addresses()).map((one) => `web/${one}`).sort()).toEqual(found.map(({ id }) => id).sort());
  });

  test.each(bindings)("a second shared address is refused, $name binding", async ({ start }) => {
    const { bound, close } = await start("IpAssignment", service);
    const program = { app: "web", type: "shared_v4", __context: { name: "first" } };
    const { inputs } = await bound.check({}, program);
    const { id, state } = await bound.create(inputs);
    const second = await bound.check({}, { ...program, __context: { name: "second" } });
    await expect(bound.create(second.inputs)).rejects.toThrow(/422.*shared IPv4 address already/);
    if (bound.preview) {
      const message = `type: App web has a shared address already, ${String(state["ip"])}, and no App has two; import that one`;
      await expect(bound.preview.create(second.inputs)).rejects.toThrow(message);
      // A replacement is previewed as a create, and the address it replaces does not count.
      const next = await bound.check(inputs, { ...program, region: "fra" });
      expect(await bound.diff(id, state, next.inputs)).toBe("delete-replace");
      const replacement = await bound.check({}, { ...program, region: "fra" });
      await expect(
        bound.preview.create({ ...inputs, ...replacement.inputs, __engine: inputs["__engine"] }),
      ).resolves.toBeDefined();
    }
    await close();
  });

  test("a region that does not exist is reported at preview; global is valid", async () => {
    const { bound, close } = await bindPlugin("IpAssignment", service);
    const previewed = async (region: string) =>
      bound.preview?.create((await bound.check({}, { app: "web", type: "v4", region })).inputs);
    await expect(previewed("zzz")).rejects.toThrow(/there is no region "zzz"/);
    await expect(previewed("global")).resolves.toBeDefined();
    await close();
  });
});
