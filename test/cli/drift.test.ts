// `pulumi-machines drift` without the Pulumi CLI: objects that both bindings created, and what others change behind their back.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { dynamicOwnerOf } from "../../provider/core/owner.ts";
import { CONTEXT, type Values } from "../../provider/core/resource.ts";
import { isObject } from "../../api/schema.ts";
import { makeMachine, makeVolume, send } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { leaks } from "../support/canaries.ts";
import { drive } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { revealed, Secret, secret, toStruct, type Properties } from "../support/properties.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughTest } from "../support/thorough.ts";
import { answeringCli } from "./answeringCli.ts";
import { commandHere, type Ran } from "./command.ts";
import { exportOf, shapes, urnOf, type Around, type Exported, type Shape } from "./exports.ts";

interface Report {
  readonly stack: string;
  readonly checkedAt: string;
  readonly summary: Readonly<Record<string, number | null>>;
  readonly resources: readonly {
    readonly urn: string;
    readonly type: string;
    readonly name: string;
    readonly id: string | null;
    readonly provider: string | null;
    readonly status: string;
    readonly differences: readonly { path: string; state: unknown; live: unknown; isSecret: boolean }[];
    readonly reason: string | null;
  }[];
  readonly unmanaged: readonly { type: string; id: string; madeBy: string }[] | null;
  readonly notes: readonly string[];
  readonly failures: readonly string[];
}

/** Texts that nothing may print. */
const canaries = {
  token: "canary-token-4711",
  apiKey: "canary-api-key-4712",
  liveToken: "canary-live-token-4713",
  liveKey: "canary-live-key-4714",
  description: "canary-team-4715",
};
const image = "registry.example.com/shop:1";

let service: TestService;
let folder: string;
let plugin: Plugin;
beforeEach(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), "machines-drift-"));
  writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  writeFileSync(join(folder, "pulumi"), answeringCli);
  chmodSync(join(folder, "pulumi"), 0o755);
  plugin = await startPlugin();
  await plugin.client.configure(
    new proto.ConfigureRequest().setArgs(toStruct({ endpoint: service.url, token: service.token })),
  );
});
afterEach(async () => {
  await plugin.close();
  rmSync(folder, { recursive: true });
  await service.close();
});

/** Values as `pulumi stack export --show-secrets` writes them. */
function exported(value: unknown): unknown {
  if (value instanceof Secret)
    return {
      "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
      plaintext: JSON.stringify(revealed(value)),
    };
  if (Array.isArray(value)) return value.map(exported);
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, exported(inner)]))
    : value;
}

/** Creates a resource as a binding does, and returns its entry in the state. */
async function made(shape: Shape, type: string, name: string, inputs: Properties): Promise<Exported> {
  if (shape === "plugin") {
    const driver = drive(plugin.client, urnOf(shape, type, name));
    const checked = await driver.checked(inputs);
    const { id, state } = await driver.create(checked);
    return { type, name, id, inputs: exported(checked) as Values, outputs: exported(state) as Values };
  }
  const bound = bind(type, service);
  const owner = dynamicOwnerOf({ project: "shop", stack: "dev", type, parent: "", name });
  const { inputs: checked, failures } = await bound.check(
    {},
    { ...(revealed(inputs) as Values), [CONTEXT]: { owner, name } },
  );
  expect(failures).toEqual([]);
  const { id, state } = await bound.create(checked);
  // The engine marks the outputs of inputs that hold secrets, as a whole.
  const marked = (values: Values): Values =>
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => [
        key,
        exported(inputs[key] instanceof Secret || key === "digests" ? secret(value) : value),
      ]),
    );
  const isEnv = type === "Machine" && isObject(checked["config"]);
  const written = isEnv
    ? { ...checked, config: { ...(checked["config"] as Values), env: (inputs["config"] as Values)["env"] } }
    : checked;
  return { type, name, id, inputs: isEnv ? (exported(written) as Values) : marked(checked), outputs: marked(state) };
}

interface World {
  readonly resources: readonly Exported[];
  readonly machine: string;
  readonly volume: string;
}

