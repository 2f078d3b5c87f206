import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sdkFiles } from "../../tools/generate/sdk.ts";
import { packageSchema } from "../../tools/generate/schema.ts";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf } from "../support/driver.ts";
import { handled, type Handled } from "../support/handled.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startPlugin } from "../support/plugin.ts";
import { clearText, Secret, toStruct } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

lifecycle("DeployToken", {
  ambiguous: /It may have taken effect; check that before you repeat it/,
  survives: "untouched",
  importRefused: /a DeployToken cannot be imported or looked up: the service shows a token only once/,
  given: async (service) => {
    await makeApp(service, "token-other");
    return { app: await makeApp(service, "token-life"), expiry: "1h" };
  },
  changes: () =>
    Promise.resolve([
      { set: { expiry: "60m" }, expect: "same" },
      { set: { expiry: "0s" }, expect: "refused" },
      { set: { expiry: "2h" }, expect: "replace" },
      { set: { rotationTriggers: { month: "1" } }, expect: "replace" },
      { set: { rotationTriggers: { month: "2" } }, expect: "replace" },
      { set: { rotationTriggers: undefined }, expect: "replace" },
      { set: { app: "token-other" }, expect: "replace" },
    ]),
});

describe("DeployToken", () => {
  let service: TestService;
  let deployToken: Handled;
  beforeEach(async () => {
    service = await startService();
    deployToken = handled("DeployToken", service);
    await makeApp(service, "web");
    await makeApp(service, "other");
  });
  afterEach(() => service.close());

  const make = (inputs = {}) => deployToken.create({ app: "web", expiry: "1h", ...inputs });

  test("the token is valid for its App only, and expiresAt is the latest time it is valid", async () => {
    const { state } = await make();
    const as = { url: service.url, token: String(state["token"]) };
    await expect(send(as, "GET", "/v1/apps/web")).resolves.toMatchObject({ name: "web" });
    await expect(send(as, "GET", "/v1/apps/other")).rejects.toThrow(/40[34]/);
    const left = Date.parse(String(state["expiresAt"])) - Date.now();
    expect(left).toBeGreaterThan(3500_000);
    // The service's clock does not follow this computer's when that is set back, so it may be a little ahead.
    expect(left).toBeLessThan(3601_000);
  });

  test("every token has its own id, which reveals nothing about the token", async () => {
    const [one, two] = [await make(), await make()];
    expect(one.id).toMatch(/^web\/[0-9a-f]{16}$/);
    expect(two.id).not.toBe(one.id);
    expect(String(one.state["token"])).not.toContain(one.id.slice(4));
  });

  test("read keeps the token while its App exists; delete sends nothing and says that the token stays valid", async () => {
    const found = await make();
    expect(await deployToken.read(found)).toEqual(found.state);
    const before = service.requests.length;
    await deployToken.delete(found);
    expect(service.requests.length).toBe(before);
    expect(deployToken.warnings).toEqual([
      `the deploy token ${found.id} cannot be revoked; it is forgotten here and works until it expires, ${String(found.state["expiresAt"])}`,
    ]);
    await expect(
      send({ url: service.url, token: String(found.state["token"]) }, "GET", "/v1/apps/web"),
    ).resolves.toBeDefined();
    await send(service, "DELETE", "/v1/apps/web?force=true");
    await expect.poll(() => deployToken.read(found)).toBeUndefined();
  });

  test("an expired token counts as gone, whatever happens to its App", async () => {
    const { id, state } = await make();
    const until = (milliseconds: number) => ({
      id,
      state: { ...state, expiresAt: new Date(Date.now() + milliseconds).toISOString() },
    });
    expect(await deployToken.read(until(60_000))).toBeDefined();
    expect(await deployToken.read(until(-1))).toBeUndefined();
  });

  test("the service refuses an expiry that is too late, and nothing is kept", async () => {
    await expect(make({ expiry: "99999999999h" })).rejects.toThrow(/400.*at most 876000h/);
  });

  test("the plugin returns the token as a secret, and no message quotes it", async () => {
    const plugin = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: service.token });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    const resource = drive(plugin.client, urnOf("DeployToken", "ci"));
    const inputs = await resource.checked({ app: "web", expiry: "1h" });
    const { id, state } = await resource.create(inputs);
    expect(state["token"]).toBeInstanceOf(Secret);
    const token = String((state["token"] as Secret).secret);
    const found = await resource.read(id, { state, inputs });
    expect(found?.state["token"]).toEqual(state["token"]);
    await resource.delete({ id, state, inputs });
    await plugin.close();
    for (const text of [id, clearText(state), clearText(found), plugin.written.stdout, plugin.written.stderr])
      expect(text).not.toContain(token);
  });

  test("the class of the dynamic binding makes the token a secret output", () => {
    const { "deployToken.ts": file = "" } = sdkFiles(packageSchema("1.0.0"));
    expect(file).toContain('optionsFor("DeployToken", opts, ["token"])');
  });
});
