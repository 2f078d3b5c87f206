// The main story with the real CLI: every step checks the CLI's output and the objects of the service.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { allOr, isThorough } from "../support/extent.mts";
import { expectUnchanged } from "../support/invariants.ts";
import { bindingsOr, counts, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughTest } from "../support/thorough.ts";

const good = "registry.example.com/shop:1.0.0";

/** The parameters of the program, of which each step changes some. */
interface Declared {
  data: Record<string, unknown>;
  web: Record<string, unknown>;
  store: Record<string, unknown>;
  options: Record<string, unknown>;
}

const first: Declared = {
  data: { region: "ams", sizeGb: 2 },
  web: {
    region: "ams",
    config: {
      image: good,
      env: { GREETING: "hello" },
      metadata: { role: "web" },
      services: [
        {
          protocol: "tcp",
          internalPort: 8080,
          ports: [{ port: 80, handlers: ["http"] }],
          checks: [{ type: "tcp", interval: "60s" }],
        },
      ],
    },
  },
  store: { region: "ams", config: { image: good } },
  options: {},
};

const program = ({ data, web, store, options }: Declared): string => `
import * as machines from "pulumi-machines";
const app = new machines.App("shop");
const data = new machines.Volume("data", { app: app.id, ...${JSON.stringify(data)} } as unknown as machines.VolumeArgs);
const web = new machines.Machine("web", { app: app.id, ...${JSON.stringify(web)} } as unknown as machines.MachineArgs, ${JSON.stringify(options)});
const stored = ${JSON.stringify(store)};
const store = new machines.Machine("store", { app: app.id, ...stored, config: { ...stored.config, mounts: [{ volume: data.id, path: "/data" }] } } as unknown as machines.MachineArgs);
export const appName = app.name;
export const webVersion = web.version;
`;

interface Live {
  id: string;
  name: string;
  state: string;
  region: string;
  version: string;
  created_at: string;
  config: Record<string, Record<string, unknown>> & { image: string };
  events: { type: string; timestamp: number }[];
}

