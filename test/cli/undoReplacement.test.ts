// The command that undoes a replacement, with a fake CLI; test/e2e uses the real one.
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { backendId, stateIdIn } from "../../provider/core/backend.ts";
import { contextOf, type Values } from "../../provider/core/resource.ts";
import { makeApp, makeVolume } from "../support/around.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { commandHere, type Ran } from "./command.ts";
import { exportOf, sealed, shapes, urnOf, type Shape } from "./exports.ts";

/**
 * Answers from files of its folder: `export.json`, and from the second call on `later.json` if it exists; for another stack, the
 * file of its name.
 */
const cli = `#!/usr/bin/env node
const { existsSync, readFileSync, writeFileSync, appendFileSync } = require("node:fs");
const { join } = require("node:path");
const [verb, what, ...rest] = process.argv.slice(2);
const file = (name) => join(__dirname, name);
if (verb === "config") process.stdout.write(readFileSync(file("config.json")));
else if (what === "ls") process.stdout.write(existsSync(file("stacks.json")) ? readFileSync(file("stacks.json")) : "[]");
else if (what === "export" && rest[0] === "--stack") process.stdout.write(readFileSync(file(rest[1].replaceAll("/", "-") + ".json")));
else if (what === "export") {
  const again = existsSync(file("asked")) && existsSync(file("later.json"));
  appendFileSync(file("asked"), rest.join(" ") + "\\n");
  process.stdout.write(readFileSync(file(again ? "later.json" : "export.json")));
} else if (existsSync(file("refuses"))) {
  process.stderr.write("error: the stack is currently locked by 1 lock(s)\\n");
  process.exit(255);
} else writeFileSync(file("imported.json"), readFileSync(0));
`;

const backend = { PULUMI_BACKEND_URL: "https://states.example.com" };
/** The id of a state in a backend. */
const stateId = (env: Record<string, string>): string => stateIdIn("0123456789ab", backendId(env));
const ours = stateId(backend);

