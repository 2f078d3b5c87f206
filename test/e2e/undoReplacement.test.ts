// Originals that a replacement would have destroyed, and how to restore them, with the packed command and the real CLI.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeMachine, send } from "../support/around.ts";
import { bindings, counts, Stack, type Ran } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const shop = (name = "undo-shop", more = "", forceDestroy = false) => `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { ${name === "" ? "" : `name: "${name}", `}forceDestroy: ${forceDestroy} });
const data = new machines.Volume("data", { app: app.id, region: "ams", sizeGb: 1${more} });
new machines.Machine("web", { app: app.id, region: "ams", config: { image: "registry.example.com/shop:1", mounts: [{ volume: data.id, path: "/data" }] } });
`;

const cluster = (more = "") => `
import * as machines from "pulumi-machines";
new machines.PostgresCluster("main", { region: "fra", plan: "basic"${more} });
`;

const guarded =
  /is guarded: .*`npx pulumi-machines undo-replacement`.*To allow the data loss, set (allowDataLoss: true|deletionProtection: false)/s;

describe.each(bindings)("undoing a replacement, %s", (binding) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  const begin = async (program: string): Promise<Stack> => {
    const stack = new Stack(inject("installed"), "undo", binding);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await stack.up();
    return stack;
  };
  /** Runs the command like `npx pulumi-machines`; it never changes anything on the service. */
  const undo = async (stack: Stack, ...args: string[]): Promise<Ran> => {
    const before = service.requests.length;
    const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
    const ran = await stack.run(["undo-replacement", ...args], { command, plain: true });
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
    expect(ran.output).not.toContain(service.token);
    return ran;
  };
  const done = async (stack: Stack, ...args: string[]): Promise<string> => {
    const { code, output } = await undo(stack, ...args);
    expect(code, output).toBe(0);
    return output;
  };
  /** Ids in the state, grouped by whether their deletion is pending. */
  const idsOf = (stack: Stack, name: string) => {
    const all = stack.resources().filter(({ urn }) => urn.endsWith(`::${name}`));
    const pick = (leaves: boolean) => all.filter((one) => (one.delete ?? false) === leaves).map(({ id }) => id);
    return { current: pick(false), leaving: pick(true) };
  };
  const volumes = async (app = "undo-shop") =>
    (await send<{ id: string; state: string }[]>(service, "GET", `/v1/apps/${app}/volumes`))
      .filter(({ state }) => state === "created")
      .map(({ id }) => `${app}/${id}`);
  const mounted = (stack: Stack) => {
    const { config } = (stack.state()["web"]?.outputs ?? {}) as { config?: { mounts: { volume: string }[] } };
    return config?.mounts[0]?.volume;
  };
  const apps = async () =>
    (await send<{ apps: { name: string }[] }>(service, "GET", "/v1/apps?org_slug=personal")).apps.map(
      ({ name }) => name,
    );
  const idsIn = (state: Awaited<ReturnType<Stack["state"]>>) =>
    Object.entries(state).map(([name, { id }]) => [name, id]);
  const forced = (stack: Stack, type: string, name: string) =>
    stack.fails("up", "--yes", "--skip-preview", "--replace", stack.urn(type, name));
  const unchanged = async (stack: Stack) => {
    expect(await stack.preview()).toEqual({});
    expect(Object.keys(counts(await stack.refresh()))).toEqual(["unchanged"]);
  };

  describe("of a volume that a Machine mounts", () => {
    let stack: Stack;
    let original = "";
    beforeAll(async () => {
      stack = await begin(shop());
      original = stack.state()["data"]?.id ?? "";
    });

    test("without a replacement there is nothing to undo", async () => {
      expect(await done(stack, "--yes")).toContain("There is nothing to undo");
      expect((await undo(stack, "data", "--yes")).output).toContain("the state holds none");
    });

    test("a forced replacement is refused, in every run", async () => {
      expect(await forced(stack, "Volume", "data")).toMatch(guarded);
      expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(guarded);
      const { current, leaving } = idsOf(stack, "data");
      expect(leaving).toEqual([original]);
      expect((await volumes()).sort()).toEqual([...current, original].sort());
    });

    test("the plan is shown, and executed only after confirmation", async () => {
      const before = await stack.ok("stack", "export");
      const [replacement = ""] = idsOf(stack, "data").current;
      const output = await done(stack, "--dry-run");
      expect(output).toContain(`  keeps    ${original}, in the state since 20`);
      expect(output).toContain(`  deletes  ${replacement}, in the state since 20`);
      const { code, output: refused } = await undo(stack);
      expect([code, refused]).toEqual([2, expect.stringContaining("no one can answer here: add --yes")]);
      const { code: other, output: listed } = await undo(stack, "dato", "--yes");
      expect([other, listed]).toEqual([2, expect.stringContaining(`${stack.urn("Volume", "data")}#${original}`)]);
      expect(await stack.ok("stack", "export")).toBe(before);
      expect(readdirSync(stack.dir).filter((file) => file.includes("before-undo"))).toEqual([]);
    });

    test("after the undo, up continues with the original and deletes the replacement", async () => {
      const [replacement = ""] = idsOf(stack, "data").current;
      const output = await done(stack, "--yes");
      const file = /The previous state is in (dev-before-undo-\d{8}T\d{6}Z\.json)\./.exec(output)?.[1] ?? "";
      expect(readdirSync(stack.dir)).toContain(file);
      expect(idsOf(stack, "data")).toEqual({ current: [original], leaving: [replacement] });
      expect(await done(stack, "--yes")).toContain(
        `Already given up; the next up deletes: Volume data (${replacement})`,
      );
      await stack.refresh();
      await stack.up();
      expect(idsOf(stack, "data")).toEqual({ current: [original], leaving: [] });
      expect(await volumes()).toEqual([original]);
      expect(mounted(stack)).toBe(original);
      await unchanged(stack);
    });

    test("after two consecutive replacements, the user selects the original to keep", async () => {
      await forced(stack, "Volume", "data");
      await forced(stack, "Volume", "data");
      expect(idsOf(stack, "data").leaving).toHaveLength(2);
      const { code, output } = await undo(stack, "--yes");
      expect([code, output]).toEqual([2, expect.stringContaining('there are several originals of Volume "data"')]);
      await done(stack, "--yes", `data#${original}`);
      await stack.up();
      expect(await volumes()).toEqual([original]);
      await unchanged(stack);
    });

    test("an original that no longer exists is not restored, and a refresh forgets it", async () => {
      stack.program(`${shop()}new machines.Volume("logs", { app: app.id, region: "ams", sizeGb: 1 });\n`);
      await stack.up();
      await forced(stack, "Volume", "logs");
      const [gone = ""] = idsOf(stack, "logs").leaving;
      await send(service, "DELETE", `/v1/apps/${gone.replace("/", "/volumes/")}`);
      const { code, output } = await undo(stack, "--yes");
      expect([code, output]).toEqual([1, expect.stringContaining(`The Volume ${gone} is deleted or being deleted`)]);
      await stack.refresh();
      await unchanged(stack);
      stack.program(shop());
      await stack.up();
    });

    test("alternatively the loss is allowed, and the replacement stays", async () => {
      await forced(stack, "Volume", "data");
      const [replacement = ""] = idsOf(stack, "data").current;
      stack.program(shop("undo-shop", ", allowDataLoss: true"));
      await stack.up();
      expect(idsOf(stack, "data")).toEqual({ current: [replacement], leaving: [] });
      expect(await volumes()).toEqual([replacement]);
      expect(mounted(stack)).toBe(replacement);
      await stack.destroy();
    });
  });

  // test/cli/undoReplacement.test.ts has the other cases.
  test("F59: a replacement in a state that was copied to another backend is undone only for its name", async () => {
    const stack = await begin(shop("undo-copied"));
    await forced(stack, "Volume", "data");
    writeFileSync(join(stack.dir, "state.json"), await stack.ok("stack", "export"));
    const copy = new Stack(inject("installed"), "undo", binding);
    await copy.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await copy.ok("stack", "import", "--file", join(stack.dir, "state.json"));
    const { code, output } = await undo(copy, "--yes");
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(/its state is from another backend, where it may live on/),
    ]);
    expect(await done(copy, "data", "--dry-run")).toContain("nothing proves that this stack owns what is deleted");
    await done(stack, "--yes");
    await stack.up();
    await stack.destroy();
  });

  // nothingLost.test.ts has the refusal.
  test("the replacement of a renamed App with a volume is undone", async () => {
    const stack = await begin(shop());
    const before = stack.state();
    stack.program(shop("undo-other"));
    expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(/changing it replaces the App undo-shop/);
    expect(await apps()).toEqual(["undo-shop"]);
    // The App may be deleted, the volume in it may not: the engine creates the new App before it reaches the volume.
    stack.program(shop("undo-other", "", true));
    expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(/changing it replaces the Volume and destroys/);
    expect(idsOf(stack, "shop")).toEqual({ current: ["undo-other"], leaving: ["undo-shop"] });
    const output = await done(stack, "--yes");
    expect(output).toContain(`set name back to "undo-shop" in the program`);
    stack.program(shop());
    await stack.up();
    expect(idsIn(stack.state())).toEqual(idsIn(before));
    expect(await stack.ok("stack", "export")).not.toContain("undo-other");
    await unchanged(stack);
    await stack.destroy();
    expect(await apps()).toEqual([]);
  });

  test("a forced replacement of an App is undone, though others have created objects in it meanwhile", async () => {
    const stack = await begin(shop(""));
    const before = stack.state();
    expect(await forced(stack, "App", "shop")).toMatch(/destroys its data|would be replaced/);
    const [app = ""] = idsOf(stack, "shop").current;
    const config = { image: "registry.example.com/other:1" };
    const machine = await makeMachine(service, app, { region: "ams", config });
    expect(await done(stack, "--yes", "shop")).not.toContain("set name back");
    // The App itself reports what it still contains.
    expect(await stack.fails("up", "--yes", "--skip-preview")).toContain(`${app}/${machine}`);
    await send(service, "DELETE", `/v1/apps/${app}/machines/${machine}?force=true`);
    await stack.up();
    expect(idsIn(stack.state())).toEqual(idsIn(before));
    expect(await apps()).toEqual([before["shop"]?.id]);
    await unchanged(stack);
    await stack.destroy();
    expect(await apps()).toEqual([]);
  });

  // In process: test/cli/replacements.test.ts with any taint, test/plugin/replacement.test.ts with a cluster, and the stories
  // of the fault campaign with both.
  test("the replacement of a protected cluster that was tainted is undone", async () => {
    const stack = await begin(cluster());
    const id = stack.state()["main"]?.id ?? "";
    await stack.ok("state", "taint", stack.urn("PostgresCluster", "main"), "--yes");
    expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(guarded);
    const {
      current: [replacement],
      leaving,
    } = idsOf(stack, "main");
    expect(leaving).toEqual([id]);
    await done(stack, "--yes");
    expect((await stack.preview())["main"]?.op ?? "same").toBe("same");
    await stack.up();
    expect(idsOf(stack, "main")).toEqual({ current: [id], leaving: [] });
    await unchanged(stack);
    const { data } = await send<{ data: { id: string; status: string }[] }>(
      service,
      "GET",
      "/v1/postgres?org_slug=personal",
    );
    expect(data.filter(({ status }) => status === "ready").map((one) => one.id)).toEqual([id]);
    expect(replacement).not.toBe(id);
    stack.program(cluster(", deletionProtection: false"));
    await stack.up();
    await stack.destroy();
  });
});
