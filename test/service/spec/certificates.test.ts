// TLS certificates (docs/interface.md#certificates, docs/interface.md#certificate-checks). The service's DNS is always
// correct, except for names below `.invalid` and settings of a test.
import { expect, test } from "vitest";
import { setDns, type DnsAnswer } from "../../../service/runtime/dns.ts";
import { makeCertificate } from "../../support/certificates.ts";
import { pages, withApp, withStillClock } from "../client.ts";

const at = "/apps/web/certificates";
const rfc3339 = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const host = "www.example.com";
const day = 24 * 3600_000;

type App = Awaited<ReturnType<typeof withStillClock>>;

const acme = ({ call }: Pick<App, "call">, hostname: string) => call("POST", `${at}/acme`, { hostname });
const check = async ({ call }: Pick<App, "call">, hostname: string) =>
  (await call("POST", `${at}/${encodeURIComponent(hostname)}/check`)).body;
const shown = async ({ call }: Pick<App, "call">, hostname: string) =>
  (await call("GET", `${at}/${encodeURIComponent(hostname)}`)).body;
const dns = ({ service }: Pick<App, "service">, hostname: string, answer: DnsAnswer | undefined) =>
  void service.context.store.write(() => setDns(service.context.store, hostname, answer));

// --- ACME ---

test("an ACME certificate is pending until it is issued, shortly after the DNS is correct", async () => {
  const app = await withStillClock();
  const made = await acme(app, host);
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({
    hostname: host,
    status: "pending_validation",
    acme_requested: true,
    configured: true,
    certificates: [{ source: "fly", status: "pending_validation", issued: [], issuer: null, created_at: rfc3339 }],
    rate_limited_until: null,
    validation: { dns_configured: true, alpn_configured: true, http_configured: true },
    validation_errors: [],
  });
  expect(await shown(app, host)).toEqual(made.body);
  app.clock.advance(1000);
  expect(await shown(app, host)).toMatchObject({
    status: "active",
    certificates: [
      {
        source: "fly",
        status: "active",
        issuer: expect.any(String),
        expires_at: "2026-04-01T00:00:00Z",
        issued: [
          { type: "rsa", certificate_authority: "lets_encrypt", expires_at: "2026-04-01T00:00:00Z" },
          { type: "ecdsa", certificate_authority: "lets_encrypt", expires_at: "2026-04-01T00:00:00Z" },
        ],
      },
    ],
  });
});

test("a detail is the check response without the DNS records, and lists the required DNS records", async () => {
  const app = await withApp();
  const v4 = (await app.call("POST", "/apps/web/ip_assignments", { type: "shared_v4" })).body.ip;
  const v6 = (await app.call("POST", "/apps/web/ip_assignments", { type: "v6" })).body.ip;
  await app.call("POST", "/apps/web/ip_assignments", { type: "egress_v4" });
  await acme(app, host);
  const detail = await shown(app, host);
  expect(detail.dns_requirements).toEqual({
    a: [v4],
    aaaa: [v6],
    cname: expect.stringMatching(/^web\./),
    acme_challenge: {
      name: `_acme-challenge.${host}`,
      target: expect.stringMatching(/^www\.example\.com\.[a-z0-9]+\./),
    },
    ownership: {
      name: expect.stringMatching(/\.www\.example\.com$/),
      app_value: expect.stringMatching(/^app-/),
      org_value: expect.stringMatching(/^org-/),
    },
  });
  const { dns_records, ...rest } = await check(app, host);
  expect(rest).toEqual(detail);
  expect(dns_records).toEqual({
    a: [v4],
    aaaa: [v6],
    cname: [],
    acme_challenge_cname: detail.dns_requirements.acme_challenge.target,
    ownership_txt: detail.dns_requirements.ownership.app_value,
    resolved_addresses: [v4, v6],
    soa: expect.any(String),
  });
});

