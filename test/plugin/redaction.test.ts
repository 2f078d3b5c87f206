// Removing the secrets of a request from messages about it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withoutSecrets } from "../../provider/plugin/redaction.ts";
import { resources } from "../../provider/registry.ts";
import { Output, secret, toStruct, type Properties } from "../support/properties.ts";

fc.configureGlobal({ seed: 1 });

describe("messages", () => {
  const cleaned = (properties: Properties, text: string): string => withoutSecrets([toStruct(properties)], {}, text);

  test("contain no secret of a request, however it is quoted", () => {
    const hidden = 'p"a\\ss\nword';
    const properties = { a: { b: [secret({ c: hidden })] } };
    for (const text of [`got ${hidden}`, `got ${JSON.stringify(hidden)}`, `got ${JSON.stringify({ x: hidden })}`])
      expect(cleaned(properties, text)).not.toMatch(/ss|word/);
    fc.assert(
      fc.property(fc.string({ minLength: 6, unit: "binary" }), fc.string(), fc.string(), (value, before, after) => {
        fc.pre(!before.includes(value) && !"[secret]".includes(value));
        expect(cleaned({ a: secret(value) }, before + value + after)).not.toContain(value);
      }),
    );
  });

  test("messages replace overlapping secrets once", () => {
    expect(cleaned({ a: secret("abcdef"), b: secret("abcdefghi") }, "got abcdefghi and abcdef")).toBe(
      "got [secret] and [secret]",
    );
  });

  test("contain no secret number, but keep longer numbers that contain it, and short ones", () => {
    expect(cleaned({ a: secret(4242) }, "got 4242, not 42420, 1.4242 or 4242.2; 4242.")).toBe(
      "got [secret], not 42420, 1.4242 or 4242.2; [secret].",
    );
    expect(cleaned({ a: secret(15.25) }, "got 15.25, not 15x25")).toBe("got [secret], not 15x25");
    expect(cleaned({ a: secret(3) }, "3 of 10 Machines")).toBe("3 of 10 Machines");
  });

  test("keep their letters when a secret has only a few, but neither quote it nor have it as a word", () => {
    expect(cleaned({ a: secret("a") }, 'map "a"')).toBe("map [secret]");
    expect(cleaned({ a: secret("s3c") }, "s3c is in s3cret")).toBe("[secret] is in s3cret");
    expect(cleaned({ a: secret(""), b: secret(true) }, "true, really")).toBe("true, really");
  });

  test("messages without secrets are unchanged", () => {
    expect(cleaned({ a: "visible", b: new Output("visible", { dependencies: ["u"] }) }, "visible")).toBe("visible");
  });

  test("F56: keep the words of a configuration that an SDK has marked as a whole", () => {
    const config = secret({
      image: "registry.example.com/web:1",
      env: { PASSWORD: "canary of it", MODE: "started" },
      services: [{ protocol: "tcp", internalPort: 80, ports: [{ port: 443, handlers: ["http", "tls"] }] }],
    });
    const fields = resources["Machine"]?.inputFields ?? {};
    const text =
      "could not pull registry.example.com/web:1: it is started on tcp port 80, answer json (https://github.com/pulumi-machines/pulumi-machines/blob/main/docs/troubleshooting.md#api)";
    expect(withoutSecrets([toStruct({ app: "shop", config })], fields, text)).toBe(text);
    expect(withoutSecrets([toStruct({ config })], fields, 'PASSWORD="canary of it" http')).toBe(
      "PASSWORD=[secret] http",
    );
  });

  test("hide what the schema declares secret, even if it is not marked", () => {
    const fields = resources["Secret"]?.inputFields ?? {};
    expect(withoutSecrets([toStruct({ name: "KEY", value: "hidden" })], fields, "KEY is hidden")).toBe(
      "KEY is [secret]",
    );
  });
});
