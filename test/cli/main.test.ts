// How a new user meets the command: help, versions, misspelt names, colours, and what is missing on the computer.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cliMain } from "../support/built.ts";
import { makeApp, makeMachine } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";
import { command, commandHere, type Ran } from "./command.ts";
import { exportOf } from "./exports.ts";
import { onTerminal } from "./terminal.ts";

let folder = "";
let service: TestService;
beforeAll(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), "machines-main-"));
  writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

const run = (args: readonly string[], env: Record<string, string> = {}, cwd = folder): Promise<Ran> =>
  command(service, args, { cwd, env });

const here = (args: readonly string[], env: Record<string, string>): Promise<Ran> =>
  commandHere(service, args, { cwd: folder, env });

const commands: readonly (readonly string[])[] = [
  ["orphans"],
  ["undo-replacement"],
  ["promote", "dev", "prod", "--yes"],
  ["promote", "prod", "--rollback", "--yes"],
  ["environment", "list"],
  ["environment", "create", "pr-7", "--template", "dev", "--expires", "1h"],
  ["environment", "destroy", "pr-7"],
  ["environment", "sweep"],
  ["status"],
];

test("--version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync("sdk/nodejs/package.json", "utf8")) as { version: string };
  expect(await run(["--version"])).toEqual({ code: 0, out: `${version}\n`, err: "" });
});

test("every command has help, and can be started from another folder", async () => {
  const all = [...new Set(commands.map((words) => words.slice(0, words[0] === "environment" ? 2 : 1).join(" ")))];
  for (const words of [...all, "convert", "console", "mcp"]) {
    const { code, out, err } = await run([...words.split(" "), "--help"]);
    expect([code, err], words).toEqual([0, ""]);
    expect(out).toMatch(new RegExp(`^Usage: pulumi-machines ${words} `));
    expect(out).toMatch(/^ +-C, --cwd <folder> +work as if started in this folder$/m);
    expect(out).toMatch(/^ +-h, --help +print this help$/m);
  }
  expect((await run(["environment", "sweep", "--cwd", "nowhere"])).err).toMatch(
    /^pulumi-machines: --cwd nowhere: ENOENT/,
  );
});

test.each([
  [["orphan"], "error: unknown command 'orphan'\n(Did you mean orphans?)"],
  [["orphans", "--al-apps"], "error: unknown option '--al-apps'\n(Did you mean --all-apps?)"],
  [["environment", "lst"], "error: unknown command 'lst'\n(Did you mean list?)"],
])("a misspelt name is answered with the nearest one: %j", async (args, sentence) => {
  expect(await run(args)).toEqual({ code: 2, out: "", err: `${sentence}\n(add --help for the options)\n` });
});

test.each([[[]], [["dev"]], [["--rollback"]], [["dev", "prod", "--rollback"]], [["a", "b", "c"]]])(
  "promote shows both of its forms for other numbers of stacks: %j",
  async (args) => {
    const { code, out, err } = await run(["promote", ...args]);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(
      /^pulumi-machines: (promote takes two stacks: from, and to|--rollback takes one stack)\. For example: /,
    );
    expect(err).toContain("`npx pulumi-machines promote dev staging`");
    expect(err).toContain("`npx pulumi-machines promote staging --rollback`");
  },
);