test("every field of the check response is present, and missing DNS records are described", async () => {
  const app = await withApp();
  await acme(app, "www.shop.invalid");
  expect(await check(app, "www.shop.invalid")).toEqual({
    hostname: "www.shop.invalid",
    status: "pending_validation",
    acme_requested: true,
    configured: false,
    dns_provider: expect.any(String),
    certificates: [{ source: "fly", status: "pending_validation", created_at: rfc3339, issued: [], issuer: null }],
    dns_records: {
      a: [],
      aaaa: [],
      cname: [],
      acme_challenge_cname: null,
      ownership_txt: null,
      resolved_addresses: [],
      soa: null,
    },
    dns_requirements: expect.any(Object),
    rate_limited_until: null,
    validation: {
      alpn_configured: false,
      dns_configured: false,
      http_configured: false,
      ownership_txt_configured: false,
    },
    validation_errors: [
      { code: expect.any(String), message: expect.any(String), remediation: expect.any(String), timestamp: rfc3339 },
    ],
  });
});

interface Needs {
  readonly a: string[];
  readonly aaaa: string[];
  readonly cname: string;
  readonly acme_challenge: { readonly target: string };
}

const ways: readonly [string, (needs: Needs) => DnsAnswer][] = [
  ["the challenge record", ({ acme_challenge }) => ({ acme_challenge_cname: `${acme_challenge.target}.` })],
  ["a CNAME record", ({ cname }) => ({ cname: [`${cname}.`] })],
  ["an A record", ({ a }) => ({ a })],
  ["an AAAA record", ({ aaaa }) => ({ aaaa })],
];

test.each(ways)("a pending hostname is issued once %s is correct and a check is requested", async (_, records) => {
  const app = await withStillClock();
  for (const type of ["v4", "v6"]) await app.call("POST", "/apps/web/ip_assignments", { type });
  await acme(app, "shop.invalid");
  app.clock.advance(3600_000);
  expect((await check(app, "shop.invalid")).status).toBe("pending_validation");
  dns(app, "shop.invalid", records((await shown(app, "shop.invalid")).dns_requirements));
  const checked = await check(app, "shop.invalid");
  expect(checked).toMatchObject({ configured: true, validation_errors: [] });
  app.clock.advance(1000);
  expect((await shown(app, "shop.invalid")).status).toBe("active");
});

test("records of another owner do not count", async () => {
  const app = await withStillClock();
  dns(app, host, {
    a: ["192.0.2.1"],
    cname: ["elsewhere.example.com"],
    acme_challenge_cname: "a.b.c",
    ownership_txt: "app-x",
  });
  await acme(app, host);
  app.clock.advance(60_000);
  expect(await check(app, host)).toMatchObject({
    status: "pending_validation",
    configured: false,
    dns_records: { a: ["192.0.2.1"], resolved_addresses: ["192.0.2.1"], cname: ["elsewhere.example.com"] },
    validation: { ownership_txt_configured: false },
    validation_errors: [{ code: expect.any(String) }],
  });
});

test("a certificate is renewed before it expires, while the DNS is correct", async () => {
  const app = await withStillClock();
  await acme(app, host);
  app.clock.advance(1000);
  const expiry = async () => (await shown(app, host)).certificates[0].expires_at;
  const first = await expiry();
  for (let days = 0; days < 100; days++) {
    app.clock.advance(day);
    expect(Date.parse(await expiry())).toBeGreaterThan(app.clock.now());
  }
  expect((await expiry()) > first).toBe(true);
});

test("without the DNS a certificate stays until it expires, then is pending, and is issued when the DNS is correct again", async () => {
  const app = await withStillClock();
  await acme(app, host);
  app.clock.advance(1000);
  dns(app, host, {});
  app.clock.advance(89 * day);
  expect(await shown(app, host)).toMatchObject({ status: "active", validation_errors: [{ code: expect.any(String) }] });
  app.clock.advance(2 * day);
  expect(await shown(app, host)).toMatchObject({ status: "pending_validation", certificates: [{ issued: [] }] });
  dns(app, host, undefined);
  await check(app, host);
  app.clock.advance(1000);
  expect(await shown(app, host)).toMatchObject({ status: "active", validation_errors: [] });
});

