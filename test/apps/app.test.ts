import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bind } from "../support/binding.ts";
import { httpTransport, type Outcome, type Sent } from "../../provider/client/transport.ts";
import { update } from "../../provider/core/verbs/index.ts";
import { CONTEXT, type Values } from "../../provider/core/resource.ts";
import { resources } from "../../provider/registry.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

lifecycle("App", {
  given: () => Promise.resolve({ organization: "personal", __context: { name: "web", owner: "o1" } }),
  changes: () =>
    Promise.resolve([
      { set: { forceDestroy: true }, expect: "no request" },
      { set: { name: "another-name" }, expect: "replace" },
      { set: { network: "blue" }, expect: "delete-replace" },
      { set: { organization: "another" }, expect: "delete-replace", diffOnly: true },
    ]),
});

describe("App", () => {
  let service: TestService;
  beforeAll(async () => (service = await startService()));
  afterAll(() => service.close());

  test("deletion is refused while the App contains objects that this program did not create, and lists them", async () => {
    const app = bind("App", service);
    const { inputs } = await app.check({}, { name: "held" });
    const { id, state } = await app.create(inputs);
    const machine = await makeMachine(service, "held", {
      name: "stray",
      config: { image: "registry.example.com/a:1" },
    });
    const volume = await makeVolume(service, "held", "ams");
    await expect(app.delete(id, state)).rejects.toThrow(
      `Machine stray (held/${machine}), volume data (held/${volume})`,
    );
    expect(await app.read(id, state)).toBeDefined();
    await app.delete(id, { ...state, forceDestroy: true });
    expect(await app.read(id, state)).toBeUndefined();
  });

  test("an update that finishes a create learns the addresses", async () => {
    const resource = resources["App"];
    if (!resource) throw new Error("no App");
    await makeApp(service, "halfway");
    const transport = httpTransport({});
    const withUrls = async (request: Sent): Promise<Outcome> => {
      const outcome = await transport(request);
      if (outcome.kind !== "answer" || !request.url.endsWith("/apps/halfway")) return outcome;
      const urls = { http_url: "http://halfway.example.com", https_url: "https://halfway.example.com" };
      return { ...outcome, text: JSON.stringify({ ...(JSON.parse(outcome.text) as object), ...urls }) };
    };
    const close = () => transport.close();
    const { api, run } = jumpingClient(service, undefined, { transport: Object.assign(withUrls, { close }) });
    const caller = { api, run, progress: () => undefined, warn: () => undefined };
    const finish = (state: Values) => update(resource, "halfway", state, { name: "halfway" }, caller);
    const made = { name: "halfway", [CONTEXT]: { unfinished: true } };
    const urls = { httpUrl: "http://halfway.example.com", httpsUrl: "https://halfway.example.com" };
    expect(await finish(made)).toMatchObject(urls);
  });

  test("the error says that a name is taken", async () => {
    await makeApp(service, "taken");
    const app = bind("App", service);
    const { inputs } = await app.check({}, { name: "taken" });
    await expect(app.create(inputs)).rejects.toThrow(
      /apps.create answered 422: .*already been taken \(name_taken\).*request/,
    );
  });

  test("the network is the requested one, or the default if omitted, and changing it replaces the App", async () => {
    const app = bind("App", service);
    const { inputs } = await app.check({}, { name: "on-default" });
    const { id, state } = await app.create(inputs);
    expect(state).toMatchObject({ network: "default" });
    const said = await app.check(inputs, { name: "on-default", network: "default" });
    expect(await app.diff(id, state, said.inputs), "to write down what the service chose changes nothing").toBe("same");
    const moved = await app.check(inputs, { name: "on-default", network: "blue" });
    expect(await app.diff(id, state, moved.inputs)).toBe("delete-replace");
    await app.create((await app.check({}, { name: "on-blue", network: "blue" })).inputs);
    expect(await send(service, "GET", "/v1/apps/on-blue")).toMatchObject({ network: "blue" });
  });

  test("an App with a generated name is replaced before the old one is deleted, when its network or organization changes", async () => {
    const app = bind("App", service);
    const program = { __context: { name: "made", owner: "made-1" } };
    const { inputs } = await app.check({}, program);
    const { id, state } = await app.create(inputs);
    for (const change of [{ network: "blue" }, { organization: "another" }]) {
      const next = await app.check(inputs, { ...program, ...change });
      expect(await app.diff(id, state, next.inputs)).toBe("replace");
    }
  });

  test("organization: the requested one, or the provider's if omitted; a foreign one is refused", async () => {
    const app = bind("App", service);
    const { inputs } = await app.check({}, { name: "ours", organization: "personal" });
    expect((await app.create(inputs)).state).toMatchObject({ organization: "personal" });
    const theirs = await app.check({}, { name: "theirs", organization: "another" });
    await expect(app.create(theirs.inputs)).rejects.toThrow(/apps\.create answered 40[34]/);
    const abroad = bind("App", service, { organization: "another" });
    const left = await abroad.check({}, { name: "abroad" });
    await expect(abroad.create(left.inputs)).rejects.toThrow(/apps\.create answered 40[34]/);
  });

  test("get of an App that does not exist reports that", async () => {
    // This run has seen no App yet, so a get can forget nothing.
    const first = bind("App", service, { requestTimeoutSeconds: "25" });
    await expect(first.read("never-was", {})).rejects.toThrow('there is no App "never-was"');
  });

  test("nothing is forgotten when every App of the run is missing (R8)", async () => {
    const app = bind("App", service, { requestTimeoutSeconds: "29" });
    const { inputs } = await app.check({}, { name: "once-here" });
    const { id, state } = await app.create(inputs);
    await send(service, "DELETE", "/v1/apps/once-here");
    // The client has seen no App yet, as in a new run.
    const next = bind("App", service, { requestTimeoutSeconds: "28" });
    await expect(next.read(id, state)).rejects.toThrow(/knows neither App once-here nor any other App of this run/);
    await expect(
      bind("App", service, { requestTimeoutSeconds: "27", allowMissingApps: "true" }).read(id, state),
    ).resolves.toBeUndefined();
    const other = bind("App", service, { requestTimeoutSeconds: "26" });
    await makeApp(service, "still-here");
    const [gone] = await Promise.all([other.read(id, state), other.read("still-here", { name: "still-here" })]);
    expect(gone).toBeUndefined();
  });
});