describe("undo-replacement", () => {
  let service: TestService;
  let folder = "";
  let [before, now] = ["", ""];
  const at = (name: string): string => join(folder, name);
  const write = (name: string, text: string): void => writeFileSync(at(name), text);

  beforeAll(async () => {
    service = await startService();
    await makeApp(service, "shop");
    before = `shop/${await makeVolume(service, "shop", "ams")}`;
    now = `shop/${await makeVolume(service, "shop", "ams")}`;
  });
  afterAll(() => service.close());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "undo-"));
    write("pulumi", cli);
    chmodSync(at("pulumi"), 0o755);
    write("config.json", "{}");
    write("export.json", state());
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const state = (original = before, provider?: string, shape: Shape = "plugin", madeIn = ours): string => {
    const outputs = { __context: { stack: madeIn } };
    const volume = {
      type: "Volume",
      name: "data",
      inputs: { secret: sealed },
      outputs,
      ...(provider ? { provider } : {}),
    };
    return exportOf(
      shape,
      [
        { type: "App", name: "shop", id: "shop" },
        { ...volume, id: now },
        { ...volume, id: original, delete: true },
      ],
      provider ? { providers: { [provider]: { endpoint: service.url, token: clear(service.token) } } } : {},
    );
  };
  /** A secret in an export with `--show-secrets`. */
  const clear = (text: string): Values => ({ ...sealed, ciphertext: undefined, plaintext: JSON.stringify(text) });
  const undo = (args: readonly string[] = ["--yes"], env: Record<string, string> = {}): Promise<Ran> =>
    commandHere(service, ["undo-replacement", ...args], {
      cwd: folder,
      env: { ...backend, PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}`, ...env },
    });
  const copies = (): string[] => readdirSync(folder).filter((file) => file.startsWith("dev-before-undo-"));
  interface Imported {
    readonly version: number;
    readonly deployment: { readonly resources: readonly Values[] };
  }
  const imported = (): Imported => JSON.parse(readFileSync(at("imported.json"), "utf8")) as Imported;

  test.each(shapes)("only the two swapped resources of the export are changed (%s)", async (shape) => {
    write("export.json", state(before, undefined, shape));
    const sent = service.requests.length;
    expect(await undo()).toMatchObject({ code: 0, err: "" });
    expect(service.requests.slice(sent).filter(isWrite)).toEqual([]);
    const was = JSON.parse(readFileSync(at("export.json"), "utf8")) as Imported;
    const is = imported();
    expect({ ...is, deployment: { ...is.deployment, resources: [] } }).toEqual({
      ...was,
      deployment: { ...was.deployment, resources: [] },
    });
    const volumes = is.deployment.resources.filter(({ urn }) => urn === urnOf(shape, "Volume", "data"));
    expect(volumes.map(({ id, delete: leaves, outputs }) => [id, leaves, contextOf(outputs as Values)])).toEqual([
      [before, undefined, { stack: ours }],
      [now, true, { discard: true, stack: ours }],
    ]);
    expect(volumes.map(({ inputs }) => (inputs as Values)["secret"])).toEqual([sealed, sealed]);
    // Only the user can read the copy.
    const [copy = "", ...more] = copies();
    expect(more).toEqual([]);
    expect(readFileSync(at(copy), "utf8")).toBe(readFileSync(at("export.json"), "utf8"));
    expect(statSync(at(copy)).mode & 0o777).toBe(0o600);
  });

  const nothingChanged = (): void => {
    expect(existsSync(at("imported.json"))).toBe(false);
    expect(copies()).toEqual([]);
  };

  test.each<[change: string, later: () => string]>([
    ["another resource", () => state("shop/vol_other")],
    [
      "an interrupted operation",
      () => state().replace('"pending_operations":[]', '"pending_operations":[{"type":"creating"}]'),
    ],
  ])("a concurrent change by another run is not overwritten: %s", async (_, later) => {
    write("later.json", later());
    const { code, err } = await undo();
    expect([code, err]).toEqual([2, expect.stringContaining("the state of dev has changed since it was read")]);
    nothingChanged();
  });

  test("a refused import leaves no copy behind", async () => {
    write("refuses", "");
    const { code, err } = await undo();
    expect([code, err]).toEqual([2, expect.stringMatching(/currently locked.*\nNothing has changed\./)]);
    nothingChanged();
  });

  test("an original that no longer exists is not restored", async () => {
    write("export.json", state("shop/vol_gone"));
    const { code, err } = await undo();
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/^The Volume shop\/vol_gone is deleted or being deleted.*`pulumi refresh`/),
    ]);
    nothingChanged();
  });

  test("a service that does not answer is no proof of absence", async () => {
    const { code, err } = await undo(["--yes"], { MACHINES_TOKEN: "wrong" });
    expect([code, err]).toEqual([2, expect.stringContaining("401")]);
    nothingChanged();
  });

  describe("F59: where nothing proves that this stack owns what the next up deletes", () => {
    const elsewhere = { PULUMI_BACKEND_URL: "https://other.example.com" };
    const stacks = (...others: readonly string[]): void =>
      write("stacks.json", JSON.stringify([{ name: "dev", current: true }, ...others.map((name) => ({ name }))]));
    const held = (id: string, madeIn: string): string =>
      exportOf("plugin", [{ type: "Volume", name: "disk", id, outputs: { __context: { stack: madeIn } } }])
        .replaceAll(":dev:", ":live:")
        .replaceAll("::shop::", "::blog::");
    const refused = async (doubt: RegExp): Promise<void> => {
      const { code, err } = await undo();
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(
          new RegExp(
            `^(Not compared: .*\n)?Not undone: Volume data: nothing proves .*${doubt.source}.*name the resource`,
            "s",
          ),
        ),
      ]);
      nothingChanged();
      expect((await undo(["--dry-run"])).out).toMatch(doubt);
    };
    const named = async (): Promise<void> => {
      expect(await undo(["data", "--yes"])).toMatchObject({ code: 0 });
      expect(existsSync(at("imported.json"))).toBe(true);
    };

    test.each<[string, string, RegExp]>([
      ["a state from another backend", stateId(elsewhere), /its state is from another backend, where it may live on/],
      ["a state of an older version", "0123456789ab", /an older version created it/],
    ])("--yes does not cover %s, and the name does", async (_, madeIn, doubt) => {
      write("export.json", state(before, undefined, "plugin", madeIn));
      await refused(doubt);
      await named();
    });

    test("--yes does not cover a state that another stack of the backend has, too", async () => {
      stacks("organization/blog/live");
      write("organization-blog-live.json", held("shop/vol_other", ours));
      await refused(/stack organization\/blog\/live has the same state, copied or moved/);
      await named();
    });

    test("--yes does not cover what an unread stack may own", async () => {
      stacks("organization/blog/live");
      await refused(/stack organization\/blog\/live could not be read/);
      await named();
    });

    test("what another stack of the backend holds is refused, also by its name", async () => {
      stacks("organization/blog/live");
      for (const id of [before, now]) {
        write("organization-blog-live.json", held(id, stateId(elsewhere)));
        const { code, err } = await undo(["data", "--yes"]);
        expect([code, err]).toEqual([
          1,
          expect.stringContaining(`Volume ${id}: stack organization/blog/live holds it, too`),
        ]);
        nothingChanged();
      }
    });
  });

  test("an object of an explicit provider is looked up at that provider's endpoint", async () => {
    write("export.json", state(before, "there"));
    const { code, out, err } = await undo(["--dry-run"], {
      MACHINES_ENDPOINT: "http://127.0.0.1:9",
      MACHINES_TOKEN: "x",
    });
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain(`  keeps    ${before}`);
    expect(out + err).not.toContain(service.token);
    nothingChanged();
  });
});
