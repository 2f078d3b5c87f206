// What the functions return about certificates and IP addresses.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { callings, type Calling } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(callings)("functions about hostnames and addresses, $name binding", ({ name, start }) => {
  let service: TestService;
  let calling: Calling;

  beforeAll(async () => {
    service = await startService();
    calling = await start(service);
    await makeApp(service, "site");
    for (const host of ["www.example.invalid", "api.example.invalid", "*.example.invalid"])
      await send(service, "POST", "/v1/apps/site/certificates/acme", { hostname: host });
  });
  afterEach(() => service.service.faults.clear());
  afterAll(async () => {
    await calling.close();
    await service.close();
  });

  test("getCertificate finds a hostname by name or id, including wildcards", async () => {
    const { answer } = await calling.call("getCertificate", { app: "site", hostname: "site/www.example.invalid" });
    expect(answer).toMatchObject({
      id: "site/www.example.invalid",
      hostname: "www.example.invalid",
      acmeRequested: true,
      configured: false,
      dnsRequirements: { acmeChallenge: { name: "_acme-challenge.www.example.invalid" } },
      validation: { dnsConfigured: false },
    });
    expect(answer).not.toHaveProperty("rateLimitedUntil");
    const wildcard = await calling.call("getCertificate", { app: "site", hostname: "*.example.invalid" });
    expect(wildcard.answer["hostname"]).toBe("*.example.invalid");
  });

  test("getCertificates lists all pages, or only hostnames that contain a text", async () => {
    const names = async (args: object = {}) => {
      const { answer } = await calling.call("getCertificates", { app: "site", ...args });
      return (answer["certificates"] as { id: string; hostname: string }[]).map(({ id }) => id).sort();
    };
    expect(await names()).toEqual(["site/*.example.invalid", "site/api.example.invalid", "site/www.example.invalid"]);
    expect(await names({ filter: "api" })).toEqual(["site/api.example.invalid"]);
    const page = await send<object>(service, "GET", "/v1/apps/site/certificates?limit=1");
    service.fail({ operation: "certificates.list", rewrite: () => page });
    expect(await names()).toEqual(["site/*.example.invalid", "site/api.example.invalid", "site/www.example.invalid"]);
    expect(service.requests.slice(-2).map(({ operation }) => operation)).toEqual([
      "certificates.list",
      "certificates.list",
    ]);
  });

  test("checkCertificate checks the DNS, but not in a preview", async () => {
    const args = { app: "site", hostname: "www.example.invalid" };
    const before = service.requests.length;
    const previewed = await calling.call("checkCertificate", args, { isPreview: true });
    const asked = service.requests.slice(before).map(({ operation }) => operation);
    if (name === "dynamic") expect([previewed.isKnown, asked]).toEqual([false, []]);
    else expect([previewed.answer["hostname"], asked]).toEqual([args.hostname, ["certificates.get"]]);
    const { answer } = await calling.call("checkCertificate", args);
    expect(answer).toMatchObject({ id: "site/www.example.invalid", dnsRecords: { a: [] } });
    expect((answer["validationErrors"] as object[]).length).toBeGreaterThan(0);
    expect(JSON.stringify(answer)).not.toContain("null");
  });

  test("getIpAssignments lists the addresses, oldest first", async () => {
    expect((await calling.call("getIpAssignments", { app: "site" })).answer).toEqual({ ips: [] });
    const made: string[] = [];
    for (const type of ["shared_v4", "v6", "private_v6"])
      made.push((await send<{ ip: string }>(service, "POST", "/v1/apps/site/ip_assignments", { type })).ip);
    const { answer } = await calling.call("getIpAssignments", { app: "site" });
    const ips = answer["ips"] as { id: string; ip: string; shared: boolean }[];
    expect(ips.map(({ ip }) => ip)).toEqual(made);
    expect(ips[0]).toMatchObject({ id: `site/${made[0]}`, shared: true });
    expect(ips[0]).not.toHaveProperty("network");
    expect(ips[2]).toHaveProperty("network");
  });

  test.each(["getCertificate", "checkCertificate", "getCertificates", "getIpAssignments"])(
    "%s in an App that does not exist returns the service's 404",
    async (called) => {
      const hostname = called.endsWith("Certificate") ? { hostname: "www.example.invalid" } : {};
      await expect(calling.call(called, { app: "nowhere", ...hostname })).rejects.toThrow(
        /answered 404: .*app not found/i,
      );
    },
  );

  test("a hostname that the App does not have returns the service's 404", async () => {
    const args = { app: "site", hostname: "none.example.invalid" };
    await expect(calling.call("getCertificate", args)).rejects.toThrow(/certificates.get answered 404/);
  });
});
