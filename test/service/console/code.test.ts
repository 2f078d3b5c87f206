// "Copy as code" in the console: every object as a program, as an import and as a request.
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { importableTypes } from "../../../cli/orphans/listing.ts";
import type * as machinesService from "../../../service/index.ts";
import { addToken } from "../../../service/store/tokens.ts";
import { commandHere } from "../../cli/command.ts";
import { makeApp, makeMachine, makeVolume, send } from "../../support/around.ts";
import { leaks } from "../../support/canaries.ts";
import { currentCertificate } from "../../support/certificates.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { makeOrganization } from "../../support/organizations.ts";
import { isWrite, startService, type TestService } from "../../support/startService.ts";
import { foreground, folder as dataFolder } from "../command.ts";

/** An answer of the route. */
interface Code {
  readonly typescript: string;
  readonly python: string;
  readonly go: string;
  readonly yaml: string;
  readonly settings: string;
  readonly import: string;
  readonly curl: string;
  readonly remarks: readonly string[];
}

const path = (type: string, id: string, whole?: boolean): string =>
  `/console/api/code?${new URLSearchParams({ type, id, ...(whole === undefined ? {} : { whole: String(whole) }) }).toString()}`;

const codeOf = (
  service: Pick<TestService, "url" | "token">,
  type: string,
  id: string,
  whole?: boolean,
): Promise<Code> => send<Code>(service, "GET", path(type, id, whole));