/** A stack with one of everything that the tests change. */
async function world(shape: Shape): Promise<World> {
  const app = await made(shape, "App", "shop", { name: "shop" });
  const volume = await made(shape, "Volume", "data", {
    app: "shop",
    name: "data",
    region: "ams",
    sizeGb: 1,
    snapshotRetention: 5,
  });
  const machine = await made(shape, "Machine", "web", {
    ...{ app: "shop", name: "web", region: "ams" },
    config: {
      image,
      env: { TOKEN: secret(canaries.token), GREETING: "hello" },
      metadata: { team: "one" },
      mounts: [{ volume: volume.id, path: "/data" }],
    },
  });
  return {
    machine: machine.id?.split("/")[1] ?? "",
    volume: volume.id?.split("/")[1] ?? "",
    resources: [
      ...[app, volume, machine],
      await made(shape, "AppSecrets", "secrets", {
        app: "shop",
        values: secret({ API_KEY: canaries.apiKey, OTHER: "kept" }),
      }),
      await made(shape, "AcmeCertificate", "www", { app: "shop", hostname: "www.example.com" }),
      await made(shape, "Fleet", "workers", { app: "shop", name: "workers", regions: { ams: 2 }, config: { image } }),
    ],
  };
}

/** Runs the command for stack `dev` with a state, and returns what it prints. */
async function run(
  { shape, resources, around }: { shape: Shape; resources: readonly Exported[]; around?: Around },
  args: readonly string[] = [],
  settings: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const config = Object.fromEntries(
    Object.entries({ endpoint: service.url, token: service.token, ...settings }).map(([key, value]) => [
      `machines:${key}`,
      { value },
    ]),
  );
  const dev = { "stack export": JSON.parse(exportOf(shape, resources, around)) as object, config };
  writeFileSync(join(folder, "stacks.json"), JSON.stringify({ dev }));
  const env = { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` };
  const before = service.requests.length;
  const ran = await commandHere(service, ["drift", "--stack", "dev", ...args], { cwd: folder, env });
  expect(service.requests.slice(before).filter(isWrite), "it only reads").toEqual([]);
  expect(leaks({ ...canaries, serviceToken: service.token }, [{ what: "output", text: ran.out + ran.err }])).toEqual(
    [],
  );
  return ran;
}

const reportOf = ({ out }: Ran): Report => JSON.parse(out) as Report;
const drifted = (ran: Ran) =>
  Object.fromEntries(
    reportOf(ran)
      .resources.filter(({ status }) => status !== "unchanged")
      .map(({ name, status, differences }) => [name, differences.length === 0 ? status : differences]),
  );

/** Changes the configuration of a Machine, as another client does. */
async function reconfigure(machine: string, change: (config: Values) => Values): Promise<void> {
  const path = `/v1/apps/shop/machines/${machine}`;
  await send(service, "GET", `${path}/wait?state=started`);
  const { config } = await send<{ config: Values }>(service, "GET", path);
  await send(service, "POST", path, { config: change(config) });
  await send(service, "GET", `${path}/wait?state=started`);
}

/** Changes a setting of the volume. */
const keepSnapshots = (volume: string) =>
  send(service, "PUT", `/v1/apps/shop/volumes/${volume}`, { snapshot_retention: 44 });
const setSecret = (name: string, value: string) => send(service, "POST", `/v1/apps/shop/secrets/${name}`, { value });

describe.each(shapes)("of a stack with %s resources", (shape) => {
  test("the drift report says that nothing differs, and asks the CLI only for configuration and state", async () => {
    const { resources } = await world(shape);
    const ran = await run({ shape, resources });
    expect(ran).toEqual({ code: 0, out: "Stack dev of shop, 6 resources: no drift.\n", err: "" });
    expect([...new Set(readFileSync(join(folder, "asked"), "utf8").split("\n"))]).toEqual([
      "config",
      "stack export",
      "",
    ]);
    const report = reportOf(await run({ shape, resources }, ["--json"]));
    expect(report).toMatchObject({
      stack: "dev",
      summary: { unchanged: 6, changed: 0, missing: 0, unchecked: 0, unmanaged: null },
      unmanaged: null,
      failures: [],
    });
    expect(report.resources[0]).toEqual({
      ...{ urn: urnOf(shape, "App", "shop"), type: "App", name: "shop", id: "shop", provider: null },
      ...{ status: "unchanged", differences: [], reason: null },
    });
    expect(new Date(report.checkedAt).toISOString()).toBe(report.checkedAt);
  });

  test("the drift report names every property that others changed with both values, and no secret", async () => {
    const { resources, machine, volume } = await world(shape);
    await reconfigure(machine, (config) => ({
      ...config,
      image: "registry.example.com/shop:2",
      env: { ...(config["env"] as Values), TOKEN: canaries.liveToken },
      metadata: { ...(config["metadata"] as Values), team: "two" },
    }));
    await keepSnapshots(volume);
    // A larger volume is no drift, because it cannot shrink.
    await send(service, "PUT", `/v1/apps/shop/volumes/${volume}/extend`, { size_gb: 3 });
    await setSecret("API_KEY", canaries.liveKey);
    await send(service, "DELETE", "/v1/apps/shop/certificates/www.example.com");
    const members = await send<{ id: string; name: string }[]>(service, "GET", "/v1/apps/shop/machines");
    const gone = members.find(({ name }) => name.startsWith("workers"));
    await send(service, "DELETE", `/v1/apps/shop/machines/${gone?.id ?? ""}?force=true`);

    const ran = await run({ shape, resources }, ["--json"]);
    expect(ran).toMatchObject({ code: 1, err: "" });
    expect(drifted(ran)).toEqual({
      web: [
        { path: "config.env.TOKEN", state: null, live: null, isSecret: true },
        { path: "config.image", state: image, live: "registry.example.com/shop:2", isSecret: false },
        { path: "config.metadata.team", state: "one", live: "two", isSecret: false },
      ],
      data: [{ path: "snapshotRetention", state: 5, live: 44, isSecret: false }],
      secrets: [{ path: "values.API_KEY", state: null, live: null, isSecret: true }],
      www: "missing",
      workers: [
        { path: "drift", state: [], live: ["Machines in ams: 1 instead of 2"], isSecret: false },
        { path: "regions.ams", state: 2, live: 1, isSecret: false },
      ],
    });
    const { code, out } = await run({ shape, resources });
    expect(code).toBe(1);
    expect(out).toMatch(/^Stack dev of shop, 6 resources: 4 changed, 1 missing\.$/m);
    expect(out).toMatch(/^Machine +web +shop\/\w+ +changed +config\.env\.TOKEN +\[secret\] +\[secret\]$/m);
    expect(out).toMatch(/^ +config\.image +registry\S+:1 +registry\S+:2$/m);
    expect(out).toMatch(/^AcmeCertificate +www +shop\/www\.example\.com +missing$/m);
    expect(out).toContain("Nothing was changed. `pulumi refresh`");
  });
});

describe("what is compared", () => {
  const shape = "plugin";

  test("F52: a Machine whose program ended is drift, and the reason is shown", async () => {
    const config = { image, restart: { policy: "no" }, init: { cmd: ["sleep", "infinity"] } };
    const app = await made(shape, "App", "shop", { name: "shop" });
    const web = await made(shape, "Machine", "web", { app: "shop", name: "web", region: "ams", config });
    const path = `/v1/apps/shop/machines/${web.id?.split("/")[1] ?? ""}`;
    await send(service, "POST", `${path}/signal`, { signal: "SIGKILL" });
    await send(service, "GET", `${path}/wait?state=stopped,failed`);
    const ran = await run({ shape, resources: [app, web] }, ["--json"]);
    expect(ran.code).toBe(1);
    expect(drifted(ran)).toMatchObject({
      web: [{ path: "failure", live: expect.stringMatching(/^its main process exited \(code 137/) as string }],
    });
  });

  test("a property that the program ignores is no drift", async () => {
    const { resources, machine } = await world(shape);
    await reconfigure(machine, (config) => ({ ...config, image: "registry.example.com/shop:2" }));
    const ignoring = resources.map((one) => (one.name === "web" ? { ...one, ignoreChanges: ["config.image"] } : one));
    expect((await run({ shape, resources: ignoring })).code).toBe(0);
    expect((await run({ shape, resources })).code).toBe(1);
  });

  test("a secret that is part of another value is not printed with it", async () => {
    const { resources, machine } = await world(shape);
    await reconfigure(machine, (config) => ({ ...config, metadata: { team: `of ${canaries.token}` } }));
    const ran = await run({ shape, resources }, ["--json"]);
    expect(drifted(ran)).toEqual({
      web: [{ path: "config.metadata.team", state: "one", live: "of [secret]", isSecret: false }],
    });
  });

  test("--only and --app limit it, and misspelt ones are refused with the nearest name", async () => {
    const { resources, volume } = await world(shape);
    const other = await made(shape, "App", "blog", { name: "blog" });
    const all = [...resources, other];
    await keepSnapshots(volume);
    expect((await run({ shape, resources: all }, ["--only", "Machine", "--only", "Fleet"])).code).toBe(0);
    expect(await run({ shape, resources: all }, ["--only", "Volume"])).toMatchObject({ code: 1 });
    const blog = await run({ shape, resources: all }, ["--app", "blog", "--json"]);
    expect([blog.code, reportOf(blog).resources.map(({ name }) => name)]).toEqual([0, ["blog"]]);
    expect(await run({ shape, resources: all }, ["--only", "Machin"])).toMatchObject({
      code: 2,
      err: "pulumi-machines: --only Machin: there is no such type; did you mean Machine?\n",
    });
    expect((await run({ shape, resources: all }, ["--app", "shpo"])).err).toBe(
      "pulumi-machines: --app shpo: stack dev has no resource in such an App; did you mean shop?\n",
    );
  });

  test("--unmanaged finds what no stack has, in the same Apps and of the same types", async () => {
    const { resources } = await world(shape);
    const volume = await makeVolume(service, "shop", "fra");
    const machine = await makeMachine(service, "shop", { name: "by-hand", region: "ams", config: { image } });
    expect((await run({ shape, resources })).code).toBe(0);
    const found = await run({ shape, resources }, ["--unmanaged", "--json"]);
    expect([found.code, found.err]).toEqual([1, ""]);
    expect(reportOf(found).unmanaged?.map(({ type, id }) => `${type} ${id}`)).toEqual([
      `Machine shop/${machine}`,
      `Volume shop/${volume}`,
    ]);
    const limited = await run({ shape, resources }, ["--unmanaged", "--only", "Volume"]);
    expect(limited.out).toContain("Stack dev of shop, 1 resource: 1 not managed.");
    expect(limited.out).toContain(`Volume   shop/${volume}`);
    expect(limited.out).not.toContain(machine);
  });

  test("objects that the program only reads, and replaced ones, are left out and named", async () => {
    const { resources } = await world(shape);
    const [app, , machine] = resources;
    const ran = await run({
      shape,
      resources: [
        { ...(app as Exported), external: true },
        { ...(machine as Exported), delete: true, id: "shop/3d8d413b29d089" },
      ],
    });
    expect(ran).toEqual({
      code: 0,
      err: "",
      out: "Stack dev of shop, 0 resources: no drift.\n\nOnly read by the program, so not checked: App shop.\n\nReplaced, and deleted by the next `pulumi up`: Machine web.\n",
    });
  });

  test("resources of several providers are compared with the service of each", async () => {
    const elsewhere = await startService();
    try {
      const { resources } = await world(shape);
      await send(elsewhere, "POST", "/v1/apps", { name: "shop", org_slug: "personal" });
      const [app] = resources;
      const there = { ...(app as Exported), name: "there", provider: "other" };
      const lost = { ...there, name: "lost", id: "lost" };
      const around = { providers: { other: { endpoint: elsewhere.url, token: exported(secret(elsewhere.token)) } } };
      const ran = await run({ shape, resources: [...resources, there, lost], around }, ["--json"]);
      expect(drifted(ran)).toEqual({ lost: "missing" });
      expect(reportOf(ran).resources.map(({ provider }) => provider)).toEqual([
        ...resources.map(() => null),
        "other",
        "other",
      ]);
      expect(JSON.stringify(ran)).not.toContain(elsewhere.token);
    } finally {
      await elsewhere.close();
    }
  });
});

describe("what cannot be checked", () => {
  const shape = "plugin";

  test("a refused token is reported once for all resources", async () => {
    const { resources } = await world(shape);
    const refused = await run({ shape, resources }, ["--json"], { token: "wrong" });
    expect(refused.code).toBe(2);
    expect(refused.err).toMatch(/^Not checked: .*401.*\n$/);
    expect(reportOf(refused).summary).toMatchObject({ unchecked: 6, unchanged: 0 });
    expect(reportOf(refused).resources[0]?.reason).toContain("401");
  });

  test("an interrupted creation is unchecked, and drift elsewhere still counts", async () => {
    const { resources, volume } = await world(shape);
    const around = { pending: [{ type: "Machine", name: "next", inputs: { app: "shop" } }] };
    await keepSnapshots(volume);
    expect((await run({ shape, resources, around })).code).toBe(1);
    const ran = await run({ shape, resources, around }, ["--only", "Machine"]);
    expect([ran.code, ran.err]).toEqual([
      2,
      "Not checked: Machine next: its creation was interrupted, and its result is unknown: `pulumi up` settles that.\n",
    ]);
    expect(ran.out).toMatch(/^Machine +next +- +unchecked$/m);
  });

  test("a failed read of one resource does not hide the others", async () => {
    const { resources, volume } = await world(shape);
    await keepSnapshots(volume);
    service.fail({ operation: "certificates.get", status: 403, times: "always" });
    const ran = await run({ shape, resources }, ["--json"]);
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(/^Not checked: AcmeCertificate www \(shop\/www\.example\.com\): .*403/);
    expect(drifted(ran)).toMatchObject({ www: "unchecked", data: [{ path: "snapshotRetention" }] });
  });

  thoroughTest("Apps that are all missing look like a wrong endpoint, and not like drift", async () => {
    const { resources } = await world(shape);
    const empty = await startService();
    try {
      const ran = await run({ shape, resources }, [], { endpoint: empty.url, token: empty.token });
      expect(ran.code).toBe(2);
      expect(ran.err).toContain("missing-apps");
    } finally {
      await empty.close();
    }
  });
});
