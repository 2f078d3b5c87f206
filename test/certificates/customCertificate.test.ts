import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { certificatesIn, datesProblem } from "../../api/uploadedCertificate.ts";
import { bind, bindPlugin, type Bound } from "../support/binding.ts";
import { makeApp, send } from "../support/around.ts";
import { currentCertificate, type CertificateOptions } from "../support/certificates.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const files = (options: CertificateOptions) => {
  const { fullchain, private_key: privateKey } = currentCertificate(options);
  return { fullchain, privateKey };
};
const day = 24 * 3600_000;
const host = "www.example.com";
const hosts = [host, "*.example.com"];
const renewed = files({ hosts, until: new Date(Date.now() + 200 * day) });
const again = files({ hosts, until: new Date(Date.now() + 100 * day) });
const uploadAnother = (service: TestService, app: unknown, hostname: unknown) => {
  const another = currentCertificate({ hosts, until: new Date(Date.now() + 20 * day) });
  return send(service, "POST", `/v1/apps/${String(app)}/certificates/custom`, { hostname, ...another });
};

lifecycle("CustomCertificate", {
  writeOnly: ["fullchain", "privateKey"],
  given: async (service) => {
    await makeApp(service, "other-custom");
    return { app: await makeApp(service, "life-custom"), hostname: host, ...files({ hosts }) };
  },
  changes: () =>
    Promise.resolve([
      { set: renewed, expect: "update" },
      { set: { privateKeyWo: renewed.privateKey }, expect: "refused" },
      { set: { privateKey: undefined, privateKeyWo: renewed.privateKey }, expect: "update" },
      { set: { privateKeyVersion: 1 }, expect: "update" },
      { set: { privateKeyWo: "not a key" }, expect: "refused" },
      { set: { privateKeyWo: undefined }, expect: "same" },
      { set: { fullchain: again.fullchain, privateKeyWo: again.privateKey }, expect: "update" },
      { set: { privateKeyVersion: undefined }, expect: "update" },
      { set: { hostname: "*.example.com" }, expect: "replace" },
      // The hostname belongs to one App at a time.
      { set: { app: "other-custom" }, expect: "delete-replace" },
    ]),
  drift: [
    {
      interfere: (service, { app, hostname }) => uploadAnother(service, app, hostname),
      shows: { fullchain: undefined },
    },
  ],
  steady: {
    privateKey: "it belongs to the chain",
    privateKeyWo: "no state has it",
    privateKeyVersion: "it belongs to the chain",
  },
});

describe("CustomCertificate", () => {
  let service: TestService;
  let custom: Bound;
  beforeAll(async () => {
    service = await startService();
    custom = bind("CustomCertificate", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  const make = async (hostname: string, upload = files({ hosts: [hostname] })) => {
    const { inputs, failures } = await custom.check({}, { app: "app", hostname, ...upload });
    expect(failures).toEqual([]);
    return { inputs, ...(await custom.create(inputs)) };
  };
  const ca = { commonName: "Test CA", ...currentCertificate({ commonName: "Test CA" }) };
  const leaf = files({ hosts, by: ca });
  const other = files({ hosts });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ["no PEM", { fullchain: "hello" }, /^fullchain: is not a chain of certificates in PEM$/],
    ["no key", { privateKey: "hush-hush" }, /^privateKey: is not a private key in PEM, or is encrypted; /],
    ["another key", { privateKey: other.privateKey }, /^privateKey: does not match the certificate$/],
    ["the wrong order", { fullchain: ca.fullchain + leaf.fullchain }, /^fullchain: begins with another .* number 2$/],
    [
      "a gap",
      { fullchain: leaf.fullchain + other.fullchain },
      /^fullchain: certificate 2 did not sign certificate 1; begin/,
    ],
    [
      "another hostname",
      { hostname: "www.example.org" },
      /is for www\.example\.com, \*\.example\.com, not for www\.example\.org/,
    ],
    ["below the wildcard's names", { hostname: "a.b.example.com" }, /not for a\.b\.example\.com/],
    ["another wildcard", { hostname: "*.www.example.com" }, /not for \*\.www\.example\.com/],
  ])("check refuses %s even while other inputs are unknown, and quotes no key", async (_, wrong, says) => {
    for (const app of ["app", "04da6b54-80e4-46f7-96ec-b56ff0331ba9"]) {
      const { failures } = await custom.check({}, { app, hostname: host, ...leaf, ...wrong });
      expect(failures).toHaveLength(1);
      expect(failures[0]).toMatch(says);
      expect(failures[0]).not.toMatch(/hush|PRIVATE/);
    }
  });

  test.each([host, "any.example.com", "*.example.com"])("check accepts a complete chain for %s", async (hostname) => {
    const fullchain = `a note\n${leaf.fullchain}\n\n${ca.fullchain}`;
    const news = { app: "app", hostname, fullchain, privateKey: leaf.privateKey };
    expect((await custom.check({}, news)).failures).toEqual([]);
  });

  test("unknown values are not checked", async () => {
    const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
    for (const open of ["hostname", "fullchain", "privateKey"]) {
      const news = { app: "app", hostname: "www.example.org", ...other, fullchain: leaf.fullchain, [open]: unknown };
      const { failures } = await custom.check({}, news);
      expect(failures.join()).not.toContain(open === "hostname" ? "not for" : "does not match");
    }
  });

  test("dates are compared with the given clock", () => {
    const at = (text: string) => Date.parse(text);
    const problem = (chain: string, now: number) => datesProblem(certificatesIn(chain) ?? [], now);
    const [from, until] = [new Date("2026-01-01T00:00:00Z"), new Date("2026-03-01T00:00:00Z")];
    const { fullchain } = files({ hosts, from, until });
    expect(problem(fullchain, at("2026-02-01T00:00:00Z"))).toBeUndefined();
    expect(problem(fullchain, at("2026-03-01T00:00:00Z"))).toMatch(/^certificate 1 expired at Mar +1 /);
    expect(problem(fullchain, at("2025-12-31T00:00:00Z"))).toMatch(/^certificate 1 is not valid before Jan +1 /);
    expect(problem(leaf.fullchain + fullchain, at("2027-02-01T00:00:00Z"))).toMatch(/^certificate [12] expired/);
  });

  test("a preview refuses a new certificate that has expired; an old one blocks no other change", async () => {
    const { bound, close } = await bindPlugin("CustomCertificate", service);
    const expired = files({ hosts, from: new Date(Date.now() - 9 * day), until: new Date(Date.now() - day) });
    const { inputs, failures } = await bound.check({}, { app: "app", hostname: host, ...expired });
    expect(failures).toEqual([]);
    await expect(bound.preview?.create(inputs)).rejects.toThrow(/fullchain: certificate 1 expired at /);
    await expect(bound.preview?.update(`app/${host}`, inputs, inputs)).resolves.toBeDefined();
    await close();
  });

  test("a hostname that already has a certificate is refused, and the error says how to import it", async () => {
    await make("twice.example.com");
    await expect(make("twice.example.com")).rejects.toThrow(
      /pulumi import machines:index:CustomCertificate <name> 'app\/twice.example.com'/,
    );
  });

  test("a change by others is repaired even after two refreshes", async () => {
    const { id, inputs, state } = await make(host, files({ hosts }));
    await uploadAnother(service, "app", host);
    const once = await custom.read(id, state);
    const twice = await custom.read(id, once?.state ?? {});
    expect(await custom.diff(id, twice?.state ?? {}, inputs)).toBe("update");
    expect((await custom.update(id, twice?.state ?? {}, inputs))["expiresAt"]).toBe(state["expiresAt"]);
  });
});
