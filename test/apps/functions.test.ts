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

  test("getApp tells of an App, and of one that is not there says so", async () => {
    const { answer, isSecret } = await calling.call("getApp", { name: "one" });
    expect(answer).toMatchObject({ name: "one", status: "pending", machineCount: 0, volumeCount: 0 });
    expect(isSecret).toBe(false);
    await expect(calling.call("getApp", { name: "none" })).rejects.toThrow(/apps.get answered 404/);
  });

  test("getApps lists all of them, in a preview too", async () => {
    for (const isPreview of [false, true]) {
      const { answer } = await calling.call("getApps", {}, { isPreview });
      expect((answer["apps"] as { name: string }[]).map(({ name }) => name).sort()).toEqual(["one", "three", "two"]);
    }
  });

  test("arguments that cannot work are refused by name, before anything is sent", async () => {
    const before = service.requests.length;
    await expect(calling.call("getApp", { nam: "one" })).rejects.toThrow(
      /getApp: nam: there is no such property; did you mean name\?; name: is required/,
    );
    expect(service.requests.length).toBe(before);
  });

  test("a function there is not has a nearest one", async () => {
    await expect(calling.call("getAp")).rejects.toThrow(/getAp/);
  });
});
