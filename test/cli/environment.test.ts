// `pulumi-machines environment` with a CLI that notes what it is asked; the real one is in test/e2e.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ago, until } from "../../cli/time.ts";
import { withoutLines } from "../../cli/promotion/stacks.ts";
import { command, commandHere, type Ran } from "./command.ts";

/** Its stacks are those of `stacks.json`; each is an environment if it has a time there. */
const cli = `#!/usr/bin/env node
const { appendFileSync, existsSync, readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const args = process.argv.slice(2);
const file = join(__dirname, "stacks.json");
const stacks = JSON.parse(readFileSync(file, "utf8"));
const name = args.includes("--stack") ? args[args.indexOf("--stack") + 1] : undefined;
const words = args.filter((word) => !word.startsWith("-")).join(" ");
appendFileSync(join(__dirname, "asked"), args.slice(0, 2).join(" ") + " " + (name ?? "") + "\\n");
const keep = (list) => writeFileSync(file, JSON.stringify(list));
const found = stacks.find((one) => one.name === name);
if (words.startsWith("version")) console.log("v3.259.0");
else if (words.startsWith("stack ls")) console.log(JSON.stringify(stacks));
else if (words.startsWith("stack init")) keep([...stacks, { name: args[2], current: false }]);
else if (name !== undefined && found === undefined) {
  process.stderr.write("error: no stack named '" + name + "' found\\n");
  process.exit(255);
} else if (words.startsWith("stack tag ls")) {
  const mark = { template: "dev", created: "2026-01-01T00:00:00Z", expires: found.expires };
  console.log(JSON.stringify(found.expires ? { "pulumi-machines:environment": JSON.stringify(mark) } : {}));
} else if (words.startsWith("stack tag set")) {
  if (existsSync(join(__dirname, "refuses tags"))) {
    process.stderr.write("error: no tags here\\n");
    process.exit(255);
  }
  keep(stacks.map((one) => (one === found ? { ...one, expires: JSON.parse(args[4]).expires } : one)));
} else if (words.startsWith("stack rm"))
  keep(stacks.filter((one) => one !== found).map((one) => ({ ...one, current: false })));
else if (words.startsWith("stack select")) keep(stacks.map((one) => ({ ...one, current: one === found })));
else if (words.startsWith("stack export"))
  console.log(JSON.stringify({ version: 3, deployment: { resources: found.resources ?? [] } }));
else if (words.startsWith("stack history"))
  console.log(JSON.stringify(found.updated ? [{ kind: "update", result: "succeeded" }] : []));
else if (words.startsWith("config") && args.includes("--json"))
  console.log(JSON.stringify(found.config ?? { "shop:image": { value: "shop:1", secret: false } }));
else if (words.startsWith("config rm-all"))
  keep(
    stacks.map((one) =>
      one === found
        ? { ...one, config: Object.fromEntries(Object.entries(one.config).filter(([key]) => !args.includes(key))) }
        : one,
    ),
  );
else if (words.startsWith("destroy")) {
  if (found.interrupts) process.kill(process.ppid, "SIGINT");
  console.log(
    "Destroying (" + name + "):\\nThe resources in the stack have been deleted, but the history and configuration associated " +
      "with the stack are still maintained. \\nIf you want to remove the stack completely, run \`pulumi stack rm " + name + "\`.",
  );
}
else console.log("{}");
`;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "machines-environment-"));
  writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  writeFileSync(join(folder, "pulumi"), cli);
  chmodSync(join(folder, "pulumi"), 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Listed {
  readonly name: string;
  readonly current: boolean;
  readonly expires?: string;
  readonly updated?: boolean;
  /** Whether ^C is pressed while it is destroyed. */
  readonly interrupts?: true;
  readonly resources?: readonly unknown[];
  /** Its configuration, if it is not that of all stacks. */
  readonly config?: Readonly<Record<string, { readonly value?: string; readonly secret: boolean }>>;
}
const [past, future] = ["2026-01-02T00:00:00Z", "2999-01-01T00:00:00Z"];
const have = (...stacks: readonly Listed[]): void => writeFileSync(join(folder, "stacks.json"), JSON.stringify(stacks));
const left = (): Listed[] => JSON.parse(readFileSync(join(folder, "stacks.json"), "utf8")) as Listed[];
const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  commandHere({ url: "local", token: "" }, ["environment", ...args], {
    cwd: folder,
    env: { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}`, ...env },
  });

describe("environment destroy", () => {
  test("destroying the environment of a protected cluster deletes nothing, and the message says how it can be destroyed", async () => {
    const urn = "urn:pulumi:pr-7::shop::pulumi-nodejs:dynamic/machines:PostgresCluster::db";
    const type = "pulumi-nodejs:dynamic/machines:PostgresCluster";
    const cluster = (deletionProtection: boolean) => ({
      ...{ urn, type, id: "c1", custom: true, outputs: { deletionProtection } },
      inputs: { deletionProtection },
    });
    const stack = { name: "pr-7", current: true, expires: future };
    have({ ...stack, resources: [cluster(true)] });
    const { code, err } = await run(["destroy", "pr-7"]);
    expect([code, err]).toEqual([
      2,
      "pulumi-machines: environment pr-7 still exists, and nothing was deleted: the PostgresCluster db is protected. Let the program set deletionProtection: false in environments, for example by a setting, and run `environment create` again.\n",
    ]);
    expect(left()).toHaveLength(1);
    have({ ...stack, resources: [cluster(false)] });
    expect((await run(["destroy", "pr-7"])).code).toBe(0);
    expect(left()).toEqual([]);
  });

  test("environment destroy leaves the selected stack selected, and does what Pulumi advises to do by hand", async () => {
    have({ name: "dev", current: true }, { name: "pr-7", current: false, expires: future });
    const { code, out, err } = await run(["destroy", "pr-7"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toBe("Destroying (pr-7):\nEnvironment pr-7 is deleted, with everything it created.\n");
    expect(left()).toEqual([{ name: "dev", current: true }]);
  });

  test("environment destroy selects no other stack in place of its own", async () => {
    have({ name: "dev", current: false }, { name: "pr-7", current: true, expires: future });
    expect(await run(["destroy", "pr-7"])).toMatchObject({ code: 0, err: "" });
    expect(left()).toEqual([{ name: "dev", current: false }]);
  });
});

test("environment sweep leaves the selected stack selected", async () => {
  const kept = [
    { name: "dev", current: true },
    { name: "pr-8", current: false, expires: future },
  ];
  have(...kept, ...["pr-1", "pr-2"].map((name) => ({ name, current: false, expires: past })));
  expect(await run(["sweep"])).toMatchObject({ code: 0, err: "" });
  expect(left()).toEqual(kept);
});

test("environment sweep finishes what it destroys after ^C, and destroys no other environment", async () => {
  const kept = ["pr-3", "pr-4"].map((name) => ({ name, current: false, expires: past }));
  const destroyed = { current: false, expires: past };
  have({ name: "pr-1", ...destroyed }, { name: "pr-2", ...destroyed, interrupts: true }, ...kept);
  const { code, out, err } = await run(["sweep"]);
  expect([code, err]).toEqual([1, "Interrupted: stack pr-3 and those after it are left as they are.\n"]);
  expect(out).toContain("Environment pr-2 is deleted, with everything it created.\n");
  expect(left()).toEqual(kept);
});

test("environment sweep says that there is nothing to do", async () => {
  have({ name: "dev", current: true }, { name: "pr-8", current: false, expires: future });
  expect(await run(["sweep"])).toEqual({ code: 0, out: "No environment of the project shop has expired.\n", err: "" });
});

describe("environment create", () => {
  const create = (name: string, ...more: string[]): Promise<Ran> =>
    run(["create", name, "--template", "dev", "--expires", "1h", ...more]);
  const asked = (): string => readFileSync(join(folder, "asked"), "utf8");

  test("environment create refuses the name of a stack that is no environment, and advises nothing that would harm it", async () => {
    have({ name: "dev", current: true }, { name: "staging", current: false, updated: true });
    expect(await create("staging")).toEqual({
      code: 2,
      out: "",
      err: "pulumi-machines: stack staging is no environment, because `environment create` did not create it: choose another name\n",
    });
    expect((await run(["destroy", "staging"])).err).toMatch(/did not create it: it is not destroyed\n$/);
    expect(asked()).not.toMatch(/stack rm|destroy|tag set/);
  });

  test.each([
    ["resources", { resources: [{ urn: "urn:pulumi:staging::shop::pulumi:pulumi:Stack::shop-staging" }] }, ""],
    ["configuration", {}, "encryptionsalt: v1:xyz\nconfig:\n  shop:image: shop:1\n"],
  ])("environment create and destroy refuse a stack with %s that was never updated", async (_, more, file) => {
    have({ name: "dev", current: true }, { name: "staging", current: false, ...more });
    if (file !== "") writeFileSync(join(folder, "Pulumi.staging.yaml"), file);
    expect((await create("staging")).err).toMatch(/did not create it: choose another name\n$/);
    expect((await run(["destroy", "staging"])).err).toMatch(/did not create it: it is not destroyed\n$/);
    expect(asked()).not.toMatch(/stack rm|destroy|tag set/);
  });

  // As a kill leaves it between the creation of the stack and its tag.
  const untouched = (): void => {
    have({ name: "dev", current: true }, { name: "pr-7", current: false });
    writeFileSync(join(folder, "Pulumi.pr-7.yaml"), "encryptionsalt: v1:xyz\n");
  };

  test("environment create continues with a stack that it could not mark", async () => {
    untouched();
    await create("pr-7");
    expect(asked()).not.toContain("stack init");
    expect(asked()).toMatch(/^up .*pr-7$/m);
    expect(left()).toMatchObject([{ name: "dev" }, { name: "pr-7", expires: expect.any(String) as string }]);
  });

  test("environment destroy removes a stack that could not be marked", async () => {
    untouched();
    expect(await run(["destroy", "pr-7"])).toMatchObject({ code: 0, err: "" });
    expect(asked()).not.toMatch(/^destroy/m);
    expect(left()).toEqual([{ name: "dev", current: true }]);
  });

  test("environment create leaves no new stack that it cannot mark, and keeps one that was there", async () => {
    const before = { name: "pr-8", current: false, expires: future };
    have({ name: "dev", current: true }, before);
    writeFileSync(join(folder, "refuses tags"), "");
    for (const name of ["pr-7", "pr-8"]) expect((await create(name)).err).toMatch(/ failed: no tags here\n$/);
    expect(asked()).toMatch(/^stack init/m);
    expect(left()).toEqual([{ name: "dev", current: true }, before]);
  });

  test.each(["Pr_9!", "a b", "", "x".repeat(101)])(
    "environment create checks a name before everything else: %j",
    async (name) => {
      have({ name: "dev", current: true });
      expect(await create(name)).toEqual({
        code: 2,
        out: "",
        err: `pulumi-machines: ${JSON.stringify(name)} cannot be the name of an environment: it takes up to 100 letters, digits, hyphens, underscores and periods, such as pr-7\n`,
      });
      expect(asked).toThrow("ENOENT");
    },
  );

  test("environment create names the missing variable of a secret, and never what may be the secret", async () => {
    have({ name: "dev", current: true });
    expect((await create("pr-7", "--set-secret", "apiKey=API_KEY")).err).toBe(
      "pulumi-machines: --set-secret: the environment has no variable API_KEY, from which shop:apiKey takes its value; set it, for example with `export API_KEY=…`\n",
    );
    const { code, err } = await create("pr-7", "--set-secret", "apiKey=hunter2");
    expect(code).toBe(2);
    expect(err).not.toContain("hunter2");
    expect(err).toContain("--set-secret shop:apiKey=VARIABLE takes the name of one, not the value");
  });

  test("environment create refuses a key that neither the template nor Pulumi.yaml has, before anything is created", async () => {
    have({ name: "dev", current: true }, { name: "pr-7", current: false, expires: future });
    writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\nconfig:\n  replicas: 2\n");
    const known = ["image=a", "replicas=1", "machines:organization=acme"].flatMap((pair) => ["--set", pair]);
    const unknown = ["imge=a", "replica=1", "unrelated=1"].flatMap((pair) => ["--set", pair]);
    expect(await create("pr-7", ...known, ...unknown)).toEqual({
      code: 2,
      out: "",
      err:
        "pulumi-machines: neither dev nor Pulumi.yaml has the configuration shop:imge; did you mean shop:image?\n" +
        "neither dev nor Pulumi.yaml has the configuration shop:replica; did you mean shop:replicas?\n" +
        "neither dev nor Pulumi.yaml has the configuration shop:unrelated\n" +
        "Nothing was changed. If the program reads it, declare it in Pulumi.yaml, or add --allow-new-keys.\n",
    });
    expect(asked()).not.toMatch(/tag set|config set|config cp|^up/m);
    await create("pr-7", ...known, "--set", "unrelated=1", "--allow-new-keys");
    expect(asked()).toMatch(/config set pr-7/);
    writeFileSync(join(folder, "asked"), "");
    await create("pr-7", ...known);
    expect(asked()).toMatch(/config set pr-7/);
  });

  test("environment create removes what an earlier run set, and this one does not", async () => {
    const plain = { value: "1", secret: false };
    const config = { "shop:image": plain, "shop:replicas": plain, "shop:key": { secret: true }, "shop:size": plain };
    have({ name: "dev", current: true }, { name: "pr-7", current: false, expires: future, config });
    await create("pr-7", "--set", "size=2", "--allow-new-keys");
    expect(asked()).toMatch(/^config rm-all pr-7\nconfig cp dev\nconfig set pr-7$/m);
    expect(Object.keys(left()[1]?.config ?? {})).toEqual(["shop:image", "shop:size"]);
    writeFileSync(join(folder, "asked"), "");
    await create("pr-7", "--set", "size=2", "--allow-new-keys");
    expect(asked()).not.toContain("rm-all");
  });

  test("environment create says in its help what is required", async () => {
    // Help ends its process.
    const { out } = await command({ url: "local", token: "" }, ["environment", "create", "--help"]);
    expect(out).toMatch(/--expires <time> +time until it expires, .* \(required\)$/m);
  });
});

test("the time that is left is rounded to the nearest", () => {
  const now = new Date("2026-01-01T00:00:00Z");
  const left = (seconds: number) => until(new Date(now.getTime() + seconds * 1000).toISOString(), now);
  const hour = 3600;
  expect([72 * hour - 5, 48 * hour - 5, 36 * hour, hour - 5, 20].map(left)).toEqual([
    ...["3 days", "2 days", "36 hours", "1 hour", "less than a minute"],
  ]);
  expect(ago(new Date(now.getTime() - (72 * hour - 5) * 1000).toISOString(), now)).toBe("2 days ago");
});

test("a line is left out, in whatever pieces it comes", () => {
  for (const size of [1, 3, 100]) {
    let passed = "";
    const lines = withoutLines((text) => (passed += text), /^no/);
    const text = "yes\nno more\nnot\nand yes";
    for (let at = 0; at < text.length; at += size) lines.write(text.slice(at, at + size));
    lines.end();
    expect(passed).toBe("yes\nand yes");
  }
});
