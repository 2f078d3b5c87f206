import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { entropyOf, secretIn } from "../../../policy/core/secretText.ts";

fc.configureGlobal({ seed: 1 });

const why = (name: string, value: string) => secretIn(name, value, { names: [], entropy: 4.2 });
/** Evenly distributed bytes, unlike the ones that fast-check prefers. */
const bytes = fc.string().map((seed) => createHash("sha256").update(seed).digest());
const digest = "0123456789abcdef".repeat(4);
const random = "q7Zp2Lw9Xk4Vb8Nc1Md6Rt3Ys5Hg0Jf";
const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";

describe("text that is not secret", () => {
  test.each([
    ["PORT", "8080"],
    ["GREETING", "Hello, world! This is a rather long text with 12 words in it."],
    ["NODE_ENV", "production"],
    ["PUBLIC_URL", "https://www.example.com:8443/a/b?page=2#top"],
    ["PUBLIC_URL", "https://www.example.com:443?mail=a@example.com"],
    ["DATABASE_URL", "postgres://shop@db.internal:5432/shop"],
    ["DATABASE_URL", "postgres://shop:${DATABASE_PASSWORD}@db.internal/shop"],
    ["REPOSITORY", "git@github.com:acme/shop.git"],
    ["PASSWORD", ""],
    ["REQUIRE_PASSWORD", "true"],
    ["TOKEN_TTL", "3600"],
    ["REFRESH_TOKEN", "15m"],
    ["DB_PASSWORD", "${OTHER_PASSWORD}"],
    ["DB_PASSWORD", "$OTHER_PASSWORD"],
    ["DB_PASSWORD", "$(OTHER_PASSWORD)"],
    ["PASSWORD_FILE", "/run/secrets/password"],
    ["PASSWORD_FILE", "/run/x"],
    ["GOOGLE_APPLICATION_CREDENTIALS", "/etc/google/credentials.json"],
    ["SECRET_NAME", "shop-database"],
    ["TOKEN_URL", "https://auth.example.com/oauth/token"],
    ["MAX_TOKENS", "a lot"],
    ["PASSWORD_MIN_LENGTH", "twelve"],
    ["PARTITION_KEY", "customer"],
    ["PWD", "/srv/app"],
    ["OLDPWD", "/srv"],
    ["COMPASS", "north"],
    ["REQUEST_ID", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"],
    ["TENANT", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"],
    ["IMAGE", `registry.example.com/shop:1.2.3@sha256:${digest}`],
    ["IMAGE", "ghcr.io/acme-corporation/shop-frontend/production-2024"],
    ["CHECKSUM", digest],
    ["VALUE", `sha256:${digest}`],
    ["SRI", "sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"],
    ["GIT_COMMIT", "3c8471e0d5aa9e1bd1f4c6a27e91b8fd33c84a71"],
    ["GIT_SHA", "3c8471e0d5aa9e1bd1f4c6a27e91b8fd33c84a71"],
    ["SENTRY_RELEASE", "3c8471e0d5aa9e1bd1f4c6a27e91b8fd33c84a71"],
    ["LAST_DEPLOYMENT", "01JD8Z4Q2Y5W7K9M3N6P1R0TSV"],
    ["MODEL", "Llama-3.3-70B-Instruct"],
    ["DATE_FORMAT", "YYYY-MM-DDTHH-mm-ssZ0700"],
    ["TLS_CIPHERS", "ECDHE-ECDSA-AES128-GCM-SHA256"],
    ["BUCKET", "mycompany-prod-assets-eu-west-1-1a2b3c4d"],
    ["LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"],
    ["POD", "k8s-prod-7f9c6d5b8-x2x4z"],
    ["SHARD", "shop-x1y2-prod-a3b4-eu"],
    // Hexadecimal digits that are few, or nearly all the same.
    ["VALUE", "3c8471e0d5aa9e1bd1f4"],
    ["VALUE", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"],
    ["OAUTH_CLIENT_ID", "q7Zp2Lw9Xk4Vb8Nc1Md6Rt3Ys5Hg0Jf"],
    ["VAPID_PUBLIC_KEY", "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM"],
    ["STRIPE_KEY", "pk_live_51H8aT2eZvKYlo2C0qF1x9mBn"],
    ["DB_HOST", "shop-prod-1.cluster-c9x7k2m4q1zt.eu-west-1.rds.amazonaws.com:5432"],
    ["PRIVATE_IP", "fdaa:0:1234:a7b:7d:0:1:2"],
    ["VERSION", "v1.2.3-20261122040212-3c8471e0d5aa"],
    ["STARTED", "2026-11-22T04:02:12.123456Z"],
    ["CONFIG_PATH", "/etc/shop/production/eu-west-1/config.d/10-defaults.yaml"],
    ["NODE_OPTIONS", "--max-old-space-size=4096"],
    ["SERVICES", "auth-billing-checkout-delivery-export-frontend-2"],
    ["FLAG", "TheQuickBrownFoxJumpsOverTheLazyDog"],
    ["CLASS", "Acme.Shop.Checkout.PaymentProviderFactoryImplementation"],
    ["ALPHABET", "abcdefghijklmnopqrstuvwxyz"],
    ["JSON", '{"level":"info","format":"json","q7Zp2":"Lw9Xk4Vb8Nc1Md6Rt3Ys5Hg0Jf"}'],
    [
      "PEM",
      "-----BEGIN CERTIFICATE-----\nMIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn+dNuaTAKBggqhkjOPQQDAjASMRAw\n-----END CERTIFICATE-----\n",
    ],
    ["SIZE", "12345678901234567890123456789012"],
    ["STORAGE", "task-runner-storage-for-production-workloads"],
  ])("the variable %s=%s is not secret", (name, value) => {
    expect(why(name, value)).toBeUndefined();
  });

  test("words joined by dashes, dots or underscores that end with a number are not secret", () => {
    const word = fc.tuple(fc.stringMatching(/^(?:[a-z]{2,12}|[A-Z][a-z]{2,12}|[A-Z]{2,12})$/), fc.nat(999));
    const words = fc.array(
      word.map(([text, number]) => (number < 500 ? text : `${text}${number}`)),
      { minLength: 2, maxLength: 12 },
    );
    fc.assert(
      fc.property(words, fc.constantFrom("-", ".", "_"), (words, between) => {
        expect(why("VALUE", words.join(between))).toBeUndefined();
      }),
    );
  });

  test("decimal numbers and identifiers are not secret", () => {
    fc.assert(
      fc.property(fc.oneof(fc.uuid(), fc.nat().map(String), fc.ipV4(), fc.webUrl()), (value) => {
        expect(why("VALUE", value)).toBeUndefined();
      }),
    );
  });
});

describe("text that is secret because of its name", () => {
  test.each([
    "DATABASE_PASSWORD",
    "PGPASSWORD",
    "MYSQL_PWD",
    "DB_PASS",
    "db-password",
    "dbPassword",
    "spring.datasource.password",
    "SSH_PASSPHRASE",
    "SECRET",
    "CLIENT_SECRET",
    "AUTH_TOKEN",
    "TOKEN_2",
    "API_KEY",
    "APIKEY",
    "apiKey",
    "API_KEY_V2",
    "AWS_SECRET_ACCESS_KEY",
    "RAILS_MASTER_KEY",
    "SECRET_KEY_BASE",
    "SMTP_CREDENTIALS",
    "CONNECTION_STRING",
    "SENTRY_DSN",
  ])("the name %s is secret", (name) => {
    expect(why(name, "changeme")).toBe("its name");
    expect(why(name, "$ecret")).toBe("its name");
  });

  test("an additional name is secret, in any case", () => {
    const options = { names: ["*_salt", "Pepper"], entropy: 4.2 };
    expect(secretIn("SESSION_SALT", "abc", options)).toBe("its name");
    expect(secretIn("pepper", "abc", options)).toBe("its name");
    expect(secretIn("PEPPERS", "abc", options)).toBeUndefined();
    // Plain text is not secret under any name.
    expect(secretIn("PEPPER", "true", options)).toBeUndefined();
  });
});

describe("text that is secret because of its format", () => {
  test.each([
    ["a private key", "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----"],
    ["a private key", "-----BEGIN RSA PRIVATE KEY-----\\nMIIE"],
    ["a private key", "-----BEGIN PGP PRIVATE KEY BLOCK-----"],
    ["a private key", '{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\\nMC4C"}'],
    ["a password in an address", "postgres://shop:hunter2@db.example.com/shop"],
    ["a password in an address", "redis://:hunter2@cache:6379"],
    ["a password in an address", "jdbc:postgresql://shop:hunter2@db/shop"],
    ["a password in an address", "redis://:p#ss@cache:6379"],
    ["a password in an address", "amqp://a,amqp://shop:hunter2@b"],
    ["an address with a secret in it", "jdbc:postgresql://db/shop?user=shop&password=hunter2"],
    ["an address with a secret in it", "https://example.com/hook?token=abcdef"],
    ["an address with a secret in it", "https://hooks.slack.com/services/T0/B0/x"],
    ["a password in a connection string", "Server=db;User=shop;Password=hunter2;"],
    ["a password in a connection string", "host=db user=shop password=hunter2"],
    ["a signed token", jwt],
    ["a signed token", `Bearer ${jwt}`],
    ["an access key", "AKIAIOSFODNN7EXAMPLE"],
    ["a token of a code host", `ghp_${"a1B2".repeat(9)}`],
    ["a token of a code host", "glpat-abcdefghij0123456789"],
    ["a token of a service", "sk_live_51H8aT2eZvKYlo2C"],
    ["a token of a service", "xoxb-1234567890-abcdef"],
    ["a key of a service", `AIza${"Sy0".repeat(11)}ab`],
    ["a key of a service", `sk-proj-${"aB3".repeat(12)}`],
  ])("the format of %s is secret: %s", (what, value) => {
    expect(why("VALUE", value)).toBe(`its value, which has the format of ${what}`);
    // No name makes such a secret harmless.
    expect(why("PUBLIC_KEY", value)).toBe(`its value, which has the format of ${what}`);
  });
});

describe("text that is secret because it looks random", () => {
  test.each([
    random,
    `${random}\n`,
    `Bearer ${random}`,
    "base64:3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs=",
    "9f86d081884c7d659a2feaa0c55ad015",
    "/k3Qz+Wp8Lx0Vn5Rt1Yb7Mc4Hs9Jd6Fg2Ua=",
    // 16 bytes, and 20 letters.
    "3q2+78oB1kFz9WxQhT5mLg==",
    "k3Qz8Wp1Lx0Vn5Rt7YbM",
    "k3Qz8Wp1Lx0Vn5Rt33kk",
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
  ])("the text %j is secret because it looks random", (value) => {
    expect(why("VALUE", value)).toBe("its value, which looks random");
  });

  test("every key of 32 bytes is secret, in base64 and in hexadecimal digits", () => {
    fc.assert(
      fc.property(bytes, fc.constantFrom("base64", "base64url", "hex"), (key, encoding) => {
        expect(why("VALUE", key.toString(encoding))).toBe("its value, which looks random");
      }),
      { numRuns: 2000 },
    );
  });

  test("every key of 16 bytes in hexadecimal digits is secret, in either case", () => {
    fc.assert(
      fc.property(bytes, fc.boolean(), (key, upper) => {
        const hex = key.subarray(0, 16).toString("hex");
        expect(why("VALUE", upper ? hex.toUpperCase() : hex)).toBe("its value, which looks random");
      }),
      { numRuns: 2000 },
    );
  });

  test("a lower bound of bits makes more texts secret", () => {
    const value = "a1b2a1b2a1b2a1b2a1b2z9";
    expect(why("VALUE", value)).toBeUndefined();
    expect(secretIn("VALUE", value, { names: [], entropy: 2 })).toBe("its value, which looks random");
  });
});

test("the reason never contains the value", () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string({ unit: "binary" }),
      fc.constantFrom("", "postgres://a:"),
      (name, value, before) => {
        const secret = `${before}§${value}@§`;
        expect(why(name, secret) ?? "").not.toContain("§");
        expect(why("PASSWORD", secret) ?? "").not.toContain("§");
      },
    ),
  );
});

test("a long text takes linear time", () => {
  const pairs = 250_000;
  for (const text of ["aa".repeat(pairs), "aB".repeat(pairs), `${"a-".repeat(pairs)}!`, `${"a1".repeat(pairs)}_`]) {
    const start = process.cpuUsage();
    why("VALUE", text);
    why("PASSWORD", `/run/${text}`);
    // CPU time, because a busy computer runs it slowly: tenths of a second, or minutes if it were not linear.
    expect(process.cpuUsage(start).user / 1e6).toBeLessThan(20);
  }
});

test("entropy is per letter, in bits", () => {
  expect(entropyOf("")).toBe(0);
  expect(entropyOf("aaaa")).toBe(0);
  expect(entropyOf("abab")).toBe(1);
  expect(entropyOf("0123456789abcdef")).toBe(4);
});