test("a renewal that succeeds after one that failed says that the hostname is configured; earlier it did not", async () => {
  const app = await withStillClock();
  await acme(app, host);
  app.clock.advance(1000);
  dns(app, host, {});
  app.clock.advance(61 * day);
  const validation = (is: boolean) => ({ dns_configured: is, http_configured: is, alpn_configured: is });
  expect(await shown(app, host)).toMatchObject({ status: "active", configured: false, validation: validation(false) });
  const { expires_at: first } = (await shown(app, host)).certificates[0];
  dns(app, host, undefined);
  app.clock.advance(2 * day);
  const renewed = await shown(app, host);
  expect(renewed).toMatchObject({ status: "active", validation_errors: [], configured: true });
  expect(renewed.validation).toMatchObject(validation(true));
  expect(renewed.certificates[0].expires_at > first).toBe(true);
});

test("five failed checks within an hour cause a rate limit, which is shown until it ends", async () => {
  const app = await withStillClock();
  await acme(app, "shop.invalid"); // the service's own check
  for (let i = 0; i < 3; i++) expect((await check(app, "shop.invalid")).rate_limited_until).toBe(null);
  const until = new Date(app.clock.now() + 3600_000).toISOString().replace(".000", "");
  expect((await check(app, "shop.invalid")).rate_limited_until).toBe(until);
  dns(app, "shop.invalid", undefined);
  dns(app, "shop.invalid", { cname: [(await shown(app, "shop.invalid")).dns_requirements.cname] });
  app.clock.advance(3599_000);
  expect(await check(app, "shop.invalid")).toMatchObject({ rate_limited_until: until, status: "pending_validation" });
  app.clock.advance(1000);
  expect((await check(app, "shop.invalid")).rate_limited_until).toBe(null);
  app.clock.advance(1000);
  expect((await shown(app, "shop.invalid")).status).toBe("active");
});

test("failed checks older than an hour do not count", async () => {
  const app = await withStillClock();
  await acme(app, "shop.invalid");
  for (let i = 0; i < 12; i++) {
    app.clock.advance(20 * 60_000); // three per hour
    expect((await check(app, "shop.invalid")).rate_limited_until).toBe(null);
  }
});

test("a hostname that is removed and added again has its failed checks and its limit still; earlier both were lifted", async () => {
  const app = await withStillClock();
  const { call, clock } = app;
  const limit = async () => (await shown(app, "shop.invalid")).rate_limited_until;
  const removals: Record<string, () => Promise<unknown>> = {
    hostname: () => call("DELETE", `${at}/shop.invalid`),
    app: async () => {
      await call("DELETE", "/apps/web?force=true");
      await expect
        .poll(async () => (await call("POST", "/apps", { name: "web", org_slug: "personal" })).status)
        .toBe(201);
      const { store } = app.service.context;
      await expect.poll(() => store.get("SELECT 1 FROM hostnames")).toBeUndefined();
    },
  };
  for (const [name, removed] of Object.entries(removals)) {
    // Each adding is a failed check, too.
    for (let failures = 1; failures < 5; failures++) {
      await acme(app, "shop.invalid");
      expect([name, failures, await limit()]).toEqual([name, failures, null]);
      await removed();
    }
    const until = new Date(clock.now() + 3600_000).toISOString().replace(".000", "");
    for (let i = 0; i < 2; i++) {
      await acme(app, "shop.invalid");
      expect([name, await limit()]).toEqual([name, until]);
      await removed();
      clock.advance(1000);
    }
    clock.advance(3599_000);
    await acme(app, "shop.invalid");
    expect([name, await limit()]).toEqual([name, null]);
    await removed();
    clock.advance(3600_000);
    // Nothing is kept for longer.
    expect(app.service.context.store.all("SELECT * FROM timers WHERE kind = 'certificate.limit'")).toEqual([]);
  }
});

