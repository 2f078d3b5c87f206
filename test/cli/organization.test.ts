// `pulumi-machines import` without the Pulumi CLI: what it writes, refuses and says.
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { makeApp, makeBackup, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { currentCertificate } from "../support/certificates.ts";
import { makeOrganization } from "../support/organizations.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { answeringCli } from "./answeringCli.ts";
import { commandHere } from "./command.ts";
import { exportOf, sealed, urnOf, type Exported } from "./exports.ts";
import { inStack, StackFiles } from "./stackFiles.ts";

let service: TestService;
let folder: string;
beforeEach(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), "machines-organization-"));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

/** Runs the command for the folder. */
const write = (...args: readonly string[]) => commandHere(service, ["import", "--out", folder, ...args]);
const file = (name: string): string => readFileSync(join(folder, name), "utf8");
/** The example of docs/import.md. */
const documented = (): string | undefined =>
  readFileSync(join(__dirname, "../../docs/import.md"), "utf8")
    .split("```ts\n")
    .map((part) => part.split("```")[0])
    .find((code) => code?.includes("// App my-shop"));
/** The program without what frames it. */
const program = (name = "index.ts"): string => file(name).split("\n\n").slice(1, -1).join("\n\n");
const set = (app: string, name: string, value: string) =>
  send(service, "POST", `/v1/apps/${app}/secrets/${name}`, { value });
const image = "registry.example.com/shop:1";

