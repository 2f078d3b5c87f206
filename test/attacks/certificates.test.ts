// Uploaded certificates that clients would refuse, or that would keep the proxy busy.
import { createPublicKey, generateKeyPairSync, X509Certificate, type KeyObject } from "node:crypto";
import { describe, expect, test } from "vitest";
import { served, withReach } from "../service/reachable.ts";
import { currentCertificate } from "../support/certificates.ts";

const host = "shop.example.com";

describe("F72: certificates that clients refuse", () => {
  const pair = (made: { publicKey: KeyObject; privateKey: KeyObject }) => ({ keys: made });
  const rsa = (modulusLength: number) => pair(generateKeyPairSync("rsa", { modulusLength }));
  const ec = (namedCurve: string, paramEncoding: "named" | "explicit" = "named") =>
    pair(generateKeyPairSync("ec", { namedCurve, paramEncoding }));

  async function upload(body: { fullchain: string; private_key: string }) {
    const { call } = await withReach();
    const answer = await call("POST", "/apps/web/certificates/custom", { hostname: host, ...body });
    return [answer.status, answer.body.error ?? ""] as const;
  }

  test.each([
    ["a short RSA key", () => rsa(1024), "certificate 1 has an RSA key of 1024 bits; use RSA of 2048 to 4096 bits"],
    ["an unknown curve", () => ec("secp256k1"), "certificate 1 has an EC key on the curve secp256k1"],
    ["a short curve", () => ec("secp224r1"), "on the curve secp224r1"],
    ["a curve by its parameters", () => ec("prime256v1", "explicit"), "gives the parameters of its curve"],
  ])("F72: %s is refused with its reason", async (_, made, reason) => {
    const [status, error] = await upload(currentCertificate({ hosts: [host], ...made() }));
    expect([status, error]).toEqual([422, expect.stringContaining(reason)]);
  });

  test("F72: a chain has at most ten certificates, and no weak key anywhere", async () => {
    const chainOf = (length: number, last: { keys?: ReturnType<typeof rsa>["keys"] } = {}) => {
      const all = [currentCertificate({ hosts: [], commonName: "Authority 0", ...last })];
      for (let i = 1; i < length; i++) {
        const by = { commonName: `Authority ${i - 1}`, private_key: all[0]?.private_key ?? "" };
        const of = i === length - 1 ? { hosts: [host] } : { hosts: [], commonName: `Authority ${i}` };
        all.unshift(currentCertificate({ ...of, by }));
      }
      return { fullchain: all.map(({ fullchain }) => fullchain).join(""), private_key: all[0]?.private_key ?? "" };
    };
    expect(await upload(chainOf(10))).toEqual([201, ""]);
    expect(await upload(chainOf(11))).toEqual([
      422,
      "Validation failed: the chain has 11 certificates; at most 10 are allowed",
    ]);
    // Its modulus is no product of primes: making a real one takes seconds.
    const n = Buffer.concat([Buffer.from([255]), Buffer.alloc(1022, 7), Buffer.from([1])]).toString("base64url");
    const huge = createPublicKey({ key: { kty: "RSA", n, e: "AQAB" }, format: "jwk" });
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    expect(await upload(chainOf(2, { keys: { publicKey: huge, privateKey } }))).toEqual([
      422,
      expect.stringContaining("certificate 2 has an RSA key of 8192 bits; use RSA of 2048 to 4096 bits"),
    ]);
    const [status, error] = await upload(chainOf(2, ec("secp224r1")));
    expect([status, error]).toEqual([
      422,
      expect.stringContaining("certificate 2 has an EC key on the curve secp224r1"),
    ]);
  });

  test("F72: only the certificates of an upload are stored and served", async () => {
    const { call, service } = await withReach();
    const { fullchain, private_key } = currentCertificate({ hosts: [host] });
    const body = { hostname: host, fullchain: `${private_key}\nnote ${fullchain} end`, private_key };
    expect((await call("POST", "/apps/web/certificates/custom", body)).status).toBe(201);
    const row = service.context.store.get<{ custom_chain: string }>("SELECT custom_chain FROM hostnames");
    expect(row?.custom_chain).toBe(fullchain);
    expect(
      new X509Certificate((await served({ service } as Parameters<typeof served>[0], host)).raw).fingerprint256,
    ).toBe(new X509Certificate(fullchain).fingerprint256);
    expect(createPublicKey(private_key).asymmetricKeyType).toBe("ec");
  });
});