test("a wildcard is validated only by the DNS challenge", async () => {
  const app = await withStillClock();
  const made = await acme(app, "*.example.com");
  expect([made.status, made.body.hostname]).toEqual([201, "*.example.com"]);
  expect(made.body.dns_requirements.acme_challenge.name).toBe("_acme-challenge.example.com");
  expect(made.body.validation).toMatchObject({ alpn_configured: false, http_configured: false, dns_configured: true });
  app.clock.advance(1000);
  expect((await shown(app, "*.example.com")).status).toBe("active");
  await app.call("POST", "/apps/web/ip_assignments", { type: "v4" });
  await acme(app, "*.shop.invalid");
  const { a, acme_challenge } = (await shown(app, "*.shop.invalid")).dns_requirements;
  dns(app, "*.shop.invalid", { a });
  expect(await check(app, "*.shop.invalid")).toMatchObject({ validation_errors: [{ code: expect.any(String) }] });
  dns(app, "*.shop.invalid", { a, acme_challenge_cname: acme_challenge.target });
  await check(app, "*.shop.invalid");
  app.clock.advance(1000);
  expect((await shown(app, "*.shop.invalid")).status).toBe("active");
});

test.each([
  undefined,
  "",
  "nodots",
  "a..b",
  "-x.example.com",
  "www.*.example.com",
  "http://example.com",
  "example.com/x",
  "a b.example.com",
  `${"a".repeat(64)}.example.com`,
  `${"a.".repeat(130)}com`,
])("an ACME certificate for %j is 422", async (hostname) => {
  const { call } = await withApp();
  const answer = await call("POST", `${at}/acme`, { hostname });
  expect([answer.status, answer.body.error]).toEqual([422, expect.stringContaining("hostname")]);
  expect((await call("GET", at)).body.total_count).toBe(0);
});

test("a hostname that the App already has is 422, regardless of case", async () => {
  const app = await withApp();
  await acme(app, host);
  expect((await acme(app, "WWW.Example.COM")).status).toBe(422);
  expect(await shown(app, "WWW.example.com")).toMatchObject({ hostname: host });
});

// --- custom certificates ---

const upload = ({ call }: Pick<App, "call">, hostname: string, options: Parameters<typeof makeCertificate>[0] = {}) =>
  call("POST", `${at}/custom`, { hostname, ...makeCertificate({ hosts: [hostname], ...options }) });

test.each([
  ["rsa", "rsa"],
  ["ec", "ecdsa"],
] as const)("an uploaded certificate with an %s key is active once ownership is proven", async (kind, type) => {
  const app = await withStillClock();
  const made = await upload(app, host, { kind });
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({
    hostname: host,
    status: "active",
    acme_requested: false,
    validation: { ownership_txt_configured: true },
    certificates: [
      {
        source: "custom",
        status: "active",
        issuer: "Test Authority",
        created_at: "2026-01-01T00:00:00Z",
        expires_at: "2027-01-01T00:00:00Z",
        issued: [{ certificate_authority: "Test Authority", type, expires_at: "2027-01-01T00:00:00Z" }],
      },
    ],
  });
  expect(made.text).not.toContain("PRIVATE KEY");
  expect(made.text).not.toContain("BEGIN CERTIFICATE");
});

test("a certificate with a nameless issuer is accepted; earlier it was an internal error", async () => {
  const app = await withApp();
  const made = await upload(app, host, { by: { ...makeCertificate({}), commonName: "" } });
  expect([made.status, made.body.certificates]).toMatchObject([
    201,
    [{ source: "custom", issuer: null, issued: [{ certificate_authority: "unknown", type: "ecdsa" }] }],
  ]);
});

test("an upload is pending_ownership until the TXT record is seen", async () => {
  const app = await withApp();
  expect((await upload(app, "shop.invalid")).body).toMatchObject({
    status: "pending_ownership",
    certificates: [{ status: "pending_ownership" }],
    validation: { ownership_txt_configured: false },
    validation_errors: [{ message: expect.stringContaining("TXT") }],
  });
  const { ownership } = (await shown(app, "shop.invalid")).dns_requirements;
  for (const value of [ownership.app_value, ownership.org_value]) {
    dns(app, "shop.invalid", {});
    expect((await check(app, "shop.invalid")).status).toBe("pending_ownership");
    dns(app, "shop.invalid", { ownership_txt: value });
    expect(await check(app, "shop.invalid")).toMatchObject({
      status: "active",
      dns_records: { ownership_txt: value },
      validation_errors: [],
    });
  }
});