describe("the program", () => {
  test("the program reads as if a person had written it: references, loops, configuration, and no defaults", async () => {
    await makeApp(service, "my-shop");
    await set("my-shop", "DATABASE_URL", "postgres://hush");
    for (const region of ["ams", "fra"]) {
      const volume = await makeVolume(service, "my-shop", region);
      await makeMachine(service, "my-shop", {
        name: `web-${region}`,
        region,
        config: { image, guest: { cpu_kind: "shared", cpus: 1, memory_mb: 512 }, mounts: [{ volume, path: "/data" }] },
      });
    }
    expect(await write()).toMatchObject({ code: 0, err: "" });
    expect(`${program()}\n`).toBe(documented());
    const { resources } = JSON.parse(file("import.json")) as { resources: { name: string }[] };
    expect(resources.map(({ name }) => name).sort()).toEqual([
      "DATABASE_URL",
      "my-shop",
      "web-ams",
      "web-ams-data",
      "web-fra",
      "web-fra-data",
    ]);
  });

  test("declares every kind of object, and says which it cannot", async () => {
    await makeApp(service, "shop");
    const volume = await makeVolume(service, "shop", "ams");
    await send(service, "POST", `/v1/apps/shop/volumes/${volume}/snapshots`);
    const hostname = "www.example.com";
    await send(service, "POST", "/v1/apps/shop/certificates/acme", { hostname });
    await send(service, "POST", "/v1/apps/shop/certificates/custom", {
      hostname,
      ...currentCertificate({ hosts: [hostname] }),
    });
    const cluster = await makeCluster(service, "main");
    await makeBackup(service, cluster);
    const { out } = await write("--snapshots");
    for (const type of ["VolumeSnapshot", "PostgresBackup", "AcmeCertificate", "CustomCertificate"])
      expect(file("index.ts")).toContain(`new machines.${type}(`);
    expect(file("index.ts")).toContain('{ ignoreChanges: ["fullchain", "privateKey"] }');
    expect(out).toContain("\nNot in the program:\n  Deploy tokens: the service does not list them.\n");
    expect(file("index.ts")).toContain(
      "\n// Not in this program:\n// - Deploy tokens: the service does not list them.\n",
    );
  });

  test.each(["typescript", "python", "go", "yaml"])(
    "a program in %s has no secret of a generated organization",
    async (language) => {
      const { secrets } = await makeOrganization(service, "kept", 60);
      const before = service.requests.length;
      const { code, out, err } = await write("--language", language);
      expect(code).toBe(0);
      expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
      const written = readdirSync(folder).map(file).join("\n");
      for (const secret of [...secrets, service.token]) expect(written + out + err).not.toContain(secret);
    },
  );

  test.each(["one", "two", "three"])(
    "a program in TypeScript is formatted, and one in YAML has the names of the imports (%s)",
    async (seed) => {
      await makeOrganization(service, seed, 60);
      await write();
      writeFileSync(join(folder, ".oxfmtrc.json"), JSON.stringify({ printWidth: 80 }));
      const before = file("index.ts");
      const oxfmt = join(process.cwd(), "node_modules/.bin/oxfmt");
      execFileSync(oxfmt, ["-c", ".oxfmtrc.json", "index.ts"], { cwd: folder, stdio: "pipe" });
      expect(before).toBe(file("index.ts"));
      const yaml = join(folder, "yaml");
      await write("--language", "yaml", "--out", yaml);
      const text = readFileSync(join(yaml, "Main.yaml"), "utf8");
      // Pulumi refuses aliases, reads a dollar before a brace as a reference, and two dollars as one.
      expect(text).not.toMatch(/[&*]a\d/);
      expect(text).not.toMatch(/(?<!\$)\$\{HOME|[^$]\$\$ /);
      const { resources } = parse(text) as { resources: object };
      const { resources: imports } = JSON.parse(file("import.json")) as { resources: { name: string }[] };
      expect(
        Object.values(resources)
          .map(({ name }: { name: string }) => name)
          .sort(),
      ).toEqual(imports.map(({ name }) => name).sort());
    },
  );

  test("a password in an environment becomes configuration, and other values stay", async () => {
    await makeApp(service, "shop");
    const env = {
      PORT: "80",
      DB_PASSWORD: "correct-horse",
      URL: "postgres://me:hush-hush@db/x",
      "A.KEY": "sk_live_0123456789abcdef0123",
    };
    await makeMachine(service, "shop", { name: "web", region: "ams", config: { image, env } });
    const { out } = await write();
    expect(file("index.ts")).toContain('PORT: "80"');
    for (const value of ["correct-horse", "hush-hush", "sk_live"]) expect(file("index.ts") + out).not.toContain(value);
    expect(file("index.ts")).toContain('"config.env.DB_PASSWORD"');
    expect(file("index.ts")).toContain('config.env[\\"A.KEY\\"]'.replaceAll("\\", ""));
  });
});

describe("F57 what others wrote", () => {
  const evil = "x\u2028  y: ${fn}\u0085z\u202e\u007f\u009b\ufeff\u0000";

  test.each(["typescript", "python", "go", "yaml"])(
    "what others wrote is data in a program in %s",
    async (language) => {
      await makeApp(service, "shop");
      const config = { image, env: { "A${pulumi.cwd}": evil, "fn::readFile": "./secret" }, metadata: { [evil]: "1" } };
      await makeMachine(service, "shop", { name: "web", region: "ams", config });
      const state = {
        version: 4,
        resources: [
          ...["app", "machine", "volume"].map((kind) => ({
            ...{ mode: "managed", type: `fly_${kind}`, name: `evil\n\u2028resources: {}${kind}` },
            instances: [{ attributes: kind === "app" ? { name: "shop" } : {} }],
          })),
        ],
      };
      writeFileSync(join(folder, "state.json"), JSON.stringify(state));
      for (const more of [[], ["--terraform", join(folder, "state.json"), "--out", join(folder, "moved")]]) {
        const { code, out } = await write("--language", language, ...more);
        expect(code).toBe(0);
        const names = { typescript: "index.ts", python: "__main__.py", go: "main.go", yaml: "Main.yaml" };
        const text = file(join(more.length > 0 ? "moved" : "", names[language as keyof typeof names]));
        expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202e\ufeff]/);
        for (const line of out.split("\n")) expect(line).not.toMatch(/^resources/);
      }
    },
  );

  test("what others wrote is in no program where YAML would call a function, and the Machine keeps it", async () => {
    await makeApp(service, "shop");
    const config = { image, env: { "fn::readFile": "./secret" } };
    const machine = await makeMachine(service, "shop", { name: "web", region: "ams", config });
    const { out } = await write("--language", "yaml");
    const { resources } = parse(file("Main.yaml")) as { resources: { web: { options: unknown; properties: unknown } } };
    expect(resources.web).toMatchObject({
      properties: { config: { env: {} } },
      options: { ignoreChanges: ['config.env["fn::readFile"]'] },
    });
    expect(out).toContain(
      `Machine shop/${machine}: config.env["fn::readFile"] is left out, because Pulumi's YAML takes this key for the name of a function. The program ignores changes of config.env["fn::readFile"].`,
    );
  });
});

describe("files", () => {
  test("a new project has what it needs, and a second run writes nothing", async () => {
    await makeApp(service, "shop");
    const { out } = await write();
    expect(out).toContain("Written: index.ts, import.json, tsconfig.json, package.json, Pulumi.yaml");
    expect(out).toContain(`Next:
  npm install
  pulumi stack init dev
  pulumi config set machines:endpoint ${service.url}
  pulumi config set --secret machines:token
  pulumi import --file import.json --generate-code=false
  pulumi preview
`);
    rmSync(join(folder, "Pulumi.yaml"));
    expect((await write()).out).toContain("Written: Pulumi.yaml");
    rmSync(join(folder, "Pulumi.yaml"));
    // A run that was killed while it wrote.
    rmSync(join(folder, "package.json"));
    writeFileSync(join(folder, "package.json.draft"), "{");
    expect((await write()).out).toContain("Written: package.json, Pulumi.yaml");
    expect(readdirSync(folder).filter((name) => name.endsWith(".draft"))).toEqual([]);
  });

  test("a file of the user's is overwritten with --force alone", async () => {
    await makeApp(service, "shop");
    writeFileSync(join(folder, "index.ts"), "mine");
    const refused = await write();
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toContain(
      `index.ts in ${folder} would be overwritten: name another folder with --out, or add --force`,
    );
    expect(readdirSync(folder)).toEqual(["index.ts"]);
    expect(await write("--force")).toMatchObject({ code: 0 });
    expect(file("index.ts")).toContain("machines.App");
  });
});

