// The converter that `pulumi import --from machines` starts, without the CLI: what it answers, refuses and says.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import grpc from "@grpc/grpc-js";
import converterGrpc from "@pulumi/pulumi/proto/converter_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/converter_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/converter_pb.js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startConverter, type ConverterName } from "../../cli/conversion/converter.ts";
import { version } from "../../cli/version.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { makeOrganization } from "../support/organizations.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { answeringCli } from "./answeringCli.ts";
import { commandHere } from "./command.ts";
import { exportOf, shapes, urnOf, type Exported, type Shape } from "./exports.ts";
import { inStack } from "./stackFiles.ts";

let service: TestService;
let folder: string;
beforeEach(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), "machines-converter-"));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

const image = "registry.example.com/shop:1";

interface Answered {
  readonly resources: readonly rpc.ResourceImport.AsObject[];
  readonly notes: readonly string[];
  readonly error: string | undefined;
}

/** Asks the converter, as Pulumi does with the words after `--`. */
async function converted(args: string[], env: Readonly<Record<string, string>> = {}): Promise<Answered> {
  const before = { env: { ...process.env }, cwd: process.cwd(), requests: service.requests.length };
  Object.assign(process.env, { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token, ...env });
  process.chdir(folder);
  try {
    const found = await asking("machines", (client, done) =>
      client.convertState(new proto.ConvertStateRequest().setArgsList(args), done),
    );
    expect(service.requests.slice(before.requests).filter(isWrite), "it only reads").toEqual([]);
    return found;
  } finally {
    process.chdir(before.cwd);
    for (const name of Object.keys(process.env)) if (!(name in before.env)) delete process.env[name];
    Object.assign(process.env, before.env);
  }
}

type Done = (error: grpc.ServiceError | null, answer?: rpc.ConvertStateResponse) => void;

