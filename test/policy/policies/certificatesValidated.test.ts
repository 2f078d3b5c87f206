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
    ["no certificate, and a validation", [validation("www.example.com")]],
    ["one made of it, at a preview", [certificate("a", "www.example.com"), validation(unknownText, "a")]],
    ["the hostname, written out", [certificate("a", "www.example.com"), validation("www.example.com")]],
    ["the id, written out", [certificate("a", "www.example.com"), validation("shop/www.example.com")]],
    ["a wildcard", [certificate("a", "*.example.com"), validation("shop/*.example.com")]],
    // A zone, say: the validation is of the certificate by the hostname that both have.
    [
      "a hostname that both are made of something else from",
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
  ])("lets pass: %s", async (_, declared) => {
    expect(await checkStack(certificatesValidated, declared)).toEqual({ violations: [] });
    expect(await checkStack(certificatesValidated, declared, { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [],
    });
  });

  test.each<[string, Declared[]]>([
    ["without any", []],
    ["with one of another", [certificate("b", "b.example.com"), validation(unknownText, "b")]],
    ["with one of another hostname", [validation("b.example.com")]],
    ["with one of a hostname that ends alike", [validation("x.a.example.com")]],
  ])("names a certificate %s", async (_, declared) => {
    expect(await checkStack(certificatesValidated, [certificate("a", "a.example.com"), ...declared])).toEqual({
      violations: [missing("a")],
    });
  });

  test("one that you bring yourself is none of it", async () => {
    const custom = { type: "CustomCertificate", name: "a", props: { hostname: "a.example.com" } } as const;
    expect(await checkStack(certificatesValidated, [custom])).toEqual({ violations: [] });
  });

  test("goes on past what is unknown", async () => {
    const declared = [certificate("a", unknownText), certificate("b", "b.example.com"), validation("c.example.com")];
    expect(await checkStack(certificatesValidated, declared)).toEqual({
      violations: [missing("b")],
      unknown: expect.stringMatching(/^a\.hostname is known only at the update, and is checked at its end$/),
    });
  });

  test("has no settings but exceptions", async () => {
    await expect(checkStack(certificatesValidated, [], { config: { days: 1 } })).rejects.toThrow('has "days"');
  });
});
