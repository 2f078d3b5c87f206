// Programs that are restructured: other names, parents, components, stacks and projects, with the real CLI. Every object is kept, and so
// are claims and guards. `UPDATE_DOCS=1` writes the second table of docs/engine-options.md; otherwise it is compared.
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { onService } from "../support/optionMatrix.ts";
import { columns, kept, keptAfter, names, Story, type Layout } from "../support/restructured.ts";
import { bindings, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";
import { vault } from "../support/vault.ts";

const page = "docs/engine-options.md";

/** A way to restructure a program. */
interface Way {
  readonly what: string;
  readonly how: string;
  /** What is done before the program runs. */
  readonly work?: (story: Story) => Promise<void>;
  /** How the program is then. */
  readonly layout: Partial<Layout>;
}

/** Creates another stack of the project. */
async function makeStack(story: Story, name: string): Promise<void> {
  const { provider } = await vault();
  await story.stack.ok("stack", "init", name, "--secrets-provider", provider, "--no-select");
}

/** Moves resources to another stack, and continues there. */
async function move(story: Story, to: { project: string; at: string }, urns: readonly string[]): Promise<void> {
  const from = story.ref;
  story.nameProject(to.project);
  await makeStack(story, to.at);
  story.at = to.at;
  await story.stack.ok("state", "move", ...urns, "--source", from, "--dest", story.ref, "--yes");
}

const part = ["fleet", "secret", "secrets"];

/** Each begins where the one before has ended. */
const ways: readonly Way[] = [
  { what: "other names", how: "`aliases` with `name`", layout: { prefix: "a-", aliases: [{ prefix: "" }] } },
  {
    what: "a component as parent",
    how: "`aliases` with `parent`",
    layout: { tier: "front", aliases: [{ tier: null }] },
  },
  { what: "another component", how: "the same", layout: { tier: "back", aliases: [{ tier: "front" }] } },
  {
    what: "another name of the component",
    how: "`aliases` of the component",
    layout: { tier: "rear", tierAliases: ["back"] },
  },
  {
    ...{ what: "other names", how: "`pulumi state rename`", layout: { prefix: "b-" } },
    work: async (story) => {
      for (const [name, { urn }] of Object.entries(story.own()))
        await story.stack.ok("state", "rename", urn, `b-${name}`, "--yes");
    },
  },
  {
    ...{ what: "another name of the component", how: "`pulumi state rename`", layout: { tier: "top" } },
    work: async (story) => void (await story.stack.ok("state", "rename", story.urnOf("rear"), "top", "--yes")),
  },
  {
    ...{ what: "another name of the stack", how: "`pulumi stack rename`", layout: {} },
    work: async (story) => {
      await story.stack.ok("stack", "rename", "prod");
      story.at = "prod";
    },
  },
  {
    ...{ what: "another name of the project", how: "`pulumi stack rename`, and in `Pulumi.yaml`", layout: {} },
    work: async (story) => {
      await story.stack.ok("stack", "rename", "organization/two/prod");
      story.nameProject("two");
    },
  },
  {
    ...{ what: "another stack", how: "`pulumi state move` of the component", layout: {} },
    work: (story) => move(story, { project: "two", at: "later" }, [story.urnOf("top")]),
  },
  {
    ...{ what: "another project", how: "the same", layout: {} },
    work: (story) => move(story, { project: "three", at: "final" }, [story.urnOf("top")]),
  },
  {
    ...{ what: "another stack for some of them", how: "`pulumi state move` of each" },
    ...{ layout: { only: part, tier: undefined } },
    work: (story) => {
      const own = story.own();
      return move(
        story,
        { project: "three", at: "part" },
        part.map((name) => own[name]?.urn ?? ""),
      );
    },
  },
];

/** The results of each story, by the title of the way. */
const words = new Map<string, readonly Readonly<Record<string, string>>[]>();

describe.each([...bindings, "views"] as const)("a restructured program, %s", (form) => {
  const installed = inject("installed");
  let service: TestService;
  let story: Story;
  beforeAll(async () => {
    service = await startService();
    const stack = new Stack(installed, "one", form === "views" ? "pulumi-machines-plugin" : form);
    const views = String(form === "views");
    Object.assign(stack.env, { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token });
    Object.assign(stack.env, { MACHINES_MIN_HEALTHY_SECONDS: "0", MACHINES_FLEET_VIEWS: views });
    story = new Story(stack, service);
    await stack.init({});
    story.write({ prefix: "", only: names.filter((name) => name !== "metadata") });
    await succeed();
    const machine = story.own()["machine"]?.id.replace("/", "/machines/") ?? "";
    // So that the resource takes the key over, and marks it with its name.
    await send(service, "POST", `/v1/apps/${machine}/metadata/team`, { value: "others" });
    story.write({ prefix: "", only: names });
    await succeed();
  });
  afterAll(() => service.close());

  const succeed = async (): Promise<void> => {
    const { code, output } = await story.up();
    expect(code, output).toBe(0);
  };

  /** A fleet whose views have another owner in the state is not deleted, because the state would be invalid then. */
  const refusesToDestroy = async (): Promise<void> => {
    const before = await onService(service);
    const fleet = ["--target", story.own()["fleet"]?.urn ?? "", "--target-dependents"];
    const options = ["--yes", "--skip-preview", "--stack", story.at, ...fleet];
    const { code, output } = await story.stack.run(["destroy", ...options]);
    expect(code, output).not.toBe(0);
    expect(output).toContain("`npx pulumi-machines forget-views`");
    expect(await onService(service)).toEqual(before);
  };

  test("keeps every object, without a request that changes one, and the next preview is empty", async () => {
    const all: Readonly<Record<string, string>>[] = [];
    const isViewed = form === "views";
    for (const { work, layout } of ways) {
      story.begin();
      await work?.(story);
      if (isViewed && layout.only) await refusesToDestroy();
      all.push(await story.step(layout, installed));
      // Two Machines, each with its volume.
      expect(story.views()).toHaveLength(isViewed ? 4 : 0);
    }
    words.set(form, all);
    for (const [at, found] of all.entries())
      for (const [name, text] of Object.entries(found)) {
        const allowed = isViewed && name === "fleet" ? [kept, keptAfter] : [kept];
        expect(allowed, `${ways[at]?.how ?? ""}: ${name}`).toContain(text);
      }
  });

  test("a fleet that was moved has its volumes again, and the other claims are released", async () => {
    const before = await onService(service);
    story.write({ ...story.layout, count: 1 });
    await succeed();
    story.write({ ...story.layout, count: 2 });
    await succeed();
    const volumes = (all: ReadonlySet<string>) => [...all].filter((id) => id.includes("/vol_")).sort();
    expect(volumes(await onService(service))).toEqual(volumes(before));
    story.write({ ...story.layout, only: ["fleet", "secrets"] });
    await succeed();
    expect((await onService(service)).has("shop/KEY")).toBe(false);
    expect((await onService(service)).has("shop/A")).toBe(true);
  });

  test("what stays in the first stack is guarded, and the key that it took over is removed with its resource", async () => {
    story.at = "final";
    const rest = names.filter((name) => !part.includes(name));
    const whole: Layout = { ...story.layout, tier: "top", only: rest };
    story.write(whole);
    const { code, writes, output } = await story.up();
    expect([code, writes], output).toEqual([0, []]);
    const refused = async (layout: Layout, reason: RegExp): Promise<void> => {
      const before = await onService(service);
      story.write(layout);
      const ran = await story.up();
      expect(ran.code).not.toBe(0);
      expect(ran.output).toMatch(reason);
      expect(await onService(service)).toEqual(before);
    };
    await refused({ ...whole, more: { volume: { encrypted: false } } }, /allowDataLoss/);
    await refused({ ...whole, only: rest.filter((name) => name !== "cluster") }, /deletionProtection/);
    story.write({ ...whole, only: rest.filter((name) => name !== "metadata") });
    await succeed();
    const machine = story.own()["machine"]?.id.replace("/", "/machines/") ?? "";
    const metadata = await send(service, "GET", `/v1/apps/${machine}/metadata`);
    expect(Object.keys(metadata).filter((key) => /team|stage|holder/.test(key))).toEqual([]);
  });

  test("both stacks are destroyed, and nothing is left", async () => {
    const whole = story.layout;
    story.write({ ...whole, more: { cluster: { deletionProtection: false }, app: { forceDestroy: true } } });
    await succeed();
    for (const at of ["part", "final"]) {
      const { code, output } = await story.stack.run(["destroy", "--yes", "--skip-preview", "--stack", at]);
      expect(code, output).toBe(0);
      story.at = at;
      expect(story.entries()).toEqual([]);
    }
    expect([...(await onService(service))]).toEqual([]);
  });
});

test("the page says so", () => {
  const [dynamic, plugin, views] = ["pulumi-machines", "pulumi-machines-plugin", "views"].map((form) =>
    words.get(form),
  );
  expect(dynamic).toEqual(plugin);
  const shown = Object.keys(columns);
  const titles = [
    "what is different",
    "how",
    ...Object.values(columns).map((kind) => `\`${kind}\``),
    "`Fleet` with views",
  ];
  const cells = ways.map(({ what, how }, at) => [
    ...[what, how, ...shown.map((name) => plugin?.[at]?.[name] ?? "–")],
    views?.[at]?.["fleet"] ?? "–",
  ]);
  const table = [titles, titles.map(() => "---"), ...cells].map((line) => `| ${line.join(" | ")} |\n`).join("");
  const now = readFileSync(page, "utf8").replace(/^\| what is different .*\n(?:\|.*\n)*/m, table);
  if (process.env["UPDATE_DOCS"]) writeFileSync(page, now);
  expect(readFileSync(page, "utf8"), "UPDATE_DOCS=1 writes the page").toBe(now);
});
