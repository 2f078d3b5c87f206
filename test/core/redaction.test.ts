// Removing secrets from messages.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { docsUrl } from "../../api/docsUrl.ts";
import { messageForUser, MachinesError } from "../../provider/client/errors.ts";
import { spellings } from "../../provider/client/spellings.ts";
import { isCommonWord } from "../../provider/core/commonWords.ts";
import {
  hide,
  programLines,
  shortest,
  withheld,
  type SecretMarks,
  type Withheld,
} from "../../provider/core/redaction.ts";
import { provider } from "../../provider/dynamic/index.ts";
import { runs } from "../../provider/dynamic/run.ts";
import { resources } from "../../provider/registry.ts";

fc.configureGlobal({ seed: 1 });

const of = (
  type: string,
  inputs: Record<string, unknown>,
  ...[marks = "unreported"]: [(SecretMarks | "unreported" | "none")?]
) =>
  withheld(resources[type]?.inputFields ?? {}, inputs, marks === "none" ? undefined : marks)
    .map(({ value }) => String(value))
    .sort();
const certain = (...values: (string | number)[]): Withheld[] => values.map((value) => ({ value, isCertain: true }));
const possible = (...values: (string | number)[]): Withheld[] => values.map((value) => ({ value, isCertain: false }));

/** A mark at a path. */
const markAt = ([first, ...rest]: (string | number)[]): SecretMarks =>
  first === undefined
    ? { secret: true, within: new Map() }
    : { secret: false, within: new Map([[first, markAt(rest)]]) };

/** A configuration with a value of each kind. */
const config = {
  image: "registry.example.com/shop:1",
  env: { PASSWORD: "hunter2", MODE: "production", TOKEN: "t0p", PORT: "8080" },
  guest: { cpuKind: "performance", cpus: 4 },
  init: { cmd: ["server", "--token=hunter3"] },
  files: [{ guestPath: "/etc/shop.conf", rawValue: Buffer.from("password=hunter4").toString("base64") }],
  services: [
    {
      protocol: "tcp",
      internalPort: 8080,
      ports: [{ port: 443, handlers: ["tls", "http"] }],
      checks: [{ type: "http", interval: "15s", headers: [{ name: "Authorization", values: ["Bearer hunter5"] }] }],
    },
  ],
  metadata: { team: "payments" },
  restart: { policy: "on-failure", maxRetries: 3 },
};

describe("what inputs withhold", () => {
  test("what inputs withhold is what the schema declares secret or possibly secret", () => {
    expect(of("Secret", { app: "shop", name: "A", value: "hidden" })).toEqual(["hidden"]);
    expect(of("AppSecrets", { app: "shop", values: { A: "one", B: "two" } })).toEqual(["one", "two"]);
    const inputs = {
      image: "shop:1",
      env: { A: "hidden" },
      files: [{ guestPath: "/a", rawValue: "aGk=" }],
      checks: { up: { type: "http", path: "/", headers: [{ name: "X", values: ["private"] }] } },
    };
    expect(of("Machine", { app: "shop", region: "ams", config: inputs })).toEqual(["aGk=", "hidden", "private"]);
  });

  test("what inputs withhold is nothing if the schema does not know the property", () =>
    expect(of("Secret", { values: "visible", __context: { owner: "o" } })).toEqual([]));

  test("F56: a secret object withholds what stands at a place for secrets, and no word of the configuration", () => {
    const inputs = { app: "shop", region: "ams", config };
    const found = [
      "--token=hunter3",
      "8080",
      "Bearer hunter5",
      "hunter2",
      "password=hunter4",
      "production",
      config.files[0]?.rawValue,
      "t0p",
    ];
    // Where a file is written is no secret by its place; it only looks like a text that could be one.
    expect(of("Machine", inputs, markAt(["config"]))).toEqual([...found, "/etc/shop.conf"].sort());
    expect(of("Machine", inputs, markAt([]))).toEqual([]);
    expect(of("Machine", inputs, "none")).toEqual([]);
  });

  test("F56: a marked value is withheld at any place, unless the schema lists it", () => {
    const at = (...path: (string | number)[]) => of("Machine", { app: "shop", config }, markAt(path));
    expect(at("app")).toEqual(["shop"]);
    expect(at("config", "image")).toEqual(["registry.example.com/shop:1"]);
    expect(at("config", "metadata", "team")).toEqual(["payments"]);
    expect(at("config", "env", "TOKEN")).toEqual(["t0p"]);
    expect(at("config", "guest", "cpuKind")).toEqual([]);
    expect(at("config", "services", 0, "ports", 0, "handlers", 1)).toEqual([]);
    // A secret at the wrong place is still one.
    const wrong = { config: { services: [{ protocol: "hunter2" }] } };
    expect(of("Machine", wrong, markAt(["config", "services", 0, "protocol"]))).toEqual(["hunter2"]);
  });

  test("what inputs withhold is certain only if the schema or the program says it of exactly this value", () => {
    const certainly = (type: string, inputs: Record<string, unknown>, marks: SecretMarks | "unreported") =>
      withheld(resources[type]?.inputFields ?? {}, inputs, marks).filter(({ isCertain }) => isCertain);
    expect(certainly("Machine", { config }, "unreported")).toEqual([]);
    expect(certainly("Machine", { config }, markAt(["config"]))).toEqual([]);
    expect(certainly("Machine", { config }, markAt(["config", "env", "TOKEN"]))).toEqual(certain("t0p"));
    expect(certainly("AppSecrets", { values: { A: "abc" } }, "unreported")).toEqual(certain("abc"));
  });
});

