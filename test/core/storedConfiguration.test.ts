// Failures with the configuration that the last `up` stored: the explanation comes first, and once per run.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bindings } from "../support/binding.ts";
import { makeApp } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(bindings)("a run without a program, on the $name binding", ({ start }) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
    for (const name of ["one", "two", "three"]) await makeApp(service, name);
  });
  afterAll(() => service.close());

  test("a rotated token: the first error says that it is the stored one, and the others are short", async () => {
    const { bound, close } = await start("App", { url: service.url, token: "rotated" });
    try {
      const failed = async (work: Promise<unknown>): Promise<string> =>
        work.then(
          () => "no error",
          (error: unknown) => (error as { details?: string }).details ?? (error as Error).message,
        );
      expect(await failed(bound.read("one", { name: "one" }))).toMatch(
        /^Without --run-program, refresh and destroy use the configuration that the last `pulumi up` stored\. .* answered 401: .* has expired\. \(https:\S+troubleshooting\.md#api\)$/,
      );
      const short = "answered 401, as for App one: see its error";
      expect(await failed(bound.read("two", { name: "two" }))).toBe(short);
      expect(await failed(bound.read("three", { name: "three" }))).toBe(short);
      await bound.nextRun();
      expect(await failed(bound.read("two", { name: "two" }))).toMatch(/^Without --run-program/);
    } finally {
      await close();
    }
  });

  test("an endpoint that was corrected since: the error says that it is the stored one", async () => {
    const { bound, close } = await start("App", { url: "http://127.0.0.1:1", token: service.token }, { retries: "0" });
    try {
      await expect(bound.read("one", { name: "one" })).rejects.toThrow(
        /Without --run-program, refresh and destroy use the configuration that the last `pulumi up` stored\. .*run `pulumi up` first, or add --run-program.*ECONNREFUSED/,
      );
    } finally {
      await close();
    }
  });
});
