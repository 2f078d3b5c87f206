// `pulumi-machines convert`, and the converter that `pulumi convert` starts: what they write, refuse and say.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import converterGrpc from "@pulumi/pulumi/proto/converter_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/converter_pb.js";
import hcl from "@pulumi/pulumi/proto/codegen/hcl_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { convertProgram, startConverter } from "../../../cli/conversion/converter.ts";
import { commandHere } from "../command.ts";

const files = join(__dirname, "files");
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "machines-conversion-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const nowhere = { url: "http://127.0.0.1:1", token: "" };
const run = (...args: readonly string[]) => commandHere(nowhere, ["convert", ...args], { cwd: folder });

describe("the command", () => {
  test("the command writes a project in the language, and says what to do next", async () => {
    writeFileSync(join(folder, "fly.toml"), readFileSync(join(files, "secrets-in-env.toml")));
    const { code, out, err } = await run("--language", "python", "--out", "infra");
    expect([code, err]).toEqual([0, ""]);
    expect(readdirSync(join(folder, "infra")).sort()).toEqual(["Pulumi.yaml", "__main__.py", "requirements.txt"]);
    expect(out).toContain("  pulumi config set image registry.example.com/app:1\n");
    expect(out).toContain("  pulumi config set --secret databaseUrl\n");
    expect(out).toContain("  env.DATABASE_URL, as databaseUrl\n");
    expect(out).toContain("\nSecrets, addresses and certificates are not in the file: declare");
  });

  test("the command writes in the language of the project, and over no other program", async () => {
    writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: yaml\n");
    const file = join(files, "node-minimal.toml");
    expect(await run(file)).toMatchObject({ code: 0 });
    expect(readdirSync(folder).sort()).toEqual(["Main.yaml", "Pulumi.yaml"]);
    expect((await run(file)).out).toContain("Every file is up to date.");
    expect(await run(file, "--regions", "fra")).toMatchObject({ code: 2 });
    expect(await run(file, "--regions", "fra", "--force")).toMatchObject({ code: 0 });
    expect(await run(file, "--language", "go")).toMatchObject({
      code: 2,
      err: expect.stringContaining("is in yaml") as string,
    });
    expect((await run(file, "--binding", "dynamic")).err).toContain("programs in yaml use the plugin");
  });

  const withFile = (path: string): string =>
    `app = "shop"\nprimary_region = "ams"\n[[files]]\nguest_path = "/etc/own"\nlocal_path = ${JSON.stringify(path)}\n`;

  test.each([
    ["../outside.txt", "a path that leads out of the folder"],
    ["../app/../outside.txt", "a path that goes around"],
    ["link.txt", "a symbolic link to a file"],
    ["linked/outside.txt", "a symbolic link to a folder"],
    ["../nowhere/missing.txt", "a file that does not exist"],
  ])("F57 a deployment file cannot put another folder's file into a program: %s, %s", async (path) => {
    mkdirSync(join(folder, "app"));
    writeFileSync(join(folder, "outside.txt"), "of the user alone");
    symlinkSync("../outside.txt", join(folder, "app/link.txt"));
    symlinkSync("..", join(folder, "app/linked"));
    writeFileSync(join(folder, "app/fly.toml"), withFile(path));
    const refused = await run("app/fly.toml", "--out", "infra");
    expect(refused).toMatchObject({
      code: 2,
      err: `pulumi-machines: app/fly.toml:5: files[0].local_path: ${path} is not in the folder of the file; to put it into the program, add --allow-file ${path}\n`,
    });
    expect(existsSync(join(folder, "infra"))).toBe(false);
    // The user may name it.
    const allowed = await run("app/fly.toml", "--out", "infra", "--allow-file", path);
    expect(allowed).toMatchObject({ code: 0, err: "" });
    const content = Buffer.from("of the user alone").toString("base64");
    expect(readFileSync(join(folder, "infra/index.ts"), "utf8").includes(content)).toBe(!path.includes("missing"));
    // The converter that Pulumi starts obeys the same rule.
    const asked = (...args: string[]) =>
      convertProgram(request(...args).setSourceDirectory(join(folder, "app"))).toObject().diagnosticsList;
    expect(asked("fly.toml")).toMatchObject([
      { severity: 1, subject: { start: { line: 5 } }, detail: expect.stringContaining("--allow-file") as string },
    ]);
    expect(asked("fly.toml", "--allow-file", path).map(({ severity }) => severity)).not.toContain(1);
  });

  test("the command puts a file of the folder and of folders in it into the program, also through links that stay inside", async () => {
    mkdirSync(join(folder, "etc"));
    writeFileSync(join(folder, "etc/own.txt"), "own");
    symlinkSync("etc/own.txt", join(folder, "link.txt"));
    for (const path of ["etc/own.txt", "link.txt", "./etc/../link.txt", join(folder, "etc/own.txt")]) {
      writeFileSync(join(folder, "fly.toml"), withFile(path));
      expect(await run("--force")).toMatchObject({ code: 0, err: "" });
      expect(readFileSync(join(folder, "index.ts"), "utf8")).toContain(Buffer.from("own").toString("base64"));
    }
    expect(await run("--allow-file", "etc/on.txt")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--allow-file etc/on.txt: the file has no such local_path") as string,
    });
  });

  test("F57 texts of a deployment file stay texts, and what YAML cannot write is listed", async () => {
    writeFileSync(
      join(folder, "fly.toml"),
      'app = "shop\\u2028resources"\nprimary_region = "ams"\n"evil\\u0085x: ${fn}" = 1\n[build]\nimage = "a${pulumi.cwd}"\n' +
        '[env]\n"A${pulumi.cwd}" = "b\\u2028c"\n"fn::readFile" = "./secret"\n',
    );
    const { code, out } = await run("--language", "yaml");
    expect(code).toBe(0);
    const text = readFileSync(join(folder, "Main.yaml"), "utf8");
    expect(text).not.toMatch(/[\u2028\u0085]|(?<!\$)\$\{pulumi|fn::readFile"?:/);
    expect(text).toContain('"A$${pulumi.cwd}": "b\\u2028c"');
    const listed =
      'Fleet app: config.env["fn::readFile"] is left out, because Pulumi\'s YAML takes this key for the name of a function.';
    expect(text).toContain(`# - ${listed}`);
    expect(out).toContain(`  ${listed}\n`);
  });

  test("the command refuses a file that is no text", async () => {
    writeFileSync(join(folder, "fly.toml"), Buffer.from([0x61, 0xff]));
    expect(await run()).toMatchObject({ code: 2, err: expect.stringContaining("fly.toml: ") as string });
  });

  test.each([
    ["2024", 'name: "2024"'],
    ["true", 'name: "true"'],
    ["-.x", "name: x"],
  ])("a project in the folder %s has a name that Pulumi reads", async (name, line) => {
    writeFileSync(join(folder, "fly.toml"), 'app = "shop"\nprimary_region = "ams"\n');
    expect(await run("--out", `./${name}`)).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, name, "Pulumi.yaml"), "utf8")).toContain(`${line}\n`);
  });

  test("the command names a file that does not exist", async () => {
    expect(await run()).toMatchObject({ code: 2, err: expect.stringContaining("fly.toml: ENOENT") as string });
  });
});

