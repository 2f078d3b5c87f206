import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp } from "../support/around.ts";
import { callings, type Calling } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(callings)("functions about Apps, $name binding", ({ start }) => {
  let service: TestService;
  let calling: Calling;
  beforeAll(async () => {
    service = await startService();
    calling = await start(service);
    for (const name of ["one", "two", "three"]) await makeApp(service, name);
  });
  afterAll(async () => {
    await calling.close();
    await service.close();
  });

  test("getApp returns an App, and reports one that does not exist", async () => {
    const { answer, isSecret } = await calling.call("getApp", { name: "one" });
    expect(answer).toMatchObject({ name: "one", status: "pending", machineCount: 0, volumeCount: 0 });
    expect(isSecret).toBe(false);
    await expect(calling.call("getApp", { name: "none" })).rejects.toThrow(/apps.get answered 404/);
  });

  test("getApps lists all of them, also in a preview", async () => {
    for (const isPreview of [false, true]) {
      const { answer } = await calling.call("getApps", {}, { isPreview });
      expect((answer["apps"] as { name: string }[]).map(({ name }) => name).sort()).toEqual(["one", "three", "two"]);
    }
  });

  test("invalid arguments are refused by name before anything is sent", async () => {
    const before = service.requests.length;
    await expect(calling.call("getApp", { nam: "one" })).rejects.toThrow(
      /getApp: nam: there is no such property; did you mean name\?; name: is required/,
    );
    expect(service.requests.length).toBe(before);
  });

  test("the error for an unknown function names the nearest one", async () => {
    await expect(calling.call("getAp")).rejects.toThrow(/getAp/);
  });
});