/** The status and the error of a refused request. */
async function refused(service: TestService, query: string, token = service.token): Promise<readonly [number, string]> {
  const answer = await fetch(`${service.url}/console/api/code?${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return [answer.status, ((await answer.json()) as { error: string }).error];
}

async function started(): Promise<TestService> {
  const service = await startService();
  afterThisTest(() => service.close());
  return service;
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "machines-code-"));
  afterThisTest(() => rmSync(made, { recursive: true }));
  return made;
}

/** Whether a program of this computer exists. A language may be missing; what is skipped is printed. */
function has(program: string): boolean {
  const found = spawnSync(program, ["--help"]).error === undefined;
  if (!found) console.warn(`Programs are not parsed: there is no ${program}.`);
  return found;
}

const image = "registry.example.com/shop:1";

describe("every object of an organization", () => {
  interface Copied {
    readonly type: string;
    readonly name: string;
    readonly id: string;
    readonly code: Code;
  }
  let copied: readonly Copied[];
  /** Those, and every App with all in it. */
  let codes: readonly Code[];
  let secrets: Readonly<Record<string, string>>;
  let requests: TestService["requests"];

  beforeAll(async () => {
    const service = await startService();
    const made = await makeOrganization(service, "copied", 80);
    await makeApp(service, "all");
    const metadata = { "pulumi-fleet": "crew", "pulumi-fleet-region": "ams", "pulumi-fleet-phase": "serving" };
    await makeMachine(service, "all", { name: "crew-ams-1", region: "ams", config: { image, metadata } });
    await send(service, "POST", "/v1/apps/all/secretkeys/SESSIONS/generate", { type: "hs256" });
    await send(service, "POST", "/v1/apps/all/ip_assignments", { type: "egress_pair", region: "fra" });
    const { fullchain, private_key } = currentCertificate({ hosts: ["*.example.com"] });
    const certificate = { hostname: "*.example.com", fullchain, private_key };
    await send(service, "POST", "/v1/apps/all/certificates/custom", certificate);
    await send(service, "POST", "/v1/apps/all/certificates/acme", { hostname: "*.example.com" });
    // The command of the user lists everything, with the ids that Pulumi takes.
    const out = mkdtempSync(join(tmpdir(), "machines-code-"));
    expect(await commandHere(service, ["import", "--snapshots", "--out", out])).toMatchObject({ code: 0 });
    const listed = JSON.parse(readFileSync(join(out, "import.json"), "utf8")) as {
      resources: { type: string; name: string; id: string }[];
    };
    rmSync(out, { recursive: true });
    service.requests.length = 0;
    const all: Copied[] = [];
    for (const { type: token, name, id } of listed.resources) {
      const type = token.replace("machines:index:", "");
      all.push({ type, name, id, code: await codeOf(service, type, id) });
    }
    copied = all;
    const apps = all.filter(({ type }) => type === "App");
    codes = [
      ...all.map(({ code }) => code),
      ...(await Promise.all(apps.map(({ id }) => codeOf(service, "App", id, true)))),
    ];
    requests = [...service.requests];
    secrets = Object.fromEntries([
      ...made.secrets.map((text, i) => [`secret ${i}`, text]),
      ["key", private_key.split("\n")[1] ?? ""],
      ["token", service.token],
    ]);
    await service.close();
  });

  test("every object of a type that can be imported is read without a change", () => {
    expect(new Set(copied.map(({ type }) => type))).toEqual(new Set(importableTypes.keys()));
    expect(requests.filter(({ operation }) => operation !== undefined).filter(isWrite)).toEqual([]);
  });

  test("every object of an organization has the command that imports it under the name of the program", () => {
    for (const { type, id, code } of copied) {
      const words = execFileSync("sh", ["-c", `pulumi() { printf '%s\\n' "$@"; }; ${code.import}`], {
        encoding: "utf8",
      });
      const [verb, token, name = "", own, ...options] = words.trimEnd().split("\n");
      expect([verb, token, own, options]).toEqual(["import", `machines:index:${type}`, id, ["--generate-code=false"]]);
      for (const program of [code.typescript, code.python, code.go]) expect(program).toContain(JSON.stringify(name));
      const { resources } = parse(code.yaml) as { resources: Record<string, { type: string; name: string }> };
      expect(Object.values(resources).map((one) => [one.type, one.name])).toEqual([[`machines:${type}`, name]]);
      expect(code.typescript).toContain(`new machines.${type}(`);
      expect(code.python).toContain(`machines.${type}(`);
      expect(code.go).toContain(`machines.New${type}(`);
    }
  });

  test("every object of an organization is TypeScript without an error", () => {
    for (const { typescript } of codes) {
      const { diagnostics = [] } = ts.transpileModule(typescript, { reportDiagnostics: true });
      expect(
        diagnostics.map(({ messageText }) => messageText),
        typescript,
      ).toEqual([]);
    }
  });

  test.skipIf(!has("python3"))("every object of an organization is Python without an error", () => {
    const check = "import ast, json, sys\nfor text in json.load(sys.stdin): ast.parse(text)";
    execFileSync("python3", ["-c", check], { input: JSON.stringify(codes.map(({ python }) => python)) });
  });

  test.skipIf(!has("gofmt"))("every object of an organization is Go without an error, and indented as Go does", () => {
    const dir = folder();
    for (const [i, { go }] of codes.entries()) writeFileSync(join(dir, `main${i}.go`), go);
    // It fails for a program that Go cannot read.
    execFileSync("gofmt", ["-w", dir]);
    const indents = (text: string): readonly string[] => text.split("\n").map((line) => /^\t*/.exec(line)?.[0] ?? "");
    for (const [i, { go }] of codes.entries())
      expect(indents(go), go).toEqual(indents(readFileSync(join(dir, `main${i}.go`), "utf8")));
  });

  test("every object of an organization has no secret, and sets those that its program needs", () => {
    const readable = codes.map((code) => ({ what: code.curl, text: JSON.stringify(code) }));
    expect(leaks(secrets, readable)).toEqual([]);
    for (const code of codes) {
      const needed = [...code.typescript.matchAll(/requireSecret\(\s*"(\w+)"/g)].map(([, key]) => key ?? "");
      const set = [...code.settings.matchAll(/^pulumi config set --secret (\w+)$/gm)].map(([, key]) => key ?? "");
      expect(set.sort()).toEqual([...new Set(needed)].sort());
    }
    expect(codes.some(({ typescript }) => typescript.includes("requireSecret"))).toBe(true);
  });
});

describe("one object", () => {
  test("one object is read alone, however many Machines and volumes its App has", async () => {
    const service = await started();
    await makeApp(service, "shop");
    const volume = await makeVolume(service, "shop", "ams");
    const config = { image, mounts: [{ volume, path: "/data" }] };
    const id = await makeMachine(service, "shop", { name: "web", region: "ams", config });
    service.requests.length = 0;
    const { typescript } = await codeOf(service, "Machine", `shop/${id}`);
    await codeOf(service, "Volume", `shop/${volume}`);
    const operations = new Set(service.requests.flatMap(({ operation }) => operation ?? []));
    expect([...operations].sort()).toEqual(["machines.get", "volumes.get"]);
    expect(typescript).toBe(`import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines-plugin";

const config = new pulumi.Config();
const shopImage = config.get("shopImage") ?? "${image}";

// App shop
new machines.Machine("web", {
  app: "shop",
  name: "web",
  region: "ams",
  config: {
    image: shopImage,
    mounts: [{ volume: "${volume}", path: "/data" }],
  },
});
`);
  });

  test("one object that a fleet has is shown as the fleet", async () => {
    const service = await started();
    await makeApp(service, "shop");
    const metadata = { "pulumi-fleet": "crew", "pulumi-fleet-region": "ams", "pulumi-fleet-phase": "serving" };
    const volume = await makeVolume(service, "shop", "ams");
    const config = { image, metadata, mounts: [{ volume, path: "/data" }] };
    const id = await makeMachine(service, "shop", { name: "crew-ams-1", region: "ams", config });
    const fleet = await codeOf(service, "Fleet", "shop/crew");
    expect(fleet.import).toBe("pulumi import machines:index:Fleet crew shop/crew --generate-code=false");
    for (const [type, own] of [
      ["Machine", `shop/${id}`],
      ["Volume", `shop/${volume}`],
    ] as const) {
      const code = await codeOf(service, type, own);
      expect(code.remarks).toEqual([
        `${type} ${own} belongs to Fleet shop/crew. Programs declare only the fleet, so this is its code.`,
      ]);
      expect([code.typescript, code.import]).toEqual([fleet.typescript, fleet.import]);
      expect(code.curl).toContain(own.split("/")[1]);
    }
  });

  test("one object that Pulumi created is shown with a warning", async () => {
    const service = await started();
    await makeApp(service, "shop");
    const config = { image, metadata: { "pulumi-owner": "0123456789abcdef" } };
    const id = await makeMachine(service, "shop", { name: "web", region: "ams", config });
    const { remarks, typescript } = await codeOf(service, "Machine", `shop/${id}`);
    expect(remarks).toEqual([
      `Machine shop/${id} was created for a resource of another stack. Two stacks must not own one object.`,
    ]);
    expect(typescript).not.toContain("pulumi-owner");
  });

  test("F57 an object with texts that would break out of a program is data in every language", async () => {
    const service = await started();
    await makeApp(service, "shop");
    const env = { A: "x\u2028b: ${pulumi.cwd}\u0085\ufeff\u202e", "${A}": "1", "fn::readFile": "./secret" };
    const id = await makeMachine(service, "shop", { name: "web", region: "ams", config: { image, env } });
    const code = await codeOf(service, "Machine", `shop/${id}`);
    for (const program of [code.typescript, code.python, code.go, code.yaml]) {
      expect(program).not.toMatch(/[\u2028\u0085\ufeff\u202e]/);
      expect(program).toContain("\\u2028");
    }
    const { resources } = parse(code.yaml) as { resources: Record<string, { properties: unknown; options: unknown }> };
    expect(Object.values(resources)).toMatchObject([
      {
        // A dollar before another one stands for one.
        properties: { config: { env: { A: env.A.replace("$", "$$$$"), "$${A}": "1" } } },
        options: { ignoreChanges: ['config.env["fn::readFile"]'] },
      },
    ]);
    expect(code.yaml).toContain("Pulumi's YAML takes this key for the name of a function");
    expect(code.python).toContain('"fn::readFile": "./secret"');
  });

  test("one object has a command that requests it, with a token of the shell", async () => {
    const service = await started();
    await makeApp(service, "shop");
    const hostname = "*.example.com";
    await send(service, "POST", "/v1/apps/shop/certificates/acme", { hostname });
    const { curl } = await codeOf(service, "AcmeCertificate", `shop/${hostname}`);
    expect(curl).toBe(
      `curl '${service.url}/v1/apps/shop/certificates/%2A.example.com' \\\n  -H "Authorization: Bearer $TOKEN"`,
    );
    // The service is in this process, which must not wait for the command.
    const env = { ...process.env, TOKEN: service.token };
    const { stdout } = await promisify(execFile)("sh", ["-c", curl], { env });
    expect(JSON.parse(stdout)).toMatchObject({ hostname });
  });
});

describe("an App with all in it", () => {
  test("an App with all in it is the program of the import command, and what is not in it is listed", async () => {
    const service = await started();
    await makeApp(service, "shop");
    await makeApp(service, "blog");
    await send(service, "POST", "/v1/apps/shop/secrets/TOKEN", { value: "hush-hush" });
    for (const region of ["ams", "fra"]) {
      const volume = await makeVolume(service, "shop", region);
      const config = { image, mounts: [{ volume, path: "/data" }] };
      await makeMachine(service, "shop", { name: `web-${region}`, region, config });
    }
    const code = await codeOf(service, "App", "shop", true);
    const dir = folder();
    await commandHere(service, ["import", "--app", "shop", "--out", dir]);
    const withoutRemarks = (text: string): string => text.split("// Not in this program:")[0] ?? "";
    expect(withoutRemarks(code.typescript)).toBe(withoutRemarks(readFileSync(join(dir, "index.ts"), "utf8")));
    expect(code.remarks).toEqual([
      "Postgres clusters: they belong to the organization, and not to the App.",
      "Snapshots of volumes: the service creates most of them.",
      "Deploy tokens: the service does not list them.",
    ]);
    // The import is one command to paste: it writes the same file.
    const written = folder();
    execFileSync("sh", ["-c", `pulumi() { printf '%s\\n' "$@" > words; }; ${code.import}`], { cwd: written });
    expect(readFileSync(join(written, "words"), "utf8")).toBe("import\n--file\nimport.json\n--generate-code=false\n");
    expect(readFileSync(join(written, "import.json"), "utf8")).toBe(readFileSync(join(dir, "import.json"), "utf8"));
    expect(JSON.stringify(code)).not.toContain("hush-hush");
  });

  test("an App with more than 500 Machines and volumes is left to the command, and its fleets are too", async () => {
    const service = await started();
    await makeApp(service, "large");
    const metadata = { "pulumi-fleet": "crew", "pulumi-fleet-region": "ams", "pulumi-fleet-phase": "serving" };
    await makeMachine(service, "large", { name: "crew-ams-1", region: "ams", config: { image, metadata } });
    for (let begun = 0; begun < 500; begun += 50)
      await Promise.all(Array.from({ length: 50 }, () => makeVolume(service, "large", "ams")));
    service.requests.length = 0;
    const none = { typescript: null, python: null, go: null, yaml: null };
    expect(await codeOf(service, "App", "large", true)).toMatchObject({
      ...none,
      import: "npx pulumi-machines import --app large --out large",
      remarks: [
        "App large has more than 500 Machines and volumes, so this page writes no program. Run: npx pulumi-machines import --app large",
      ],
    });
    expect(await codeOf(service, "Fleet", "large/crew")).toMatchObject({
      ...none,
      import: "pulumi import machines:index:Fleet crew large/crew --generate-code=false",
    });
    expect(new Set(service.requests.flatMap(({ operation }) => operation ?? []))).toEqual(new Set(["apps.get"]));
    expect(await codeOf(service, "App", "large")).toMatchObject({ remarks: [] });
  });
});

describe("a refused request", () => {
  test("a request of another organization, or without a token, learns nothing", async () => {
    const service = await started();
    await makeApp(service, "shop");
    const id = await makeMachine(service, "shop", { name: "web", region: "ams", config: { image } });
    addToken(service.service.context.store, "stranger", { slug: "strangers", expiresAt: null }, 0);
    for (const query of [`type=Machine&id=shop/${id}`, "type=App&id=shop", "type=App&id=shop&whole=true"]) {
      expect(await refused(service, query, "stranger")).toEqual([403, "unauthorized"]);
      expect(await refused(service, query, "nonsense")).toEqual([401, "Authenticate: token validation error"]);
    }
  });

  test.each([
    ["type=App&id=none", 404, "not_found: there is no App none"],
    ["type=App&id=none&whole=true", 404, "app not found"],
    ["type=Machine&id=shop/3d8d413b29d089", 404, "not_found: machine not found"],
    ["type=Fleet&id=shop/none", 404, "not_found: there is no Fleet shop/none"],
    ["type=Machine&id=shop", 400, 'invalid id, got "shop", must have the form <app>/<machineId>'],
    ["type=Machine&id=shop/..", 400, 'invalid id, got "shop/..", must have the form <app>/<machineId>'],
    ["type=App", 400, "invalid id, got nothing, must be of type string"],
    ["type=App&id=shop&whole=yes", 400, 'invalid whole, got "yes", allowed are "true", "false"'],
    ["type=Volume&id=shop/vol_1&whole=true", 400, 'invalid whole, got "true", must be "false" for type "Volume"'],
  ])("a request for %s is refused: %i %s", async (query, status, error) => {
    const service = await started();
    await makeApp(service, "shop");
    expect(await refused(service, query)).toEqual([status, error]);
  });

  test("whose reads fail says so, and one failure alone is not noticed", async () => {
    const service = await started();
    await makeApp(service, "shop");
    const fault = { operation: "apps.get", status: 500 } as const;
    service.fail(fault);
    expect((await codeOf(service, "App", "shop")).typescript).toContain("new machines.App(");
    service.fail({ ...fault, times: "always" });
    expect(await refused(service, "type=App&id=shop")).toEqual([503, "App shop could not be read; try again"]);
  });

  test("a refused request for an unknown type names those that there are", async () => {
    const service = await started();
    const names = [...importableTypes.keys()].sort().map((name) => JSON.stringify(name));
    expect(await refused(service, "type=Maschine&id=shop")).toEqual([
      400,
      `invalid type, got "Maschine", allowed are ${names.join(", ")}; did you mean "Machine"?`,
    ]);
    const [status] = await refused(service, "type=__proto__&id=shop");
    expect(status).toBe(400);
  });
});

describe("the command machines-service", () => {
  test("the command machines-service shows its own command for the token to its user on this computer", async () => {
    const data = dataFolder();
    const service = await foreground(data);
    await send(service, "POST", "/v1/apps", { name: "shop", org_slug: "personal" });
    const { curl, typescript } = await codeOf(service, "App", "shop");
    expect(typescript).toContain('new machines.App("shop", { name: "shop" })');
    const [, shown = ""] = /Bearer \$\((.*)\)"$/.exec(curl) ?? [];
    expect(shown).toMatch(/ token --data /);
    expect(shown).toContain(data);
    expect(curl).not.toContain(service.token);
  });

  test("the command machines-service has the code when it is built, and says so when its package is incomplete", async () => {
    const built = join(__dirname, "../../../service/dist");
    // Below a folder where its packages are found.
    const copies = join(__dirname, "../../../node_modules/.cache/code");
    mkdirSync(copies, { recursive: true });
    const copy = mkdtempSync(join(copies, "service-"));
    afterThisTest(() => rmSync(copy, { recursive: true }));
    for (const part of ["api", "service"]) cpSync(join(built, part), join(copy, part), { recursive: true });
    const answers = [];
    for (const dist of [built, copy]) {
      const main = join(dist, "service/index.js");
      const { createService } = createRequire(main)(main) as typeof machinesService;
      const { app, token, close } = createService({ delays: "none" });
      const headers = { authorization: `Bearer ${token}`, host: "localhost" };
      await app.inject({ method: "POST", url: "/v1/apps", headers, payload: { name: "shop", org_slug: "personal" } });
      const { statusCode, body } = await app.inject({ url: path("App", "shop"), headers });
      answers.push([statusCode, JSON.parse(body) as unknown]);
      await close();
    }
    expect(answers).toEqual([
      [200, expect.objectContaining({ import: "pulumi import machines:index:App shop shop --generate-code=false" })],
      [
        500,
        {
          error:
            "dist/console/code.js is missing: install the package machines-service again, or run `npm run build` in a clone",
        },
      ],
    ]);
  });
});
