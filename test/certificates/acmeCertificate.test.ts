import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { setDns } from "../../service/runtime/dns.ts";
import { callerWith } from "../service/client.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, send } from "../support/around.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { currentCertificate } from "../support/certificates.ts";

lifecycle("AcmeCertificate", {
  given: async (service) => {
    await makeApp(service, "other-acme");
    // Its DNS is never configured correctly, so no certificate is issued.
    return { app: await makeApp(service, "life-acme"), hostname: "www.example.invalid" };
  },
  changes: () =>
    Promise.resolve([
      { set: { hostname: "*.example.invalid" }, expect: "replace" },
      // The hostname belongs to one App at a time.
      { set: { app: "other-acme" }, expect: "delete-replace" },
    ]),
});

describe("AcmeCertificate", () => {
  let service: TestService;
  let acme: Bound;
  let custom: Bound;
  const files = (host: string) => {
    const { fullchain, private_key: privateKey } = currentCertificate({ hosts: [host] });
    return { fullchain, privateKey };
  };
  beforeAll(async () => {
    service = await startService();
    acme = bind("AcmeCertificate", service);
    custom = bind("CustomCertificate", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  const make = async (bound: Bound, values: Record<string, unknown>) => {
    const { inputs, failures } = await bound.check({}, { app: "app", ...values });
    expect(failures).toEqual([]);
    return { inputs, ...(await bound.create(inputs)) };
  };
  const path = (host: string) => `/v1/apps/app/certificates/${encodeURIComponent(host)}`;
  const shown = (host: string) =>
    send<{ acme_requested: boolean; certificates: { source: string }[] }>(service, "GET", path(host));

  test("dnsRecords lists the required DNS records in a stable order", async () => {
    const first = await make(acme, { hostname: "records.example.com" });
    const values = async () => (await acme.read(first.id, first.state))?.state["dnsRecords"];
    const proofs = [
      { type: "CNAME", name: "_acme-challenge.records.example.com", value: expect.any(String) },
      { type: "TXT", name: "_machines-ownership.records.example.com", value: expect.stringMatching(/^app-/) },
    ];
    expect(first.state["dnsRecords"]).toEqual([
      { type: "CNAME", name: "records.example.com", value: "app.machines.test" },
      ...proofs,
    ]);
    const address = (type: string) => send<{ ip: string }>(service, "POST", "/v1/apps/app/ip_assignments", { type });
    const { ip: v6 } = await address("v6");
    const both = [(await address("v4")).ip, (await address("v4")).ip].sort();
    expect(await values()).toEqual([
      ...both.map((value) => ({ type: "A", name: "records.example.com", value })),
      { type: "AAAA", name: "records.example.com", value: v6 },
      ...proofs,
    ]);
    expect(await values()).toEqual(await values());
  });

  test("a refresh shows that the certificate was issued", async () => {
    const { id, state } = await make(acme, { hostname: "issued.example.com" });
    await expect
      .poll(async () => (await acme.read(id, state))?.state)
      .toMatchObject({
        status: "active",
        configured: true,
        dnsProvider: "simulated",
        expiresAt: expect.any(String),
      });
  });

  test("a hostname that already has a certificate is refused, and the error says how to import it", async () => {
    const { id } = await make(acme, { hostname: "twice.example.com" });
    await expect(make(acme, { hostname: "twice.example.com" })).rejects.toThrow(
      /pulumi import machines:index:AcmeCertificate <name> 'app\/twice.example.com'/,
    );
    await acme.delete(id, {});
  });

  test("a certificate that was never created is not mistaken for one", async () => {
    service.fail({ operation: "certificates.createAcme", when: "before", status: 503, times: 3 });
    await expect(make(acme, { hostname: "unmade.example.com" })).rejects.toThrow(/503/);
    await expect(shown("unmade.example.com")).rejects.toThrow(/404/);
  });

  test.each([
    ["acme first", "AcmeCertificate"],
    ["custom first", "CustomCertificate"],
  ])("both kinds coexist on one hostname, and each deletion removes only its own: %s", async (_, first) => {
    const hostname = `${first.toLowerCase()}.example.com`;
    const makers = {
      AcmeCertificate: () => make(acme, { hostname }),
      CustomCertificate: () => make(custom, { hostname, ...files(hostname) }),
    };
    const [one, other] = first === "AcmeCertificate" ? [acme, custom] : [custom, acme];
    const [a, b] =
      first === "AcmeCertificate"
        ? [await makers.AcmeCertificate(), await makers.CustomCertificate()]
        : [await makers.CustomCertificate(), await makers.AcmeCertificate()];
    await one.delete(a.id, a.state);
    expect(await one.read(a.id, a.state)).toBeUndefined();
    expect(await other.read(b.id, b.state)).toBeDefined();
    await other.delete(b.id, b.state);
    await expect(shown(hostname)).rejects.toThrow(/404/);
  });

  test("a certificate that a deletion's answer omits is not assumed to be gone", async () => {
    const hostname = "terse.example.com";
    const a = await make(acme, { hostname });
    const b = await make(custom, { hostname, ...files(hostname) });
    service.fail({ operation: "certificates.deleteAcme", rewrite: () => ({ hostname }) });
    await acme.delete(a.id, a.state);
    expect(await custom.read(b.id, b.state)).toBeDefined();
    expect(await acme.read(a.id, a.state)).toBeUndefined();
    await custom.delete(b.id, b.state);
    await expect(shown(hostname)).rejects.toThrow(/404/);
  });

  test("if both certificates are deleted at once, both deletions finish, and the hostname is gone", async () => {
    for (let i = 0; i < 5; i++) {
      const hostname = `race-${i}.example.com`;
      const a = await make(acme, { hostname });
      const b = await make(custom, { hostname, ...files(hostname) });
      await Promise.all([acme.delete(a.id, a.state), custom.delete(b.id, b.state)]);
      await expect(shown(hostname)).rejects.toThrow(/404/);
    }
  });

  test("the last certificate of a hostname goes with it in one request, so no interruption leaves the hostname alone", async () => {
    for (const [resource, hostname] of [
      [acme, "one.example.com"],
      [custom, "two.example.com"],
    ] as const) {
      const { id, state } = await make(resource, { hostname, ...(resource === custom ? files(hostname) : {}) });
      const before = service.requests.length;
      await resource.delete(id, state);
      const writes = service.requests.slice(before).filter(isWrite);
      expect(writes.map(({ operation }) => operation)).toEqual(["certificates.delete"]);
    }
  });

  test("a deletion interrupted before the hostname was removed is finished by the next one", async () => {
    const { id, state } = await make(acme, { hostname: "cut.example.com" });
    await send(service, "DELETE", `${path("cut.example.com")}/acme`);
    expect(await acme.read(id, state)).toBeUndefined();
    await acme.delete(id, state);
    await expect(shown("cut.example.com")).rejects.toThrow(/404/);
  });

  /** An App of another organization, and what is printed from now on. */
  async function withOthers() {
    const call = callerWith(service, randomUUID(), { slug: "others" });
    await call("POST", "/apps", { name: "theirs", org_slug: "others" });
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    afterThisTest(() => printed.mockRestore());
    return { call, warnings: () => printed.mock.calls.flat().map(String) };
  }

  test("F70: a hostname of another organization is created as pending, with a warning that says which record proves it", async () => {
    const hostname = "taken.example.com";
    const { call, warnings } = await withOthers();
    await call("POST", "/apps/theirs/certificates/acme", { hostname });
    const { id, state } = await make(acme, { hostname });
    const proof = (state["dnsRecords"] as { type: string; name: string; value: string }[]).at(-1);
    expect(proof).toMatchObject({ type: "TXT", value: expect.stringMatching(/^app-/) });
    const warning = `the AcmeCertificate of ${hostname} of App app: ${hostname} belongs to an App of another organization. Create a TXT record ${proof?.name} with the value ${proof?.value}, remove others of that name, and have the hostname checked.`;
    expect([state["status"], warnings()]).toEqual(["pending_ownership", [warning]]);
    // An import and a refresh say the same.
    expect((await acme.read(id, {}))?.state).toMatchObject({ status: "pending_ownership" });
    expect(warnings()).toEqual([warning, warning]);
    setDns(service.service.context.store, hostname, {
      cname: ["app.machines.test"],
      ownership_txt: proof?.value ?? "",
    });
    await send(service, "POST", `${path(hostname)}/check`);
    await expect.poll(async () => (await acme.read(id, state))?.state["status"]).toBe("active");
    expect(warnings()).toHaveLength(2);
  });

  test("F70: a refresh shows and warns that another organization has taken a hostname over", async () => {
    const hostname = "lost.example.com";
    const { call, warnings } = await withOthers();
    const { id, state } = await make(acme, { hostname });
    await expect.poll(async () => (await acme.read(id, state))?.state["status"]).toBe("active");
    const { body } = await call("POST", "/apps/theirs/certificates/acme", { hostname });
    const { app_value, name } = body.dns_requirements.ownership;
    setDns(service.service.context.store, hostname, { ownership_txt: app_value });
    await call("POST", `/apps/theirs/certificates/${hostname}/check`);
    expect((await acme.read(id, state))?.state).toMatchObject({ status: "pending_ownership" });
    expect(warnings()).toEqual([
      expect.stringMatching(
        new RegExp(
          `^the AcmeCertificate of ${hostname} of App app: ${hostname} was taken over by an App of another organ.*${name}`,
        ),
      ),
    ]);
  });

  test("F70: a hostname moves to another App of the organization, after it was deleted there", async () => {
    const hostname = "moves.example.com";
    await makeApp(service, "second");
    const { id, state, inputs } = await make(acme, { hostname });
    const next = { ...inputs, app: "second" };
    await expect(acme.create(next)).rejects.toThrow(
      /belongs to App app of this organization; remove it from App app first/,
    );
    expect(await acme.diff(id, state, next)).toBe("delete-replace");
    await acme.delete(id, state);
    expect((await acme.create(next)).id).toBe(`second/${hostname}`);
  });

  test("a hostname in upper case is refused", async () => {
    const { failures } = await acme.check({}, { app: "app", hostname: "WWW.example.com" });
    expect(failures).toEqual(['hostname: got "WWW.example.com"; must be in lower case']);
  });
});