const request = (...args: string[]) =>
  new proto.ConvertProgramRequest().setSourceDirectory(files).setTargetDirectory(folder).setArgsList(args);

describe("the converter", () => {
  test("the converter writes every file in PCL, and reports what is not in it by its line", () => {
    for (const name of readdirSync(files).filter((one) => one.endsWith(".toml"))) {
      const answer = convertProgram(request(name, "--regions", "ams")).toObject();
      expect(answer.diagnosticsList.filter(({ severity }) => severity === hcl.DiagnosticSeverity.DIAG_ERROR)).toEqual(
        [],
      );
      expect(readFileSync(join(folder, "main.pp"), "utf8")).toContain('"machines:index:Fleet"');
    }
    expect(convertProgram(request("misspelt.toml")).toObject().diagnosticsList[0]).toMatchObject({
      severity: 2,
      summary: "prmary_region",
      detail: "it is not a known key; did you mean primary_region?",
      subject: { filename: "misspelt.toml", start: { line: 3 } },
    });
  });

  test("the converter writes no reference where the file has a text that looks like one", () => {
    writeFileSync(join(folder, "own.toml"), 'app = "a"\nprimary_region = "ams"\n[env]\nA = "${b} %{c}"\n');
    convertProgram(request("own.toml").setSourceDirectory(folder));
    expect(readFileSync(join(folder, "main.pp"), "utf8")).toContain('"A" = "$${b} %%{c}"');
  });

  test("the converter reports every problem of a file at its line", () => {
    const text = 'app = 1\nprimary_region = "ams"\n[deploy]\nstrategy = "fast"\n';
    writeFileSync(join(folder, "own.toml"), text);
    const { diagnosticsList } = convertProgram(request("own.toml").setSourceDirectory(folder)).toObject();
    expect(diagnosticsList.map(({ severity, subject, detail }) => [severity, subject?.start?.line, detail])).toEqual([
      [1, 1, "app: must be a text"],
      [1, 4, expect.stringContaining("deploy.strategy: Invalid option") as string],
    ]);
    expect(convertProgram(request("--region", "ams")).toObject().diagnosticsList[0]?.detail).toContain("--region");
  });

  test("the converter answers over gRPC, and refuses what it does not convert", async () => {
    const { port, close } = await startConverter("machines-toml");
    const client = new converterGrpc.ConverterClient(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
    try {
      const converted = await new Promise<InstanceType<typeof proto.ConvertProgramResponse>>((done, fail) => {
        client.convertProgram(request("redis.toml"), (error, answer) => (error ? fail(error) : done(answer)));
      });
      expect(converted.toObject().diagnosticsList.map(({ summary }) => summary)).toContain("mounts[0].source");
      const refused = await new Promise<grpc.ServiceError | null>((done) => {
        client.convertState(new proto.ConvertStateRequest(), (error) => done(error));
      });
      expect(refused).toMatchObject({
        code: grpc.status.UNIMPLEMENTED,
        details: "machines-toml converts programs. To import what exists, run `pulumi import --from machines`.",
      });
    } finally {
      client.close();
      close();
    }
  });
});