test("an upload starts no ACME certificate, and takes precedence over one", async () => {
  const app = await withStillClock();
  await upload(app, host);
  app.clock.advance(60_000);
  expect((await shown(app, host)).certificates.map(({ source }: { source: string }) => source)).toEqual(["custom"]);
  expect((await acme(app, host)).status).toBe(201);
  app.clock.advance(1000);
  const both = await shown(app, host);
  expect(both.certificates.map(({ source }: { source: string }) => source)).toEqual(["custom", "fly"]);
  expect(both.status).toBe("active");
});

test("a second upload replaces the first", async () => {
  const app = await withApp();
  await upload(app, host);
  const again = await upload(app, host, { until: new Date("2028-06-01T00:00:00Z") });
  expect(again.status).toBe(201);
  expect(again.body.certificates).toMatchObject([{ source: "custom", expires_at: "2028-06-01T00:00:00Z" }]);
});

test("the certificate may name the host in its subject, among others, or by a wildcard", async () => {
  const app = await withApp();
  for (const options of [
    { hosts: [], commonName: host },
    { hosts: ["other.example.com", host] },
    { hosts: ["*.example.com"] },
    { hosts: ["WWW.EXAMPLE.COM"] },
  ])
    expect([options, (await upload(app, host, options)).status]).toEqual([options, 201]);
  expect((await upload(app, "*.example.com", { hosts: ["*.example.com"] })).status).toBe(201);
});

test.each([
  ["expired", { until: new Date(Date.UTC(2025, 11, 31)) }, "expired"],
  ["for another host", { hosts: ["www.example.org"] }, host],
  ["for another host, the right one only in the subject", { hosts: ["www.example.org"], commonName: host }, host],
  ["for a wildcard further up", { hosts: ["*.com"] }, host],
])("a certificate that is %s is 422", async (_, options, text) => {
  const app = await withStillClock();
  const answer = await upload(app, host, options);
  expect([answer.status, answer.body.error]).toEqual([422, expect.stringContaining(text)]);
  expect((await app.call("GET", at)).body.certificates).toEqual([]);
});

test("a wildcard needs a certificate for that wildcard", async () => {
  const app = await withApp();
  expect((await upload(app, "*.example.com", { hosts: [host, "example.com"] })).status).toBe(422);
});

