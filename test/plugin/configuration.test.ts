// The configuration of a provider: checked, compared and applied, without ever showing its token.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { differences, drive, urnOf } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { fromStruct, secret, Secret, toStruct, unknown, type Properties } from "../support/properties.ts";
import { startService } from "../support/startService.ts";

const urn = urnOf("pulumi:providers:machines", "default");
const token = "token-s3cr3t-canary";
const good = { endpoint: "https://machines.example.com", token };

describe("configuration", () => {
  let plugin: Plugin;
  beforeAll(async () => (plugin = await startPlugin()));
  afterAll(() => plugin.close());

  const check = async (news: Properties, olds: Properties = {}) => {
    const request = new proto.CheckRequest().setUrn(urn).setOlds(toStruct(olds)).setNews(toStruct(news));
    const response = await plugin.client.checkConfig(request);
    return {
      inputs: fromStruct(response.getInputs() ?? toStruct({}), { unknowns: true }),
      failures: response.getFailuresList().map((failure) => failure.toObject()),
    };
  };
  const reasons = async (news: Properties) => (await check(news)).failures.map(({ reason }) => reason);
  const diff = async (oldInputs: Properties, news: Properties) => {
    const request = new proto.DiffRequest().setUrn(urn).setOldInputs(toStruct(oldInputs)).setNews(toStruct(news));
    return differences(await plugin.client.diffConfig(request.setOlds(toStruct({ stale: "outputs" }))));
  };
  const configure = (args: Properties) =>
    plugin.client.configure(new proto.ConfigureRequest().setArgs(toStruct(args)).setAcceptsecrets(true));

  describe("check", () => {
    test("a valid one is returned unchanged, with its token as a secret", async () => {
      const news = {
        ...good,
        retries: "3",
        allowMissingApps: "true",
        version: "0.1.0",
        pluginDownloadURL: "https://x",
      };
      const { inputs, failures } = await check(news);
      expect(failures).toEqual([]);
      expect(inputs["token"]).toBeInstanceOf(Secret);
      expect(inputs).toEqual({ ...news, token: secret(token) });
    });

    test("numbers and booleans are accepted as text, too", async () => {
      expect(await reasons({ ...good, retries: 3, requestTimeoutSeconds: 20, allowMissingApps: false })).toEqual([]);
    });

    test("an unknown key is named, with a suggestion", async () => {
      expect(await reasons({ ...good, endpont: "https://x" })).toEqual([
        "machines:endpont: there is no such configuration; did you mean machines:endpoint?",
      ]);
      expect(await reasons({ ...good, zzzzzzzz: "x" })).toEqual([
        expect.stringMatching(/^machines:zzzzzzzz: there is no such configuration; known are endpoint, token, /),
      ]);
    });

    test("unknown values are accepted and stay unknown, the token as a secret", async () => {
      const { inputs, failures } = await check({ endpoint: unknown(), token: unknown(), organization: unknown() });
      expect(failures).toEqual([]);
      expect(inputs).toEqual({ endpoint: unknown(), token: secret(unknown()), organization: unknown() });
    });

    test.each([
      ["endpoint", "ftp://x", /machines:endpoint: got "ftp:\/\/x"; must begin with http/],
      ["endpoint", "https://user:pw@x", /must not contain a user or password/],
      ["retries", "many", /machines:retries: got "many"; must be a whole number from 0 to 20/],
      ["requestTimeoutSeconds", 0, /must be a whole number from 1 to 600/],
      ["leaseHeader", "a b", /machines:leaseHeader: got "a b"/],
      ["organization", "a/b", /machines:organization: got "a\/b"/],
      ["allowMissingApps", "yes", /must be true or false/],
    ] as const)("an invalid %s is named: %s", async (key, value, message) => {
      expect(await reasons({ ...good, [key]: value })).toEqual([expect.stringMatching(message)]);
    });

    test("a missing key is named, with the way to set it", async () => {
      expect(await reasons({ token })).toEqual([expect.stringMatching(/no endpoint: .*pulumi config set/)]);
      expect(await reasons({ endpoint: good.endpoint })).toEqual([
        expect.stringMatching(/no access token: .*--secret/),
      ]);
      expect(await reasons({ endpoint: "local" })).toEqual([]);
    });

    test("a failure names no property, because the engine would print its value, and never has the token", async () => {
      const wrong = { ...good, token: `${token}\nand more`, tokn: token, retries: "many" };
      const { failures } = await check(wrong);
      expect(failures).toHaveLength(2);
      expect(failures.map(({ property }) => property)).toEqual(["", ""]);
      expect(JSON.stringify(failures)).not.toContain(token);
      await expect(configure(wrong)).rejects.not.toThrow(token);
    });
  });

  describe("diff", () => {
    test("another endpoint or organization replaces nothing: an address is not an identity (R14)", async () => {
      for (const changed of [{ endpoint: "https://other.example.com" }, { endpoint: "local" }, { organization: "b" }])
        expect(await diff({ ...good, organization: "a" }, { ...good, organization: "a", ...changed })).toMatchObject({
          changes: true,
          replaces: [],
          detailed: { [Object.keys(changed)[0] ?? ""]: "update" },
          deleteBeforeReplace: false,
        });
    });

    test("another spelling of the endpoint is no change", async () => {
      for (const endpoint of [
        "https://machines.example.com/",
        "https://machines.example.com/v1",
        "https://MACHINES.example.com:443/v1/",
      ])
        expect(await diff(good, { ...good, endpoint })).toMatchObject({ changes: false, detailed: {} });
    });

    test("a changed token or setting is an update", async () => {
      expect(await diff({ ...good, retries: "1" }, { ...good, token: "next", requestTimeoutSeconds: "9" })).toEqual({
        changes: true,
        diffs: expect.arrayContaining(["token", "retries", "requestTimeoutSeconds"]) as unknown,
        replaces: [],
        deleteBeforeReplace: false,
        detailed: { token: "update", retries: "delete", requestTimeoutSeconds: "add" },
      });
    });

    test("an unknown value replaces nothing", async () => {
      expect(await diff(good, { ...good, endpoint: unknown(), token: unknown() })).toMatchObject({
        replaces: [],
        detailed: { endpoint: "update", token: "update" },
      });
    });

    test("an organization added later may be the same one, so it replaces nothing", async () => {
      expect(await diff(good, { ...good, organization: "personal" })).toMatchObject({
        replaces: [],
        detailed: { organization: "add" },
      });
    });

    test("another version of the plugin is no change", async () => {
      expect(await diff({ ...good, version: "0.1.0" }, { ...good, version: "0.2.0" })).toMatchObject({
        changes: false,
      });
    });
  });

  describe("use", () => {
    test("without a configuration every request fails with that reason; check and diff work", async () => {
      const fresh = await startPlugin();
      try {
        const app = drive(fresh.client, urnOf("App", "web"));
        const inputs = await app.checked({ name: "web" });
        expect(await app.diff({ state: { name: "web", appId: "x" }, inputs })).toMatchObject({ changes: false });
        for (const work of [app.create(inputs), app.read("web"), app.delete({ id: "web", state: inputs })])
          await expect(work).rejects.toThrow(/the provider has not been configured/);
      } finally {
        await fresh.close();
      }
    });

    test("an invalid configuration is refused, and the previous one stays in effect", async () => {
      await configure(good);
      await expect(configure({ ...good, retries: "many" })).rejects.toThrow(/machines:retries/);
      await configure(good);
    });

    test("the last configuration applies, secrets are read, and requests go only to its service", async () => {
      const [one, two] = [await startService(), await startService()];
      const other = await startPlugin();
      try {
        const [first, second] = [drive(plugin.client, urnOf("App", "a")), drive(other.client, urnOf("App", "a"))];
        await configure({ endpoint: "http://127.0.0.1:9", token: "nobody" });
        await configure({ endpoint: secret(one.url), token: secret(one.token) });
        const args = toStruct({ endpoint: two.url, token: two.token });
        await other.client.configure(new proto.ConfigureRequest().setArgs(args));
        const made = await first.create(await first.checked({ name: "only-here" }));
        expect(two.requests).toEqual([]);
        const also = await second.create(await second.checked({ name: "only-there" }));
        expect(await first.read(made.id)).toMatchObject({ id: "only-here" });
        await expect(first.read(also.id)).rejects.toThrow(/there is no App "only-there"/);
        await expect(second.read(made.id)).rejects.toThrow(/there is no App "only-here"/);
      } finally {
        await other.close();
        await Promise.all([one.close(), two.close()]);
      }
    });

    test("for `pulumi new`, which shows no secrets, a token from elsewhere is tried, and a missing one is no problem", async () => {
      const service = await startService();
      const surrounded = await startPlugin({ env: { MACHINES_TOKEN: token } });
      try {
        const inNew = "urn:pulumi:dev::default::pulumi:providers:machines::default";
        const check = new proto.CheckRequest().setUrn(inNew).setNews(toStruct({ endpoint: service.url }));
        expect((await plugin.client.checkConfig(check)).getFailuresList()).toEqual([]);
        const tried = new proto.ConfigureRequest().setUrn(inNew).setId("preflight");
        await plugin.client.configure(tried.setArgs(toStruct({ endpoint: service.url })));
        expect(service.requests).toEqual([]);
        await plugin.client.configure(tried.setArgs(toStruct({ endpoint: service.url, token: service.token })));
        const wrong = surrounded.client.configure(tried.setArgs(toStruct({ endpoint: service.url })));
        await expect(wrong).rejects.toThrow(/token/);
        await expect(wrong).rejects.not.toThrow(token);
        // A stack `dev` of a project `default` has the same URN.
        const real = new proto.ConfigureRequest()
          .setUrn(inNew)
          .setId("a")
          .setArgs(toStruct({ endpoint: service.url }));
        await expect(plugin.client.configure(real)).rejects.toThrow(/no access token/);
      } finally {
        await surrounded.close();
        await service.close();
      }
    });

    test("keys that the program omits come from the environment", async () => {
      const service = await startService();
      const surrounded = await startPlugin({ env: { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token } });
      try {
        await surrounded.client.configure(new proto.ConfigureRequest().setArgs(toStruct({})));
        await expect(drive(surrounded.client, urnOf("App", "a")).read("none")).rejects.toThrow(/there is no App/);
        expect(service.requests).not.toEqual([]);
      } finally {
        await surrounded.close();
        await service.close();
      }
    });
  });
});
