import { describe, expect, test } from "vitest";
import { certificatesValidated } from "../../../policy/policies/certificatesValidated.ts";
import { checkStack, unknownText, type Declared } from "../../support/policies.ts";

const certificate = (name: string, hostname: string, more: Partial<Declared> = {}): Declared => ({
  type: "AcmeCertificate",
  name,
  props: { app: "shop", hostname },
  ...more,
});
const validation = (hostname: string, ...madeOf: string[]): Declared => ({
  type: "CertificateValidation",
  name: "validation",
  props: { app: "shop", hostname },
  madeOf: { hostname: madeOf },
});
const missing = (name: string) =>
  `${name}: Nothing waits until it is valid. Add a CertificateValidation with its hostname.`;

describe("certificates-validated", () => {
  test.each<[string, Declared[]]>([
    ["no certificate", []],
    ["no certificate, but a validation", [validation("www.example.com")]],
    ["a validation created from it, at a preview", [certificate("a", "www.example.com"), validation(unknownText, "a")]],
    ["a validation with the literal hostname", [certificate("a", "www.example.com"), validation("www.example.com")]],
    ["a validation with the literal id", [certificate("a", "www.example.com"), validation("shop/www.example.com")]],
    ["a wildcard", [certificate("a", "*.example.com"), validation("shop/*.example.com")]],
    // A DNS zone, for example: the validation belongs to the certificate by their shared hostname.
    [
      "a hostname that both derive from another resource",
      [
        { type: "App", name: "zone", props: {} },
        certificate("a", "www.example.com"),
        validation("www.example.com", "zone"),
      ],
    ],
    [
      "several",
      [
        certificate("a", "a.example.com"),
        certificate("b", "b.example.com"),
        validation(unknownText, "b"),
        validation(unknownText, "a"),
      ],
    ],
  ])("the policy accepts: %s", async (_, declared) => {
    expect(await checkStack(certificatesValidated, declared)).toEqual({ violations: [] });
    expect(await checkStack(certificatesValidated, declared, { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [],
    });
  });

  test.each<[string, Declared[]]>([
    ["without any", []],
    ["with a validation of another one", [certificate("b", "b.example.com"), validation(unknownText, "b")]],
    ["with a validation of another hostname", [validation("b.example.com")]],
    ["with a validation of a hostname with the same end", [validation("x.a.example.com")]],
  ])("the policy reports a certificate %s", async (_, declared) => {
    expect(await checkStack(certificatesValidated, [certificate("a", "a.example.com"), ...declared])).toEqual({
      violations: [missing("a")],
    });
  });

  test("the policy ignores an uploaded certificate", async () => {
    const custom = { type: "CustomCertificate", name: "a", props: { hostname: "a.example.com" } } as const;
    expect(await checkStack(certificatesValidated, [custom])).toEqual({ violations: [] });
  });

  test("the policy continues after unknown values", async () => {
    const declared = [certificate("a", unknownText), certificate("b", "b.example.com"), validation("c.example.com")];
    expect(await checkStack(certificatesValidated, declared)).toEqual({
      violations: [missing("b")],
      unknown: expect.stringMatching(/^a\.hostname is known only at the update, and is checked at its end$/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(checkStack(certificatesValidated, [], { config: { days: 1 } })).rejects.toThrow('has "days"');
  });
});