test("a key that does not match, and text that is not PEM, are 422; the key is not quoted", async () => {
  const { call } = await withApp();
  const [one, two] = [makeCertificate({ hosts: [host] }), makeCertificate({ hosts: [host], kind: "rsa" })];
  for (const [body, text] of [
    [{ ...one, private_key: two.private_key }, "private_key"],
    [{ ...one, private_key: "canary" }, "private_key"],
    [{ ...one, private_key: "" }, "private_key"],
    [{ ...one, fullchain: "canary" }, "fullchain"],
    [{ ...one, fullchain: "" }, "fullchain"],
    [{ ...one, fullchain: one.private_key }, "fullchain"],
    [{ ...one, fullchain: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" }, "fullchain"],
    [{ ...one, hostname: "" }, "hostname"],
  ] as const) {
    const answer = await call("POST", `${at}/custom`, { hostname: host, ...body });
    expect([answer.status, answer.body.error]).toEqual([422, expect.stringContaining(text)]);
    expect(answer.text).not.toMatch(/canary|PRIVATE/);
  }
  for (const missing of ["fullchain", "private_key"])
    expect((await call("POST", `${at}/custom`, { hostname: host, ...one, [missing]: undefined })).status).toBe(400);
});

test("each certificate of a chain must have signed the one before, and must be valid", async () => {
  const { call } = await withApp();
  const authority = makeCertificate({ commonName: "Test Authority", kind: "ec" });
  const by = { commonName: "Test Authority", private_key: authority.private_key };
  const [leaf, other] = [makeCertificate({ hosts: [host], by }), makeCertificate({ hosts: [host] })];
  const body = { hostname: host, fullchain: leaf.fullchain + authority.fullchain, private_key: leaf.private_key };
  expect((await call("POST", `${at}/custom`, body)).status).toBe(201);
  const old = makeCertificate({ ...by, kind: "ec", until: new Date("2026-01-02T00:00:00Z") });
  const ofOld = makeCertificate({ hosts: [host], by: { ...by, private_key: old.private_key } });
  for (const [wrong, text] of [
    [{ fullchain: authority.fullchain + leaf.fullchain }, "does not match"],
    [
      { fullchain: other.fullchain + authority.fullchain, private_key: other.private_key },
      "certificate 2 did not sign",
    ],
    [{ fullchain: ofOld.fullchain + old.fullchain, private_key: ofOld.private_key }, "certificate 2 expired"],
  ] as const) {
    const answer = await call("POST", `${at}/custom`, { ...body, ...wrong });
    expect([answer.status, answer.body.error]).toEqual([422, expect.stringContaining(text)]);
  }
});

// --- removing ---

test("removing the ACME certificates keeps the hostname and the upload", async () => {
  const app = await withApp();
  await acme(app, host);
  await upload(app, host);
  const left = await app.call("DELETE", `${at}/${host}/acme`);
  expect(left).toMatchObject({ status: 200, body: { hostname: host, acme_requested: false, status: "active" } });
  expect(left.body.certificates).toMatchObject([{ source: "custom" }]);
  expect((await app.call("DELETE", `${at}/${host}/acme`)).status).toBe(404);
  expect((await acme(app, host)).status).toBe(201);
});

test("removing the upload keeps the hostname and the ACME certificates, and warns when no certificate is left", async () => {
  const app = await withApp();
  await acme(app, host);
  await upload(app, host);
  const left = await app.call("DELETE", `${at}/${host}/custom`);
  expect(left).toMatchObject({ status: 200, body: { hostname: host, acme_requested: true, status: "active" } });
  expect(left.body.certificates).toMatchObject([{ source: "fly" }]);
  expect(left.body).not.toHaveProperty("warning");
  expect((await app.call("DELETE", `${at}/${host}/custom`)).status).toBe(404);
  await upload(app, "other.example.com");
  const none = await app.call("DELETE", `${at}/other.example.com/custom`);
  expect(none.body).toMatchObject({ certificates: [], warning: expect.any(String) });
  expect((await app.call("GET", `${at}/other.example.com`)).status).toBe(200);
});

test("removing a hostname removes both kinds; it is 404 from then on, and can be added again", async () => {
  const app = await withApp();
  await acme(app, host);
  await upload(app, host);
  const gone = await app.call("DELETE", `${at}/${host}`);
  expect([gone.status, gone.text]).toEqual([204, ""]);
  for (const [method, path] of [
    ["GET", ""],
    ["DELETE", ""],
    ["DELETE", "/acme"],
    ["DELETE", "/custom"],
    ["POST", "/check"],
  ] as const)
    expect([method, path, (await app.call(method, `${at}/${host}${path}`)).status]).toEqual([method, path, 404]);
  expect((await acme(app, host)).status).toBe(201);
});

test("the problems of a certificate that is removed go with it, and those of the other one stay; earlier it was the reverse", async () => {
  const app = await withStillClock();
  const codes = ({ validation_errors }: { validation_errors: { code: string }[] }) =>
    validation_errors.map(({ code }) => code);
  dns(app, host, {});
  await upload(app, host);
  await acme(app, host);
  expect(codes(await shown(app, host))).toEqual(["HOSTNAME_NOT_POINTED", "OWNERSHIP_NOT_PROVEN"]);
  expect(codes((await app.call("DELETE", `${at}/${host}/acme`)).body)).toEqual(["OWNERSHIP_NOT_PROVEN"]);
  await acme(app, host);
  expect(codes((await app.call("DELETE", `${at}/${host}/custom`)).body)).toEqual(["HOSTNAME_NOT_POINTED"]);
  expect(codes((await app.call("DELETE", `${at}/${host}/acme`)).body)).toEqual([]);
  await upload(app, host);
  expect(codes((await app.call("DELETE", `${at}/${host}/custom`)).body)).toEqual([]);
});

test("a certificate that was removed while it was being issued does not reappear", async () => {
  const app = await withStillClock();
  await acme(app, host);
  await app.call("DELETE", `${at}/${host}/acme`);
  app.clock.advance(100 * day);
  expect((await shown(app, host)).certificates).toEqual([]);
});

test("hostnames are deleted with their App", async () => {
  const app = await withStillClock();
  await acme(app, host);
  await app.call("DELETE", "/apps/web?force=true");
  await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
  app.clock.advance(100 * day);
  expect((await app.call("GET", at)).body).toMatchObject({ certificates: [], total_count: 0 });
});

// --- list ---

test("an expired upload is not used any more, and is shown as expired", async () => {
  const app = await withStillClock();
  await upload(app, host);
  expect((await check(app, host)).status).toBe("active");
  app.clock.advance(800 * day);
  expect(await check(app, host)).toMatchObject({
    status: "expired",
    certificates: [{ source: "custom", status: "expired" }],
    validation_errors: [{ code: "CERTIFICATE_EXPIRED" }],
  });
});

test("the list shows the certificates of every hostname", async () => {
  const app = await withStillClock();
  await acme(app, host);
  app.clock.advance(1000);
  await upload(app, "shop.invalid");
  expect((await app.call("GET", at)).body).toEqual({
    total_count: 2,
    certificates: [
      {
        hostname: host,
        status: "active",
        dns_provider: expect.any(String),
        acme_dns_configured: true,
        acme_alpn_configured: true,
        acme_http_configured: true,
        ownership_txt_configured: true,
        configured: true,
        acme_requested: true,
        has_custom_certificate: false,
        has_fly_certificate: true,
        created_at: rfc3339,
        updated_at: rfc3339,
      },
      {
        hostname: "shop.invalid",
        status: "pending_ownership",
        dns_provider: expect.any(String),
        acme_dns_configured: false,
        acme_alpn_configured: false,
        acme_http_configured: false,
        ownership_txt_configured: false,
        configured: false,
        acme_requested: false,
        has_custom_certificate: true,
        has_fly_certificate: false,
        created_at: rfc3339,
        updated_at: rfc3339,
      },
    ],
  });
});

test("the list has pages of 25, or of a limit up to 500", async () => {
  const app = await withApp();
  const all = Array.from({ length: 30 }, (_, i) => `h${String(i).padStart(2, "0")}.example.com`);
  for (const hostname of all) await acme(app, hostname);
  const walk = (limit: string) =>
    pages(async (cursor) => {
      const { body } = await app.call("GET", `${at}?${limit}${cursor ? `&cursor=${cursor}` : ""}`);
      expect(body.total_count).toBe(30);
      return { items: body.certificates, next: body.next_cursor };
    });
  const usual = await walk("");
  expect(usual.map((page) => page.length)).toEqual([25, 5]);
  const small = await walk("limit=7");
  expect(small.map((page) => page.length)).toEqual([7, 7, 7, 7, 2]);
  for (const found of [usual, small]) expect(found.flat().map(({ hostname }) => hostname)).toEqual(all);
  expect((await app.call("GET", `${at}?limit=500`)).body.certificates).toHaveLength(30);
  for (const query of ["limit=0", "limit=501", "limit=x", "cursor=nonsense"])
    expect([query, (await app.call("GET", `${at}?${query}`)).status]).toEqual([query, 400]);
});

test("filter matches a part of the hostname; the count includes only matches", async () => {
  const app = await withApp();
  for (const hostname of ["www.example.com", "api.example.com", "www.example.org"]) await acme(app, hostname);
  const names = async (filter: string) => {
    const { body } = await app.call("GET", `${at}?filter=${filter}`);
    expect(body.total_count).toBe(body.certificates.length);
    return body.certificates.map(({ hostname }: { hostname: string }) => hostname);
  };
  expect(await names("example.com")).toEqual(["www.example.com", "api.example.com"]);
  expect(await names("WWW")).toEqual(["www.example.com", "www.example.org"]);
  expect(await names("%25")).toEqual([]);
});

test("an App's hostnames are separate from another's", async () => {
  const app = await withApp();
  await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
  await acme(app, host);
  expect((await app.call("GET", "/apps/other/certificates")).body.certificates).toEqual([]);
  expect((await app.call("GET", `/apps/other/certificates/${host}`)).status).toBe(404);
});
