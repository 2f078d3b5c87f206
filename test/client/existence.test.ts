// What proves that an object was deleted, and what does not (R8).
import { afterAll, beforeAll, expect, test } from "vitest";
import { confirmDeleted } from "../../provider/client/existence.ts";
import { makeApp } from "../support/around.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await makeApp(service, "shop");
});
afterAll(() => service.close());

test("an existing App proves that a missing object in it was deleted", async () => {
  const { api, sent } = jumpingClient(service);
  await confirmDeleted(api, { kind: "app", name: "shop" });
  expect(sent).toEqual(["apps.get 200"]);
});

test("a 410 of a cluster proves its deletion without reading a list", async () => {
  const { api, sent } = jumpingClient(service);
  service.fail({ operation: "postgres.get", when: "before", status: 410 });
  await confirmDeleted(api, { kind: "cluster", name: "c1" });
  expect(sent).toEqual(["postgres.get 410"]);
});

test("a 404 alone proves nothing while no other App of the run is found", async () => {
  const { api, sent } = jumpingClient(service);
  await expect(confirmDeleted(api, { kind: "app", name: "other" })).rejects.toMatchObject({ code: "missing-apps" });
  expect(sent).toEqual(["apps.get 404", "apps.list 200"]);
});

test("a 404 for an App that the list still contains is a contradiction, not a proof", async () => {
  const { api } = jumpingClient(service);
  service.fail({ operation: "apps.get", when: "before", status: 404 });
  await expect(confirmDeleted(api, { kind: "app", name: "shop" })).rejects.toThrow(
    /404 for App shop and still lists it/,
  );
});