describe.each(bindingsOr("pulumi-machines-plugin"))("the story of a stack on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  let declared = structuredClone(first);
  let app = "";

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "story", binding);
    stack.program(program(declared));
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  /** Changes the program. */
  const change = (change: (next: Declared) => void): void => {
    declared = structuredClone(declared);
    change(declared);
    stack.program(program(declared));
  };
  const machines = () => send<Live[]>(service, "GET", `/v1/apps/${app}/machines`);
  const volumes = async () =>
    (
      await send<{ id: string; state: string; size_gb: number; region: string }[]>(
        service,
        "GET",
        `/v1/apps/${app}/volumes`,
      )
    ).filter(({ state }) => state === "created");
  const find = async (resource: "web" | "store"): Promise<Live> => {
    const { id } = stack.state()[resource] ?? { id: "" };
    return send<Live>(service, "GET", `/v1/apps/${app}/machines/${id.split("/")[1] ?? ""}`);
  };
  const outside = (live: Live, rest: string, body?: unknown, method = "POST") =>
    send<unknown>(service, method, `/v1/apps/${app}/machines/${live.id}${rest}`, body);
  const unchanged = async () => {
    expect(await stack.preview(), "a preview shows only changes").toEqual({});
  };

  test("up creates the declared resources", async () => {
    const before = service.requests.length;
    const steps = await stack.preview();
    expect(Object.values(steps).map(({ op }) => op)).toEqual(["create", "create", "create", "create"]);
    expect(service.requests.slice(before).filter(isWrite), "preview never writes").toEqual([]);
    // The example `everything` has an `up` with a preview of its own.
    expect(counts(await stack.ok("up", "--yes", ...allOr([], ["--skip-preview"])))).toEqual({ created: 5 });
    app = (await stack.ok("stack", "output", "appName")).trim();
    expect((await machines()).map(({ state, region }) => `${state} ${region}`)).toEqual(["started ams", "started ams"]);
    expect((await volumes()).map(({ size_gb }) => size_gb)).toEqual([2]);
  });

  // upgrade.test.ts: an up changes nothing and writes nothing.
  thoroughTest("a preview and an up of an unchanged program change nothing", async () => {
    await unchanged();
    const before = service.requests.length;
    expect(await expectUnchanged(stack)).toBe(5);
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
  });

  test("a changed image and env preview as an update of named fields, and up creates a new version of the same Machine", async () => {
    const before = await find("web");
    change(
      ({ web }) =>
        (web["config"] = {
          ...(web["config"] as object),
          image: "registry.example.com/shop:2.0.0",
          env: { GREETING: "hi", MORE: "1" },
        }),
    );
    const { web, store } = await stack.preview();
    expect(web).toMatchObject({ op: "update", id: `${app}/${before.id}` });
    expect([...(web?.changes ?? [])].sort()).toEqual(["config.env.GREETING", "config.env.MORE", "config.image"]);
    expect(web?.newOutputs["version"], "unknown until it is made").not.toBe(before.version);
    expect(store).toBeUndefined();
    expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 4 });
    const after = await find("web");
    expect(after.id).toBe(before.id);
    expect(after.version).not.toBe(before.version);
    expect(after.config).toMatchObject({
      image: "registry.example.com/shop:2.0.0",
      env: { GREETING: "hi", MORE: "1" },
    });
    expect((await stack.ok("stack", "output", "webVersion")).trim()).toBe(after.version);
    await expect(outside(after, "/lease", undefined, "GET")).rejects.toThrow(/404/);
  });

  test("refresh shows an outside change exactly, and up repairs it", async () => {
    const live = await find("web");
    await outside(live, "", { config: { ...live.config, env: { GREETING: "edited" } } });
    await outside(live, "/wait?state=started", undefined, "GET");
    const shown = await stack.ok("refresh", "--yes", "--diff", "--skip-preview");
    expect(shown).toMatch(/GREETING: "hi" +=> "edited"|GREETING.*edited/);
    expect(counts(shown)).toEqual({ updated: 1, unchanged: 4 });
    const { web } = await stack.preview();
    expect(web?.op).toBe("update");
    expect([...(web?.changes ?? [])].sort()).toEqual(["config.env.GREETING", "config.env.MORE"]);
    expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 4 });
    expect((await find("web")).config["env"]).toEqual({ GREETING: "hi", MORE: "1" });
  });

  test("a Machine destroyed outside: refresh forgets it, up creates exactly one again", async () => {
    const live = await find("web");
    await outside(live, "?force=true", undefined, "DELETE");
    await outside(live, "/wait?state=destroyed", undefined, "GET");
    expect(counts(await stack.refresh())).toEqual({ deleted: 1, unchanged: 4 });
    expect(counts(await stack.up())).toEqual({ created: 1, unchanged: 4 });
    expect(await machines()).toHaveLength(2);
    expect((await find("web")).id).not.toBe(live.id);
  });

  thoroughTest("a change of only metadata creates no new version", async () => {
    const before = await find("web");
    await outside(before, "/metadata/theirs", { value: "kept" });
    change(({ web }) => (web["config"] = { ...(web["config"] as object), metadata: { role: "front", tier: "1" } }));
    expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 4 });
    const after = await find("web");
    expect(after.version).toBe(before.version);
    expect(after.config["metadata"]).toMatchObject({ role: "front", tier: "1", theirs: "kept" });
    await unchanged();
  });

  thoroughTest(
    "a volume is extended in place without affecting its Machine; an extension outside is no drift",
    async () => {
      change(({ data }) => (data["sizeGb"] = 4));
      expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 4 });
      const [volume] = await volumes();
      expect(volume?.size_gb).toBe(4);
      await send(service, "PUT", `/v1/apps/${app}/volumes/${volume?.id ?? ""}/extend`, { size_gb: 9 });
      expect(counts(await stack.ok("up", "--yes", "--skip-preview", "--refresh"))).toEqual({ unchanged: 5 });
      expect(stack.state()["data"]?.outputs).toMatchObject({ sizeGb: 4, currentSizeGb: 9 });
    },
  );

  // In process: test/plugin/diff.test.ts.
  thoroughTest("moving a Machine with a generated name starts the new one before the old one is deleted", async () => {
    const before = await find("web");
    change(({ web }) => (web["region"] = "fra"));
    expect(counts(await stack.up())).toMatchObject({ replaced: 1 });
    const after = await find("web");
    expect(after).toMatchObject({ region: "fra", state: "started" });
    expect(after.id).not.toBe(before.id);
    const writes = service.requests.filter(isWrite).map(({ method, path }) => `${method} ${path}`);
    expect(writes.lastIndexOf(`POST /v1/apps/${app}/machines`)).toBeLessThan(
      writes.lastIndexOf(`DELETE /v1/apps/${app}/machines/${before.id}`),
    );
    expect(await machines()).toHaveLength(2);
  });

  thoroughTest("moving a Machine with a fixed name deletes the old one first, and one exists afterwards", async () => {
    change(({ web }) => (web["name"] = "fixed"));
    await stack.up();
    const before = await find("web");
    change(({ web }) => (web["region"] = "lhr"));
    await stack.up();
    const after = await find("web");
    expect(after).toMatchObject({ name: "fixed", region: "lhr", state: "started" });
    const writes = service.requests.filter(isWrite).map(({ method, path }) => `${method} ${path}`);
    expect(writes.lastIndexOf(`DELETE /v1/apps/${app}/machines/${before.id}`)).toBeLessThan(
      writes.lastIndexOf(`POST /v1/apps/${app}/machines`),
    );
    expect((await machines()).filter(({ name }) => name === "fixed")).toHaveLength(1);
  });

  test("replacing a Machine with a volume deletes the old one first, and one exists afterwards", async () => {
    const before = await find("store");
    change(({ store }) => (store["name"] = "keeper"));
    await stack.up();
    const after = await find("store");
    expect(after).toMatchObject({ name: "keeper", state: "started" });
    const writes = service.requests.filter(isWrite).map(({ method, path }) => `${method} ${path}`);
    expect(writes.lastIndexOf(`DELETE /v1/apps/${app}/machines/${before.id}`)).toBeLessThan(
      writes.lastIndexOf(`POST /v1/apps/${app}/machines`),
    );
    expect(await machines()).toHaveLength(2);
    if (isThorough) await unchanged();
  });

  thoroughTest("with allowDataLoss another region replaces the volume", async () => {
    const [before] = await volumes();
    change(({ data, store }) => {
      data["region"] = "fra";
      store["region"] = "fra";
      data["allowDataLoss"] = true;
    });
    await stack.up();
    const after = await volumes();
    expect(after.map(({ region }) => region)).toEqual(["fra"]);
    expect(after[0]?.id).not.toBe(before?.id);
    expect(await find("store")).toMatchObject({ region: "fra", state: "started" });
    await unchanged();
  });

  thoroughTest(
    "another client's lease: up fails with the holder's name while it is held, and succeeds when it is released",
    async () => {
      const live = await find("web");
      const { data } = (await outside(live, "/lease", { ttl: 120, description: "another deploy" })) as {
        data: { nonce: string };
      };
      change(({ web, options }) => {
        web["config"] = { ...(web["config"] as object), env: { GREETING: "good day" } };
        options["customTimeouts"] = { update: "3s" };
      });
      expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(
        /was not released within 3s: .*lease currently held by .*, expires at/,
      );
      expect((await find("web")).version).toBe(live.version);
      change(({ options }) => (options["customTimeouts"] = { update: "2m" }));
      const before = service.requests.length;
      const up = stack.up();
      const refused = () =>
        service.requests.slice(before).some(({ status, path }) => status === 409 && path.endsWith("/lease"));
      await expect.poll(refused).toBe(true);
      await send(service, "DELETE", `/v1/apps/${app}/machines/${live.id}/lease`, undefined, {
        "svc-machine-lease-nonce": data.nonce,
      });
      expect(counts(await up)).toEqual({ updated: 1, unchanged: 4 });
      expect((await find("web")).config["env"]).toEqual({ GREETING: "good day" });
    },
  );

  test("destroy leaves the service empty", async () => {
    const output = await stack.destroy();
    expect(counts(output)).toMatchObject({ deleted: 5 });
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0, apps: [] });
    expect(stack.state()).toEqual({});
  });
});