describe("a stack that holds some of it", () => {
  test("a stack that holds some of it keeps its names, is not imported again, and what has no place in the program is listed", async () => {
    await makeApp(service, "shop");
    await set("shop", "TOKEN", "hush");
    const id = (name: string) => makeMachine(service, "shop", { name, region: "ams", config: { image } });
    const [web, worker] = [await id("web"), await id("worker")];
    await id("cron");
    const resources: Exported[] = [
      { type: "App", name: "the-shop", id: "shop", inputs: { name: "shop", forceDestroy: true } },
      { type: "Machine", name: "site", id: `shop/${web}` },
      { type: "Machine", name: "inside", id: `shop/${worker}`, within: "tier" },
      { type: "AppSecrets", name: "all", id: "shop", inputs: { values: sealed } },
    ];
    const asked = { "stack export": JSON.parse(exportOf("plugin", resources)) as unknown };
    writeFileSync(join(folder, "stacks.json"), JSON.stringify({ dev: asked }));
    writeFileSync(join(folder, "pulumi"), answeringCli);
    chmodSync(join(folder, "pulumi"), 0o755);
    writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
    const PATH = `${folder}${delimiter}${process.env["PATH"] ?? ""}`;
    const { code, out, err } = await commandHere(service, ["import", "--out", folder, "--stack", "dev"], {
      env: { PATH },
    });
    expect([code, err]).toEqual([0, ""]);
    expect(file("index.ts")).toContain('new machines.App("the-shop", {\n  name: "shop",\n  forceDestroy: true,\n})');
    expect(file("index.ts")).toMatch(/label: "site".*|new machines.Machine\("site"/);
    expect(JSON.parse(file("import.json"))).toMatchObject({ resources: [{ name: "cron" }] });
    const remarks = out.slice(out.indexOf("Not in the program:"));
    expect(remarks).toContain(
      `Machine shop/${worker}: ${urnOf("plugin", "Machine", "inside", "tier")} of a component has it.`,
    );
    expect(remarks).toContain(`Secret shop/TOKEN: perhaps ${urnOf("plugin", "AppSecrets", "all")} sets it.`);
    expect(remarks).toContain(
      `AppSecrets ${urnOf("plugin", "AppSecrets", "all")} is in the state. The program does not declare it`,
    );
  });

  test("the stack is the one that PULUMI_OPTION_STACK names, also if none is selected", async () => {
    await makeApp(service, "shop");
    const files = new StackFiles(service);
    try {
      files.write("stacks.json", JSON.stringify([{ name: "dev", current: false }]));
      files.write("dev.json", exportOf("plugin", [{ type: "App", name: "the-shop", id: "shop" }]));
      files.write("Pulumi.yaml", "name: shop\nruntime: nodejs\n");
      expect((await files.run(["import"])).err).toContain(
        "has nothing that could be imported. For example, App shop: stack dev of this project holds it.",
      );
      const { out } = await files.run(["import"], { PULUMI_OPTION_STACK: "dev" });
      expect(out).toContain("The stack holds all of them.");
    } finally {
      files.remove();
    }
  });

  test("what another stack holds is left out, and what nobody holds is imported", async () => {
    for (const name of ["shop-prod", "shop-dev"]) await makeApp(service, name);
    const disk = `shop-prod/${await makeVolume(service, "shop-prod", "ams")}`;
    const [free, own] = [await makeVolume(service, "shop-prod", "ams"), await makeVolume(service, "shop-dev", "ams")];
    await set("shop-prod", "TOKEN", "hush");
    const files = new StackFiles(service, "prod", "organization/blog/live");
    try {
      const both: Exported = { type: "Volume", name: "own", id: `shop-dev/${own}` };
      files.write("Pulumi.yaml", "name: shop\nruntime: nodejs\n");
      files.write("dev.json", exportOf("plugin", [both]));
      const theirs: Exported[] = [
        { type: "App", name: "shop", id: "shop-prod" },
        { type: "Volume", name: "data", id: disk },
        { type: "AppSecrets", name: "all", id: "shop-prod", inputs: { values: sealed } },
        both,
      ];
      files.write("prod.json", inStack("prod", theirs));
      files.write("refuses-organization-blog-live", "");
      const { code, out, err } = await files.run(["import"]);
      expect([code, err]).toEqual([0, ""]);
      const imported = JSON.parse(readFileSync(join(files.folder, "import.json"), "utf8")) as {
        resources: { id: string }[];
      };
      expect(imported.resources.map(({ id }) => id)).toEqual(["shop-dev", `shop-prod/${free}`]);
      const text = readFileSync(join(files.folder, "index.ts"), "utf8");
      expect(text).toMatch(/machines\.Volume\("own"/);
      expect(text.match(/app: "shop-prod"/g)).toHaveLength(1);
      const holds = "stack prod of this project holds it. Two stacks must not own one object.";
      expect(out.slice(out.indexOf("Not in the program:"))).toContain(
        `  App shop-prod: ${holds}\n  Secret shop-prod/TOKEN: perhaps urn:pulumi:prod::shop::machines:index:AppSecrets::all sets it.\n  Volume ${disk}: ${holds}\n`,
      );
      expect(out.slice(out.indexOf("Look at these before the import:"))).toContain(
        "Not compared: stack organization/blog/live, whose objects cannot be distinguished: ",
      );
    } finally {
      files.remove();
    }
  });

  test("what another stack holds at another endpoint is imported with a warning, as it may be another service", async () => {
    await makeApp(service, "shop");
    const shop: Exported = { type: "App", name: "shop", id: "shop" };
    // A stack that only reads the App does not own it.
    const files = new StackFiles(service, "prod", "organization/blog/live");
    try {
      files.write("Pulumi.yaml", "name: shop\nruntime: nodejs\n");
      files.write("prod.json", inStack("prod", [shop]));
      files.write("organization-blog-live.json", inStack("live", [{ ...shop, external: true }], "blog"));
      files.write("config-prod.json", JSON.stringify({ "machines:endpoint": { value: "https://prod.example.com" } }));
      const { code, out } = await files.run(["import"]);
      expect(code).toBe(0);
      expect(out).not.toContain("organization/blog/live");
      expect(out).toContain("1 of them are in no state yet.");
      expect(out).toContain(
        "Look at these before the import:\n  App shop is held by stack prod of this project, whose endpoint is https://prod.example.com. If that is the same service, do not import it: two stacks must not own one object.\n",
      );
      // One that has it here, too.
      files.stacks("prod", "staging");
      files.write("staging.json", inStack("staging", [shop]));
      expect((await files.run(["import"])).err).toContain("App shop: stack staging of this project holds it.");
    } finally {
      files.remove();
    }
  });

  test("a program in another language is not mixed with this one", async () => {
    writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime:\n  name: python\n");
    writeFileSync(join(folder, "stacks.json"), JSON.stringify({}));
    writeFileSync(join(folder, "pulumi"), answeringCli);
    chmodSync(join(folder, "pulumi"), 0o755);
    const PATH = `${folder}${delimiter}${process.env["PATH"] ?? ""}`;
    const { code, err } = await commandHere(service, ["import", "--out", folder, "--language", "go"], {
      env: { PATH },
    });
    expect(code).toBe(2);
    expect(err).toContain(`--language go: the project in ${folder} is in python; name another folder with --out`);
  });
});

describe("options", () => {
  test.each([
    [["--language", "pyton"], "--language pyton: must be typescript, python, go or yaml; did you mean python?"],
    [["--binding", "native"], "--binding native: must be plugin or dynamic"],
    [["--binding", "dynamic", "--language", "go"], "--binding dynamic: programs in go use the plugin"],
    [["--stack", "dev"], "--stack dev: there is no Pulumi project in "],
    [["--app", "none"], "there is no App none at "],
    [["--org", "elsewhere"], "--org elsewhere: "],
    [[], "has nothing that could be imported"],
  ])("invalid options are an error: %j: %s", async (args, message) => {
    const { code, out, err } = await write(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
  });

  test("--app limits the program to one App, and says so", async () => {
    await makeApp(service, "shop");
    await makeApp(service, "blog");
    await makeCluster(service, "main");
    await write("--app", "shop");
    expect(file("index.ts")).toContain('new machines.App("shop"');
    expect(file("index.ts")).not.toMatch(/machines\.App\("blog"|PostgresCluster\(/);
    expect(file("index.ts")).toContain("--app limits the program to the Apps that it names");
  });

  test("dynamic programs import the other package", async () => {
    await makeApp(service, "shop");
    const { out } = await write("--binding", "dynamic");
    expect(file("index.ts")).toContain('from "pulumi-machines";');
    expect(out).toContain("\n  pulumi up\n  pulumi preview\n");
  });
});