describe("what is missing on the computer is one sentence, before everything else", () => {
  const oneSentence = ({ code, out, err }: Ran, sentence: RegExp): void => {
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(sentence);
    expect(err.trimEnd().split("\n")).toHaveLength(1);
  };
  /** A CLI that answers everything with one error. */
  const failing = (name: string, says: string): Record<string, string> => {
    const bin = join(folder, name);
    mkdirSync(bin, { recursive: true });
    writeFileSync(
      join(bin, "pulumi"),
      `#!/bin/sh\ncase "$1 $2" in "version "*) echo v3.259.0;; *) echo "error: ${says}" >&2; exit 255;; esac\n`,
    );
    chmodSync(join(bin, "pulumi"), 0o755);
    return { PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` };
  };

  test.each(commands.map((args) => [args.join(" "), args] as const))(
    "a missing Pulumi CLI is one sentence: %s",
    async (_, args) => {
      oneSentence(
        await here(args, { PATH: "/nowhere" }),
        /^pulumi-machines: the Pulumi CLI was not found: install it \(https:\S+\) and put `pulumi` on your PATH\n$/,
      );
    },
  );

  test.each(commands.map((args) => [args.join(" "), args] as const))(
    "a missing passphrase is one sentence: %s",
    async (_, args) => {
      const says =
        "passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables";
      oneSentence(
        await here(args, failing("passphrase", says)),
        /^pulumi-machines: the stack's secrets are encrypted with a passphrase: set PULUMI_CONFIG_PASSPHRASE to it, or /,
      );
    },
  );

  test("an unsupported Node is one sentence, for the command, the plugin and the policy pack", async () => {
    const old = join(folder, "old.cjs");
    writeFileSync(
      old,
      'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } });',
    );
    const env = { NODE_OPTIONS: `--require ${old}`, PATH: "/nowhere" };
    oneSentence(await run(["status"], env), /^pulumi-machines needs Node 22\.19 or later; this is 20\.1\.0\.\n$/);
    for (const [file, name] of [
      ["policy/main.ts", "pulumi-machines-policy"],
      ["provider/main.ts", "pulumi-resource-machines"],
    ] as const) {
      const ran = spawnSync(process.execPath, ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", file], {
        env: { ...process.env, ...env },
        encoding: "utf8",
      });
      const stderr = `${name} needs Node 22.19 or later; this is 20.1.0.\n`;
      expect(ran).toMatchObject({ status: 1, stdout: "", stderr });
    }
  });

  test("a missing login is one sentence", async () => {
    const says = "PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions";
    oneSentence(
      await run(["status"], failing("login", says)),
      /^pulumi-machines: Pulumi is not logged in: run `pulumi login`/,
    );
  });

  test("a CLI that does not work", async () => {
    const bin = join(folder, "broken");
    mkdirSync(bin);
    writeFileSync(join(bin, "pulumi"), "#!/bin/sh\necho no such library >&2\nexit 3\n");
    chmodSync(join(bin, "pulumi"), 0o755);
    oneSentence(
      await run(["status"], { PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` }),
      /^pulumi-machines: `pulumi version` failed, so the Pulumi CLI cannot be used: no such library\n$/,
    );
  });

  test("a missing project is one sentence", async () => {
    oneSentence(
      await run(["status"], {}, tmpdir()),
      /^pulumi-machines: there is no Pulumi project in .*: run this in the folder of Pulumi\.yaml, or name the folder with --cwd\n$/,
    );
  });
});

test("a terminal has colours, unless NO_COLOR is set; a pipe has none", async () => {
  await makeApp(service, "shop");
  await makeMachine(service, "shop", { name: "web", config: { image: "registry.example.com/shop:1" } });
  writeFileSync(join(folder, "state.json"), exportOf("plugin", [{ type: "App", name: "shop", id: "shop" }]));
  const args = ["orphans", "--state", "state.json"];
  const program = [process.execPath, cliMain, ...args];
  const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...rest } = process.env;
  const env = { ...rest, TERM: "xterm-256color", MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token };
  const coloured = await onTerminal(program, [], { cwd: folder, env });
  expect(coloured.shown).toContain("\u001b[1mTYPE\u001b[22m");
  const plain = await onTerminal(program, [], { cwd: folder, env: { ...env, NO_COLOR: "1" } });
  expect(plain.shown).toMatch(/^TYPE +ID +NAME/m);
  expect(plain.shown).not.toContain("\u001b");
  const piped = await run(args);
  expect(piped.out).toBe(plain.shown);
});