describe("hiding", () => {
  const url = docsUrl("troubleshooting.md#machine-failed");
  const sentence = `Machine web-1: the http check "alive" failed; its state is started, its answer is json. See ${url}`;

  test("F56: a short text that may be secret is removed only where it is quoted", () => {
    expect(hide(possible("web"), 'Machine web-1: "web" is not allowed')).toBe("Machine web-1: [secret] is not allowed");
    expect(hide(possible("website"), 'Machine website-1: "website" is not allowed')).toBe(
      "Machine [secret]-1: [secret] is not allowed",
    );
  });

  test("F56: a short text that is certainly secret is removed where it is a whole word, never inside another one", () => {
    expect(hide(certain("pass"), "password=pass, PASS_pass, passes, (pass)")).toBe(
      "password=[secret], PASS_pass, passes, ([secret])",
    );
    expect(hide(certain("é"), "é été")).toBe("[secret] été");
    expect(hide(certain("a!"), 'a! "a!" aa!')).toBe("[secret] [secret] aa!");
  });

  test("F56: common words are removed only where they are quoted", () => {
    for (const word of ["http", "started", "production", "true", "on-failure", "us"]) {
      expect(hide(possible(word), sentence)).toBe(sentence);
      expect(hide(possible(word), `got "${word}" of ${word}`)).toBe(`got [secret] of ${word}`);
    }
    expect(hide(certain("started", "http"), sentence)).toBe(sentence);
  });

  test("F56: addresses of the documentation stay, whatever the secrets are", () => {
    for (const word of ["github", "troubleshooting", "s://github.com", "pulumi-machines", "secret"])
      expect(hide(certain(word), `${url} [secret]`)).toBe(`${url} [secret]`);
    expect(hide(certain(`${url}/token`), `at ${url}/token`)).toBe("at [secret]");
    const error = new MachinesError("api", "it failed");
    const secrets = withheld(resources["Machine"]?.inputFields ?? {}, { config }, markAt(["config"]));
    expect(hide(secrets, messageForUser(error))).toBe(messageForUser(error));
  });

  test("overlapping secrets leave no part of any", () => {
    expect(hide(certain("abcdefgh", "efghijkl"), "got abcdefghijkl.")).toBe("got [secret].");
    expect(hide(certain("abcdef", "abcdefgh"), "got abcdefgh and abcdef")).toBe("got [secret] and [secret]");
    expect(hide(certain("aXaXaXa"), "aXaXaXaXa")).toBe("[secret]");
    // What replaced a secret is not searched for another one.
    expect(hide(certain("ecret]", "token-of-it"), "token-of-it and ecret]")).toBe("[secret] and [secret]");
  });

  test("numbers are removed only if they are certain, long and whole", () => {
    expect(hide(certain(123456, 12), "got 123456, not 1234567, 1.123456 or 12 of 12.5")).toBe(
      "got [secret], not 1234567, 1.123456 or 12 of 12.5",
    );
    expect(hide(possible(123456), "got 123456")).toBe("got 123456");
  });

  test.each([
    ["a URL", encodeURIComponent],
    ["a form", (text: string) => new URLSearchParams({ a: text }).toString()],
    ["JSON", JSON.stringify],
    ["JSON in JSON", (text: string) => JSON.stringify({ a: JSON.stringify(text) })],
    ["Go's JSON", (text: string) => JSON.stringify(text).replaceAll("&", "\\u0026").replaceAll("<", "\\u003c")],
    ["base64", (text: string) => Buffer.from(`user:${text}`).toString("base64")],
    ["hexadecimal", (text: string) => Buffer.from(text).toString("hex")],
    ["a truncated text", (text: string) => `${text.slice(0, 12)}…`],
  ])("a secret is recognized in %s", (_, encoded) => {
    const secret = 'c4n4ry "é/+&%<\n';
    const text = encoded(secret);
    expect(hide(certain(secret), `before ${text} after`)).toContain("[secret]");
    expect(hide(certain(secret), `before ${text} after`)).not.toMatch(/c4n4ry|YzRuNHJ5|63346e347279/);
  });

  const texts = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string(),
    fc.constantFrom(sentence, "http json started", '{"a":"b"}', url, "… ("),
  );

  test("every secret of the minimum length is removed wherever it stands", () => {
    const secrets = fc.array(fc.string({ minLength: shortest, unit: "binary" }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(secrets, fc.array(texts, { minLength: 2, maxLength: 6 }), (all, around) => {
        // The marks that we write ourselves, and the documentation, may look like anything.
        fc.pre(all.every((one) => !isCommonWord(one) && !`${url}[secret][secret]`.includes(one)));
        const text = around.map((part, i) => part + (all[i % all.length] ?? "")).join("");
        const cleaned = hide(certain(...all), text).split("[secret]");
        for (const one of all) for (const part of cleaned) expect(part).not.toContain(one);
      }),
      { numRuns: 500 },
    );
  });

  test("a text without secrets is unchanged", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1, unit: "binary" })), texts, (all, text) => {
        fc.pre(!text.includes("…"));
        const encoded = all.flatMap((one) => [one, JSON.stringify(one).slice(1, -1), ...spellings(one)]);
        fc.pre(encoded.every((form) => !text.includes(form)));
        expect(hide(certain(...all), text)).toBe(text);
        expect(hide(possible(...all), text)).toBe(text);
      }),
      { numRuns: 500 },
    );
  });
});

