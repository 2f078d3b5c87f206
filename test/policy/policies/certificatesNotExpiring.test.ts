import { describe, expect, test } from "vitest";
import { certificatesNotExpiring } from "../../../policy/policies/certificatesNotExpiring.ts";
import { makeCertificate } from "../../support/certificates.ts";
import { check, unknownText, type CheckOptions } from "../../support/policies.ts";

const now = new Date(Date.UTC(2026, 5, 1, 12));
const after = (days: number, hours = 0) => new Date(now.getTime() + (days * 24 + hours) * 3600_000);
const run = (fullchain: string, how: CheckOptions = {}) =>
  check(
    certificatesNotExpiring(() => now),
    "CustomCertificate",
    { app: "shop", hostname: "secret.example.com", fullchain, privateKey: "hidden" },
    how,
  );
const until = (date: Date, kind: "ec" | "rsa" = "ec") =>
  makeCertificate({ hosts: ["secret.example.com"], until: date, kind }).fullchain;

describe("certificates-not-expiring", () => {
  test.each([
    [14, "ec"],
    [15, "rsa"],
    [400, "ec"],
  ] as const)("the policy accepts one that is valid for %d days", async (days, kind) => {
    expect(await run(until(after(days), kind))).toEqual({ violations: [] });
  });

  test.each([
    [13, 23, "fullchain expires on 2026-06-15, in 13 days; at least 14 are wanted. Upload a new certificate."],
    [1, 0, "fullchain expires on 2026-06-02, in 1 day; at least 14 are wanted. Upload a new certificate."],
    [0, 1, "fullchain expires on 2026-06-01, in 0 days; at least 14 are wanted. Upload a new certificate."],
    [0, -1, "fullchain has expired on 2026-06-01. Upload a new certificate."],
    [-100, 0, "fullchain has expired on 2026-02-21. Upload a new certificate."],
  ])("the policy refuses one that expires in %d days and %d hours", async (days, hours, message) => {
    expect(await run(until(after(days, hours)), { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [message],
    });
  });

  test("the policy accepts another limit", async () => {
    const fullchain = until(after(20));
    expect(await run(fullchain, { config: { days: 20 } })).toEqual({ violations: [] });
    expect(await run(fullchain, { config: { days: 30 } })).toEqual({
      violations: [expect.stringContaining("in 20 days; at least 30 are wanted")],
    });
    expect(await run(until(after(0, 1)), { config: { days: 0 } })).toEqual({ violations: [] });
  });

  test("the policy checks the first certificate of a chain, which is the hostname's", async () => {
    const [short, long] = [until(after(1)), until(after(400))];
    expect(await run(long + short)).toEqual({ violations: [] });
    expect(await run(short + long)).toEqual({ violations: [expect.stringContaining("in 1 day;")] });
  });

  test.each(["", "hidden text", "-----BEGIN CERTIFICATE-----\naGlkZGVu\n-----END CERTIFICATE-----\n"])(
    "the policy refuses text that is not a certificate, and does not quote it: %j",
    async (fullchain) => {
      expect(await run(fullchain)).toEqual({
        violations: ["fullchain holds no certificate that can be read: its first block must be a certificate in PEM."],
      });
    },
  );

  test("the policy reports an unknown certificate", async () => {
    expect(await run(unknownText)).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^fullchain is known only at the update/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run("", { config: { day: 1 } })).rejects.toThrow('did you mean "days"?');
  });
});
