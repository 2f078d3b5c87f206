// `pulumi-machines convert`, and the converter that `pulumi convert` starts: what they write, refuse and say.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
  test("writes a project in the language, and says what to do next", async () => {
    writeFileSync(join(folder, "fly.toml"), readFileSync(join(files, "secrets-in-env.toml")));
    const { code, out, err } = await run("--language", "python", "--out", "infra");
    expect([code, err]).toEqual([0, ""]);
    expect(readdirSync(join(folder, "infra")).sort()).toEqual(["Pulumi.yaml", "__main__.py", "requirements.txt"]);
    expect(out).toContain("  pulumi config set image registry.example.com/app:1\n");
    expect(out).toContain("  pulumi config set --secret databaseUrl\n");
    expect(out).toContain("  env.DATABASE_URL, as databaseUrl\n");
    expect(out).toContain("\nSecrets, addresses and certificates are not in the file: declare");
  });

  test("writes in the language of the project, and over no other program", async () => {
    writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: yaml\n");
    const file = join(files, "node-minimal.toml");
    expect(await run(file)).toMatchObject({ code: 0 });
    expect(readdirSync(folder).sort()).toEqual(["Main.yaml", "Pulumi.yaml"]);
    expect((await run(file)).out).toContain("Every file is as it would be written.");
    expect(await run(file, "--regions", "fra")).toMatchObject({ code: 2 });
    expect(await run(file, "--regions", "fra", "--force")).toMatchObject({ code: 0 });
    expect(await run(file, "--language", "go")).toMatchObject({
      code: 2,
      err: expect.stringContaining("is in yaml") as string,
    });
    expect((await run(file, "--binding", "dynamic")).err).toContain("programs in yaml use the plugin");
  });

  test("names a file that does not exist", async () => {
    expect(await run()).toMatchObject({ code: 2, err: expect.stringContaining("fly.toml: ENOENT") as string });
  });
});

const request = (...args: string[]) =>
  new proto.ConvertProgramRequest().setSourceDirectory(files).setTargetDirectory(folder).setArgsList(args);

describe("the converter", () => {
  test("writes every file in PCL, and reports what is not in it by its line", () => {
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

  test("writes no reference where the file has a text that looks like one", () => {
    writeFileSync(join(folder, "own.toml"), 'app = "a"\nprimary_region = "ams"\n[env]\nA = "${b} %{c}"\n');
    convertProgram(request("own.toml").setSourceDirectory(folder));
    expect(readFileSync(join(folder, "main.pp"), "utf8")).toContain('"A" = "$${b} %%{c}"');
  });

  test("reports every problem of a file at its line", () => {
    const text = 'app = 1\nprimary_region = "ams"\n[deploy]\nstrategy = "fast"\n';
    writeFileSync(join(folder, "own.toml"), text);
    const { diagnosticsList } = convertProgram(request("own.toml").setSourceDirectory(folder)).toObject();
    expect(diagnosticsList.map(({ severity, subject, detail }) => [severity, subject?.start?.line, detail])).toEqual([
      [1, 1, "app: must be a text"],
      [1, 4, expect.stringContaining("deploy.strategy: Invalid option") as string],
    ]);
    expect(convertProgram(request("--region", "ams")).toObject().diagnosticsList[0]?.detail).toContain("--region");
  });

  test("answers over gRPC, and refuses what it does not convert", async () => {
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