describe("lines of a program", () => {
  const run = (...secrets: Withheld[]) => ({ secrets: () => secrets });

  test("have no secrets of the run, no terminal controls, and an end", () => {
    const key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ\nq8ZpYgX2\n-----END PRIVATE KEY-----\n";
    const lines = [
      "MC4CAQAwBQYDK2VwBCIEIJ",
      "-----END PRIVATE KEY-----",
      "\u001b[31mcannot connect to postgres://shop:hunter22@db\u001b[0m",
      "x".repeat(10_000),
    ];
    const shown = programLines(run(...certain(key, "hunter22")), lines);
    expect(shown.slice(0, 3)).toEqual([
      "[secret]",
      "-----END PRIVATE KEY-----",
      "\\u001b[31mcannot connect to postgres://shop:[secret]@db\\u001b[0m",
    ]);
    expect(shown[3]).toMatch(/^x{200}… \(10,000 characters\)$/);
  });

  test("have no secret of another resource of the run, until the next run begins", async () => {
    const resource = provider("AppSecrets");
    await resource.configure?.({ config: { get: () => undefined, require: () => "" } });
    await resource.check?.({}, { app: "shop", values: { PASSWORD: "hunter22" } });
    expect(programLines(runs.current, ["PASSWORD=hunter22"])).toEqual(["PASSWORD=[secret]"]);
    runs.begin();
    expect(programLines(runs.current, ["PASSWORD=hunter22"])).toEqual(["PASSWORD=hunter22"]);
  });

  test("keep words that a variable may have, and lose a text that a file contains", () => {
    const secrets = withheld(resources["Machine"]?.inputFields ?? {}, { config }, "unreported");
    expect(programLines(run(...secrets), ["listening on 8080 in production", "read password=hunter4"])).toEqual([
      "listening on 8080 in production",
      "read [secret]",
    ]);
  });
});

test.each(["", "a", "ab", "abc"])("a token is recognised in any encoding, after %j", (before) => {
  const token = "fm2_a token+with/more?~ÿ";
  const bytes = Buffer.from(`${before}${token} and more`);
  const clean = (text: string) => spellings(token).reduce((cleaned, one) => cleaned.replaceAll(one, "[token]"), text);
  for (const quoted of [
    `${before}${token}`,
    encodeURIComponent(`${before}${token}`),
    bytes.toString("hex"),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    Buffer.from(`${before}${token}`).toString("base64"),
  ]) {
    expect(clean(`it said ${quoted}.`)).toContain("[token]");
  }
  expect(clean(Buffer.from(`${before}${token}`).toString("base64")).length).toBeLessThan(15);
});

test("an empty token and short words of a short token remove nothing", () => {
  expect(spellings("")).toEqual([]);
  expect(spellings("abc")).toEqual(["abc"]);
});
