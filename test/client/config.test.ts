import { describe, expect, test } from "vitest";
import { exposureOf, readConfig } from "../../provider/client/config.ts";

const read = (stack: Record<string, string>, env: Record<string, string> = {}) => readConfig((key) => stack[key], env);
const valid = { endpoint: "http://127.0.0.1:4280", token: "t0ken" };

describe("configuration", () => {
  test("stack configuration overrides the environment", () => {
    expect(read(valid, { MACHINES_ENDPOINT: "http://other", MACHINES_TOKEN: "x" })).toMatchObject({
      endpoint: "http://127.0.0.1:4280",
      tokenSource: "machines:token",
    });
    expect(read({}, { MACHINES_ENDPOINT: "http://other", MACHINES_TOKEN: "x" })).toMatchObject({
      endpoint: "http://other",
      tokenSource: "MACHINES_TOKEN",
    });
  });

  test("the error for a missing endpoint names both ways to set it", () => {
    expect(() => read({})).toThrow(/machines:endpoint https.*machines:endpoint local/);
  });

  test.each([
    ["http://h:1/", "http://h:1"],
    ["http://h:1/v1", "http://h:1"],
    ["http://h:1/v1/", "http://h:1"],
    ["https://h/prefix/v1", "https://h/prefix"],
    ["https://h/prefix/", "https://h/prefix"],
  ])("%s is %s", (given, endpoint) => expect(read({ ...valid, endpoint: given }).endpoint).toBe(endpoint));

  test.each(["h:1", "127.0.0.1:4280", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "https://h#x"])(
    "%s is refused",
    (endpoint) => {
      expect(() => read({ ...valid, endpoint })).toThrow(/machines:endpoint/);
      expect(() => read({}, { MACHINES_ENDPOINT: endpoint, MACHINES_TOKEN: "x" })).toThrow(/^MACHINES_ENDPOINT: /);
    },
  );

  test.each(["line\nbreak", "carriage\rreturn", "nul\u0000", " leading", "ünicode"])(
    "a token like %j is refused and never quoted",
    (token) => {
      expect(() => read({ ...valid, token })).toThrow(/machines:token: the token contains/);
      try {
        read({ ...valid, token });
      } catch (error) {
        expect(String(error)).not.toContain(token);
      }
    },
  );

  test("a token that contains a scheme word is a single token", () => {
    expect(read({ ...valid, token: "Scheme abc_def" }).token).toBe("Scheme abc_def");
  });

  test.each([
    ["4", { machines: 4 }],
    ["25%", { percent: 25 }],
    ["100%", { percent: 100 }],
  ])("maxUnavailable of %s is accepted", (maxUnavailable, expected) =>
    expect(read({ ...valid, maxUnavailable }).maxUnavailable).toEqual(expected),
  );

  test.each(["0", "0%", "101%", "-1", "half", "2.5", "25 %"])("maxUnavailable of %s is refused", (maxUnavailable) =>
    expect(() => read({ ...valid, maxUnavailable })).toThrow(
      `machines:maxUnavailable: got ${JSON.stringify(maxUnavailable)}; must be a whole number from 1, or a percentage from 1% to 100%`,
    ),
  );

  const exposed = (endpoint: string): string | undefined => exposureOf(read({ ...valid, endpoint }));

  test.each([
    "http://machines.example.com",
    "HTTP://Machines.Example.com/v1",
    "http://10.0.0.7:4280",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
    "http://[2001:db8::1]:4280",
    "http://[::ffff:10.0.0.7]",
  ])("a token that would go unencrypted to %s causes a warning that does not quote it", (endpoint) => {
    expect(exposed(endpoint)).toMatch(/^the token from machines:token goes to http:\/\/\S+ unencrypted/);
    expect(exposed(endpoint)).not.toContain(valid.token);
  });

  test.each([
    "https://machines.example.com",
    "http://localhost:4280",
    "http://service.localhost",
    "http://127.0.0.1",
    "http://127.1.2.3",
    "http://127.1",
    "http://0.0.0.0:1",
    "http://[::1]:4280",
    "http://[::]:4280",
    "http://[::ffff:127.0.0.1]",
    "local",
  ])("no warning is given for %s", (endpoint) => expect(exposed(endpoint)).toBeUndefined());

  test("local needs no token, a URL does", () => {
    expect(read({ endpoint: "local" })).toMatchObject({ endpoint: "local", token: undefined });
    expect(() => read({ endpoint: "http://h" })).toThrow(/no access token/);
  });

  test.each([
    ["retries", "many"],
    ["retries", "21"],
    ["requestTimeoutSeconds", "0"],
    ["leaseHeader", "a b"],
    ["organization", "a/b"],
    ["allowMissingApps", "yes"],
  ])("%s = %s is refused by name", (key, value) =>
    expect(() => read({ ...valid, [key]: value })).toThrow(new RegExp(`machines:${key}: got`)),
  );
});