async function asking(
  name: ConverterName,
  ask: (client: InstanceType<typeof converterGrpc.ConverterClient>, done: Done) => void,
): Promise<Answered> {
  const { port, close } = await startConverter(name);
  const client = new converterGrpc.ConverterClient(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  try {
    return await new Promise<Answered>((resolve) => {
      ask(client, (error, answer) => {
        const { resourcesList = [], diagnosticsList = [] } = answer?.toObject() ?? {};
        const notes = diagnosticsList.map(({ summary, detail }) => `${summary}; ${detail}`);
        resolve({ resources: resourcesList, notes, error: error?.details });
      });
    });
  } finally {
    client.close();
    close();
  }
}

test("the converter answers the names and ids of the command, parents first, with the provider of the SDKs", async () => {
  const { secrets } = await makeOrganization(service, "same", 30);
  const { resources, notes, error } = await converted(["--snapshots"]);
  expect(error).toBeUndefined();
  await commandHere(service, ["import", "--snapshots", "--out", join(folder, "program")]);
  const { resources: imports } = JSON.parse(readFileSync(join(folder, "program/import.json"), "utf8")) as {
    resources: readonly object[];
  };
  expect(resources.map(({ type, name, id }) => ({ type, name, id }))).toEqual(imports);
  const firsts = resources.map(({ type }) => type);
  expect(firsts.lastIndexOf("machines:index:App")).toBeLessThan(firsts.indexOf("machines:index:Machine"));
  const schema = JSON.parse(readFileSync("provider/schema.json", "utf8")) as { pluginDownloadURL: string };
  expect(new Set(resources.map(({ version, plugindownloadurl }) => `${version} ${plugindownloadurl}`))).toEqual(
    new Set([`${version} ${schema.pluginDownloadURL}`]),
  );
  expect(notes).toContain("Not imported; Deploy tokens: the service does not list them.");
  for (const secret of [...secrets, service.token]) expect(JSON.stringify({ resources, notes })).not.toContain(secret);
});

test("the converter limits itself to Apps, and says what the program has to set", async () => {
  for (const app of ["shop", "blog"]) {
    await makeApp(service, app);
    await makeVolume(service, app, "ams");
    await send(service, "POST", `/v1/apps/${app}/secrets/TOKEN`, { value: "canary-4711" });
  }
  const { resources, notes } = await converted(["--app", "shop", "--org=personal"]);
  expect(resources.map(({ name }) => name)).toEqual(["shop", "TOKEN", "data"]);
  expect(notes).toContain(
    "To be set in the program; Secret shop/TOKEN: the service does not show its value. Ignore changes of that, or set the real value.",
  );
  expect(notes).toContain(
    "Not imported; Postgres clusters and other Apps: --app limits the program to the Apps that it names.",
  );
});

test.each([
  [["--ogr", "personal"], "--ogr: there is no such option; did you mean --org?"],
  [["--region", "ams"], "--region: there is no such option; there are --org, --app, --stack, --snapshots"],
  [["--app"], "--app needs a value"],
  [["--snapshots=yes"], "--snapshots takes no value"],
  [["shop"], "shop: there is no such argument; write --org SLUG or --app NAME after --"],
  [["--stack", "dev"], expect.stringMatching(/^--stack dev: there is no Pulumi project in /)],
  [["--org", "persona"], expect.stringMatching(/^--org persona: .*did you mean "personal"\?$/)],
  [["--app", "shpo"], expect.stringContaining("there is no App shpo at http://")],
  [[], expect.stringMatching(/^organization personal at http:\S+ has nothing that could be imported$/)],
])("the converter refuses %j in one sentence", async (args, sentence: unknown) => {
  const { resources, error } = await converted(args);
  expect([resources, error]).toEqual([[], sentence]);
});

test("a wrong token is refused, and a service that is none", async () => {
  await makeApp(service, "shop");
  expect((await converted([], { MACHINES_TOKEN: "wrong" })).error).toMatch(/401/);
  expect((await converted([], { MACHINES_ENDPOINT: "ftp://example.com" })).error).toContain("MACHINES_ENDPOINT");
});

/** A project whose selected stack is `dev`, with a state. */
function project(shape: Shape, resources: readonly Exported[]): Readonly<Record<string, string>> {
  writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  writeFileSync(join(folder, "pulumi"), answeringCli);
  chmodSync(join(folder, "pulumi"), 0o755);
  const dev = { "stack export": JSON.parse(exportOf(shape, resources)) as object, config: {} };
  writeFileSync(join(folder, "stacks.json"), JSON.stringify({ dev }));
  return { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` };
}

test.each(shapes)("what a stack with %s resources holds is not imported under another name", async (shape) => {
  await makeApp(service, "shop");
  const id = await makeMachine(service, "shop", { name: "web", region: "ams", config: { image } });
  const held = { type: "Machine", name: "my-web", id: `shop/${id}` };
  const env = project(shape, [held]);
  const { resources, notes } = await converted(["--stack", "dev"], env);
  const app = ["machines:index:App", "shop", "shop"];
  const isPlugin = shape === "plugin";
  expect(resources.map(({ type, name, id: one }) => [type, name, one])).toEqual(
    isPlugin ? [app, ["machines:index:Machine", "my-web", held.id]] : [app],
  );
  expect(notes.some((note) => note.includes(urnOf(shape, "Machine", "my-web")))).toBe(!isPlugin);
});

test("what another stack holds is not imported, and named", async () => {
  for (const name of ["shop", "blog"]) await makeApp(service, name);
  const env = project("plugin", []);
  const stacks = JSON.parse(readFileSync(join(folder, "stacks.json"), "utf8")) as object;
  const prod = { "stack export": JSON.parse(inStack("prod", [{ type: "App", name: "shop", id: "shop" }])) as object };
  writeFileSync(join(folder, "stacks.json"), JSON.stringify({ ...stacks, prod }));
  const { resources, notes } = await converted(["--stack", "dev"], env);
  expect(resources.map(({ id }) => id)).toEqual(["blog"]);
  expect(notes).toContain(
    "Not imported; App shop: stack prod of this project holds it. Two stacks must not own one object.",
  );
});

test("a stack that holds everything as dynamic resources leaves nothing to import", async () => {
  await makeApp(service, "shop");
  const env = project("dynamic", [{ type: "App", name: "shop", id: "shop" }]);
  expect((await converted(["--stack", "dev"], env)).error).toBe(
    "stack dev holds all of organization personal as dynamic resources, so nothing is left to import",
  );
});

test("each name of the converter says which one does the other's work", async () => {
  const program = await asking("machines", (client, done) =>
    client.convertProgram(new proto.ConvertProgramRequest(), (error) => done(error)),
  );
  expect(program.error).toBe("machines imports what exists. To convert a deployment file, add --from machines-toml.");
});
