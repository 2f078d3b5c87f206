// List over gRPC: every type of the service's objects, with filters and pages.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { resources } from "../../provider/registry.ts";
import { makeApp, makeBackup, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { currentCertificate } from "../support/certificates.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { toStruct, unknown, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

describe("list", () => {
  let service: TestService;
  let plugin: Plugin;
  let cluster: string;
  let volumes: readonly string[];
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: service.token });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    for (const app of ["one", "two"]) {
      await makeApp(service, app);
      await makeMachine(service, app, { config: { image: "registry.example.com/web:1" } });
      await send(service, "POST", `/v1/apps/${app}/secrets/TOKEN`, { value: "hidden" });
      await send(service, "POST", `/v1/apps/${app}/secretkeys/SIGNING/generate`, { type: "hs256" });
      await send(service, "POST", `/v1/apps/${app}/ip_assignments`, { type: "v6" });
      await send(service, "POST", `/v1/apps/${app}/certificates/acme`, { hostname: `${app}.example.com` });
    }
    const fleet = drive(plugin.client, urnOf("Fleet", "web"));
    await fleet.create(
      await fleet.checked({
        app: "one",
        name: "web",
        regions: { ams: 2 },
        config: { image: "registry.example.com/web:1" },
      }),
    );
    await send(service, "POST", "/v1/apps/two/certificates/custom", {
      hostname: "own.example.com",
      ...currentCertificate({ hosts: ["own.example.com"] }),
    });
    volumes = await Promise.all(["one", "one", "two"].map((app) => makeVolume(service, app, "ams")));
    await send(service, "POST", `/v1/apps/one/volumes/${volumes[0]}/snapshots`);
    cluster = await makeCluster(service, "main");
    await send(service, "POST", `/v1/postgres/${cluster}/databases`, { name: "shop" });
    await send(service, "POST", `/v1/postgres/${cluster}/users`, { username: "anna", role: "writer" });
    await send(service, "POST", `/v1/postgres/${cluster}/databases/shop/extensions`, { name: "vector" });
    await send(service, "POST", `/v1/postgres/${cluster}/attachments`, { app_name: "one" });
    await makeBackup(service, cluster);
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });

  interface Options {
    readonly query?: Properties;
    readonly limit?: number;
    readonly size?: number;
    readonly continuation?: string;
  }
  const page = async (type: string, { query = {}, limit = 0, size = 0, continuation = "" }: Options = {}) => {
    const request = new proto.ListRequest().setToken(`machines:index:${type}`).setQuery(toStruct(query));
    const answers = await plugin.client.list(
      request.setLimit(limit).setPageSize(size).setContinuationToken(continuation),
    );
    return {
      ids: answers.flatMap((answer) => answer.getResult()?.getId() ?? []),
      names: answers.flatMap((answer) => answer.getResult()?.getName() ?? []),
      isUnknown: answers.some((answer) => answer.hasComputed()),
      next: answers.at(-1)?.getContinuation()?.getContinuationToken() ?? "",
    };
  };
  const ids = async (type: string, options?: Options) => (await page(type, options)).ids;

  const listable = Object.values(resources).filter(({ list, partOf }) => (list ?? partOf) !== undefined);

  test.each(listable.map(({ name }) => name))("every %s is listed under an id that can be imported", async (type) => {
    const found = await ids(type);
    expect(found).not.toEqual([]);
    expect(new Set(found).size).toBe(found.length);
    if (resources[type]?.noImport !== undefined) return;
    const driver = drive(plugin.client, urnOf(type, "listed"));
    for (const id of found) expect(await driver.read(id)).toMatchObject({ id });
  });

  test("the other types say why they cannot be listed", async () => {
    const others = Object.values(resources).filter((resource) => !listable.includes(resource));
    expect(others.map(({ name }) => name).sort()).toEqual(["Ciphertext", "DeployToken", "MachineCommand", "Signature"]);
    for (const { name, unlisted } of others)
      await expect(page(name)).rejects.toThrow(`${name} cannot be listed: ${unlisted}`);
    await expect(page("Machin")).rejects.toThrow("did you mean machines:index:Machine?");
  });

  test("filters are parts of the id, also as ids of other resources", async () => {
    expect(await ids("App")).toEqual(["one", "two"]);
    const ofOne = [`one/${volumes[0]}`, `one/${volumes[1]}`].sort();
    expect(await ids("Volume", { query: { app: "one" } })).toEqual(ofOne);
    const snapshots = await ids("VolumeSnapshot", { query: { volume: `one/${volumes[0]}` } });
    expect(snapshots).toEqual([expect.stringContaining(`one/${volumes[0]}/`)]);
    expect(await ids("PostgresDatabase", { query: { cluster, name: "shop" } })).toEqual([`${cluster}/database/shop`]);
    expect((await page("Secret", { query: { app: "two" } })).names).toEqual(["TOKEN"]);
    expect(await ids("Secret", { query: { app: "two", name: "OTHER" } })).toEqual([]);
    await expect(page("Volume", { query: { ap: "one" } })).rejects.toThrow(
      "ap: Volume has no such filter; did you mean app?",
    );
    await expect(page("App", { query: { region: "ams" } })).rejects.toThrow(
      "region: App has no such filter; there are none",
    );
    await expect(page("Volume", { query: { app: "none" } })).rejects.toThrow(/none/);
  });

  test("an unknown filter gives an unknown list, and nothing is asked", async () => {
    const before = service.requests.length;
    expect(await page("Volume", { query: { app: unknown() } })).toMatchObject({ isUnknown: true, ids: [] });
    expect(service.requests.length).toBe(before);
  });

  test("pages of any size give every object once", async () => {
    const all = await ids("Volume");
    expect(all.length).toBe(3);
    for (const options of [{ size: 1 }, { size: 2 }, { limit: 1 }, { limit: 2, size: 5 }, { size: 3 }]) {
      const found: string[] = [];
      for (let continuation = ""; ;) {
        const { ids: some, next } = await page("Volume", { ...options, continuation });
        expect(some.length).toBeLessThanOrEqual(Math.min(options.size ?? 9, options.limit ?? 9));
        found.push(...some);
        if (next === "") break;
        continuation = next;
      }
      expect(found).toEqual(all);
    }
    await expect(page("Volume", { continuation: "nonsense" })).rejects.toThrow(
      "the continuation token is not one of a page before",
    );
  });
});
