// Moving a volume's data into another region, as in examples/volumes and docs/volumes.md, with the real CLI.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts, type Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

interface Live {
  id: string;
  name: string;
  state: string;
  region: string;
}

describe("moving a volume", () => {
  let service: TestService;
  let stack: Stack;
  let app = "";

  beforeAll(async () => {
    service = await startService();
    stack = await exampleStack("volumes", service);
  });
  afterAll(() => service.close());

  const go = async (step: string) => {
    await stack.ok("config", "set", "step", step);
    return stack.up();
  };
  const list = (what: "machines" | "volumes") => send<Live[]>(service, "GET", `/v1/apps/${app}/${what}`);
  const machines = async () => (await list("machines")).map(({ state, region }) => `${state} ${region}`);
  const volumes = async () =>
    (await list("volumes"))
      .filter(({ state }) => state === "created")
      .map(({ name, region }) => `${name} ${region}`)
      .sort();
  const ids = () =>
    Object.fromEntries(Object.entries(stack.state()).map(([name, { id }]) => [name, id])) as Record<string, string>;

  test("the first step creates a volume, its snapshot, a copy of the snapshot and a fork", async () => {
    expect(counts(await go("start"))).toEqual({ created: 7 });
    app = (await stack.ok("stack", "output", "appName")).trim();
    expect(await machines()).toEqual(["started ams"]);
    expect(await volumes()).toEqual(["data ams", "restored ams", "staging ams"]);
    const { data = "" } = ids();
    expect(await send(service, "GET", `/v1/apps/${data.replace("/", "/volumes/")}/snapshots`)).toHaveLength(1);
  });

  test("only a changed region is refused at preview, with this procedure", async () => {
    const program = stack.read();
    stack.program(program.replace('region: "ams"', 'region: "fra"'));
    const before = service.requests.length;
    expect(await stack.fails("preview")).toMatch(
      /region: changing it replaces the Volume and destroys its data; to keep the data, move it: stop its Machine, create a second Volume .*sourceVolumeId.*docs\/volumes\.md/,
    );
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
    stack.program(program);
  });

  test("copied: the Machine is stopped before its volume is forked into the new region", async () => {
    const before = service.requests.length;
    expect(counts(await go("copied"))).toEqual({ created: 1, updated: 1, unchanged: 6 });
    expect(await machines()).toEqual(["stopped ams"]);
    expect(await volumes()).toEqual(["data ams", "moved fra", "restored ams", "staging ams"]);
    const writes = service.requests.slice(before).map(({ operation }) => operation);
    expect(writes.indexOf("machines.stop")).toBeGreaterThan(-1);
    expect(writes.indexOf("machines.stop")).toBeLessThan(writes.indexOf("volumes.create"));
  });

  test("switched: the Machine runs in the new region with the fork, and the old data still exists", async () => {
    const { moved, data } = ids();
    expect(counts(await go("switched"))).toEqual({ replaced: 1, unchanged: 7 });
    expect(await machines()).toEqual(["started fra"]);
    expect(ids()).toMatchObject({ moved, data });
  });

  test("removed: the old volume is deleted, and its copies are kept", async () => {
    const { data: _, "before-release": __, ...kept } = ids();
    const output = await go("removed");
    expect(counts(output)).toEqual({ deleted: 2, unchanged: 6 });
    expect(output).toMatch(/snapshot \S+ cannot be deleted; it is forgotten here and expires by itself/);
    expect(ids()).toEqual(kept);
    expect(await volumes()).toEqual(["moved fra", "restored ams", "staging ams"]);
    expect(await expectUnchanged(stack), "and then there is nothing left to do").toBe(6);
  });

  test("destroy leaves the service empty", async () => {
    await stack.destroy();
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});
