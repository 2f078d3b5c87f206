// What a preview says about a service that it cannot use: an error, or one warning.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { askConnection } from "../../provider/dynamic/index.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startEngine, startPlugin } from "../support/plugin.ts";
import { toStruct } from "../support/properties.ts";

describe("the connection check of a preview", () => {
  let server: Server;
  let url: string;
  let answer: readonly [status: number, body: string];
  /** Answers to requests whose path contains the key. */
  let others: Readonly<Record<string, readonly [status: number, body: string]>>;
  beforeEach(async () => {
    others = {};
    server = createServer(({ url: path = "" }, response) => {
      const [status, body] = Object.entries(others).find(([part]) => path.includes(part))?.[1] ?? answer;
      response.writeHead(status).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => server.close());

  /** The message of the dynamic binding, and its warnings. */
  const dynamic = async (organization = "personal") => {
    const settings: Readonly<Record<string, string>> = { endpoint: url, token: "token", retries: "0", organization };
    const warnings: string[] = [];
    const ask = () =>
      askConnection(
        (key) => settings[key],
        (message) => warnings.push(message),
      );
    const found = await ask();
    await ask();
    return { error: found?.message, warnings };
  };
  /** The same of the plugin. */
  const plugin = async (organization = "personal", warns = false) => {
    const engine = await startEngine();
    const started = await startPlugin({ args: [engine.address] });
    try {
      const args = toStruct({ endpoint: url, token: "token", retries: 0, organization });
      await started.client.configure(new proto.ConfigureRequest().setArgs(args));
      const preview = async (name: string): Promise<unknown> => {
        const app = drive(started.client, urnOf("App", name));
        return app.previewCreate(await app.checked({})).catch((error: unknown) => error);
      };
      const found = (await preview("one")) as { readonly details?: string };
      await preview("two");
      const warnings = () => engine.logs.filter(({ severity }) => severity === "warning").map(({ message }) => message);
      // The plugin does not wait for the engine to have it.
      if (warns) await expect.poll(warnings).not.toEqual([]);
      return { error: found.details, warnings: warnings() };
    } finally {
      await started.close();
      engine.close();
    }
  };

  const ways = { dynamic, plugin };
  describe.each(Object.keys(ways) as (keyof typeof ways)[])("of the binding %s", (binding) => {
    test.each([
      [404, "", /answered 404: no text/],
      [404, '{"error":"Not found"}', /answered 404: Not found/],
      [200, "<html>Welcome</html>", /answered 200 with something that is not JSON/],
    ] as const)("another server, which answers %i %s, is an error that names the endpoint", async (...given) => {
      const [status, body, detail] = given;
      answer = [status, body];
      const { error, warnings } = await ways[binding]();
      expect(error).toMatch(
        new RegExp(`^${url} is probably no Machines Control Service: check machines:endpoint\\. .*${detail.source}`),
      );
      expect(error).toMatch(/ \(https:\S+troubleshooting\.md#configuration\)$/);
      expect(warnings).toEqual([]);
    });

    test("a service that does not answer is one warning", async () => {
      answer = [503, "{}"];
      const { error, warnings } = await ways[binding]("personal", true);
      expect(error).toBeUndefined();
      expect(warnings).toEqual([
        expect.stringMatching(/^the service cannot be asked, so this preview checks no names/),
      ]);
    });

    const noRegions = '{"regions":[],"nearest":"ams"}';
    const tokens = (slug: string) => JSON.stringify({ tokens: [{ org_slug: slug }] });
    test.each([
      [404, "mine", 'there is no organization "team"; the token is for mine'],
      [403, "mine", 'the token from machines:token cannot use the organization "team"; the token is for mine'],
      [403, "tean", 'the token from machines:token cannot use the organization "team"; did you mean "tean"?'],
    ] as const)(
      "an organization that is refused with %i to a token of %s is an error",
      async (status, slug, message) => {
        answer = [200, noRegions];
        others = { "/apps": [status, '{"error":"no"}'], "/tokens": [200, tokens(slug)] };
        const { error } = await ways[binding]("team");
        expect(error).toContain(`machines:organization: ${message}`);
      },
    );

    test("a token for one App of the organization may not list its Apps, and is none", async () => {
      answer = [200, noRegions];
      others = { "/apps": [403, '{"error":"no"}'], "/tokens": [200, tokens("team")] };
      expect((await ways.dynamic("team")).error).toBeUndefined();
    });

    test("a refused token is an error with the address of its section", async () => {
      answer = [401, '{"error":"no"}'];
      const { error } = await ways[binding]();
      expect(error).toMatch(
        /^platform\.regions answered 401: .*\. Set a new one\. \(https:\S+troubleshooting\.md#api\)$/,
      );
    });
  });
});
