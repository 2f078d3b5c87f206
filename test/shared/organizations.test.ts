// Organization lists are read to the last page (docs/interface.md#organization-lists); placements are simulated
// (docs/interface.md#placements).
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { callings, type Calling } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/a:1", guest: { cpus: 1, memory_mb: 256 } };

describe.each(callings)("functions about organizations, $name binding", ({ start }) => {
  let service: TestService;
  let calling: Calling;
  const machines: string[] = [];
  const volumes: string[] = [];
  const ids = async (name: string, args: Record<string, unknown> = {}) => {
    const { answer } = await calling.call(name, args);
    const list = (answer["machines"] ?? answer["volumes"]) as { id: string }[];
    return list.map(({ id }) => id);
  };

  beforeAll(async () => {
    service = await startService();
    calling = await start(service);
    for (const app of ["one", "two"]) {
      await makeApp(service, app);
      for (const region of ["ams", "fra"]) {
        const metadata = { role: "web", "pulumi-op": "x" };
        const id = await makeMachine(service, app, { region, config: { ...config, metadata } });
        await send(service, "GET", `/v1/apps/${app}/machines/${id}/wait?state=started`);
        machines.push(`${app}/${id}`);
        volumes.push(`${app}/${await makeVolume(service, app, region)}`);
      }
    }
  });
  afterEach(() => service.service.faults.clear());
  afterAll(async () => {
    await calling.close();
    await service.close();
  });

  /** Serves the list in pages of one item; the second page is empty, and its item is returned. */
  async function inSmallPages(kind: "machines" | "volumes"): Promise<string | undefined> {
    const pages: Record<string, unknown>[] = [];
    let left: string | undefined;
    for (let query = "?limit=1"; query !== "";) {
      const page = await send<{ next_cursor: string }>(service, "GET", `/v1/orgs/personal/${kind}${query}`);
      query = page.next_cursor === "" ? "" : `?limit=1&cursor=${encodeURIComponent(page.next_cursor)}`;
      pages.push({ ...page });
      const [item] = pages[1]?.[kind] === undefined ? [] : (pages[1][kind] as { app_name: string; id: string }[]);
      if (item) left = `${item.app_name}/${item.id}`;
    }
    pages[1] = { ...pages[1], [kind]: [] };
    let asked = 0;
    service.fail({ operation: `orgs.${kind}`, when: "after", times: "always", rewrite: () => pages[asked++] });
    return left;
  }

  test.each([
    ["getOrgMachines", "machines", machines],
    ["getOrgVolumes", "volumes", volumes],
  ] as const)("%s continues after an empty page, to the last one", async (name, kind, all) => {
    expect((await ids(name)).sort()).toEqual([...all].sort());
    const left = await inSmallPages(kind);
    expect((await ids(name)).sort()).toEqual(all.filter((id) => id !== left).sort());
    expect(all).toContain(left);
  });

  test("an item on two pages is listed once, in its later form", async () => {
    const page = await send<{ machines: object[] }>(service, "GET", "/v1/orgs/personal/machines");
    const [first] = page.machines;
    const moved = { ...first, state: "stopped" };
    service.fail(
      { operation: "orgs.machines", status: 200, body: { machines: [first], next_cursor: "more" } },
      { operation: "orgs.machines", nth: 2, status: 200, body: { machines: [moved], next_cursor: "" } },
    );
    const { answer } = await calling.call("getOrgMachines");
    expect(answer["machines"]).toMatchObject([{ id: machines[0], state: "stopped" }]);
    expect(service.requests.slice(-2).map(({ operation }) => operation)).toEqual(["orgs.machines", "orgs.machines"]);
  });

  test("regions that did not answer are listed", async () => {
    service.fail({ operation: "orgs.machines", merge: { error_regions: ["syd"] } });
    expect((await calling.call("getOrgMachines")).answer["errorRegions"]).toEqual(["syd"]);
    expect((await calling.call("getOrgMachines")).answer["errorRegions"]).toEqual([]);
  });

  test("getOrgMachines filters by region, state and time, and returns size and metadata without the provider's tags", async () => {
    expect((await ids("getOrgMachines", { region: "ams" })).sort()).toEqual([machines[0], machines[2]].sort());
    expect(await ids("getOrgMachines", { states: ["stopped"] })).toEqual([]);
    expect(await ids("getOrgMachines", { states: ["stopped", "started"] })).toHaveLength(4);
    const { answer } = await calling.call("getOrgMachines");
    const [first] = answer["machines"] as { updatedAt: string }[];
    expect(first).toMatchObject({
      app: "one",
      state: "started",
      image: config.image,
      guest: { cpus: 1, memoryMb: 256 },
      metadata: { role: "web" },
    });
    expect(JSON.stringify(answer)).not.toContain("pulumi-op");
    const later = { updatedAfter: new Date(Date.parse(first?.updatedAt ?? "") + 1000 * 3600).toISOString() };
    expect(await ids("getOrgMachines", later)).toEqual([]);
    await expect(calling.call("getOrgMachines", { updatedAfter: "yesterday" })).rejects.toThrow(/updatedAfter: got/);
  });

  test("getOrgVolumes filters, and returns deleted volumes on request", async () => {
    const extra = await makeVolume(service, "one", "lhr");
    await send(service, "DELETE", `/v1/apps/one/volumes/${extra}`);
    expect(await ids("getOrgVolumes", { region: "lhr" })).toEqual([]);
    expect(await ids("getOrgVolumes", { region: "lhr", includeDeleted: true })).toEqual([`one/${extra}`]);
    expect((await ids("getOrgVolumes", { region: "fra", states: ["created"] })).sort()).toEqual(
      [volumes[1], volumes[3]].sort(),
    );
  });

  test("the service refuses another organization", async () => {
    await expect(calling.call("getOrgMachines", { organization: "others" })).rejects.toThrow(/answered 40[34]/);
    await expect(calling.call("getOrgVolumes", { organization: "others" })).rejects.toThrow(/answered 40[34]/);
  });

  test("getRegions returns the service's list", async () => {
    const served = await send<{ nearest: string; regions: { code: string; mpg_available: boolean }[] }>(
      service,
      "GET",
      "/v1/platform/regions",
    );
    const { answer } = await calling.call("getRegions");
    expect(answer["nearest"]).toBe(served.nearest);
    expect(answer["regions"]).toMatchObject(
      served.regions.map(({ code, mpg_available: mpgAvailable }) => ({ code, mpgAvailable })),
    );
  });

  test("getPlacements returns where Machines would be placed, also in a preview", async () => {
    for (const isPreview of [false, true]) {
      const args = { region: "fra", count: 3, compute: { cpus: 1, memoryMb: 256 } };
      const { answer } = await calling.call("getPlacements", args, { isPreview });
      expect(answer["regions"]).toMatchObject([{ region: "fra", count: 3 }]);
    }
    await expect(calling.call("getPlacements", { region: "nowhere" })).rejects.toThrow(
      /platform.placements answered 400/,
    );
  });
});
