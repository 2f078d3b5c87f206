// What an editor shows of the TypeScript SDKs: descriptions where a resource is created, values where one is typed.
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, test } from "vitest";

const file = join(process.cwd(), "test/generated/inEditor.ts");

/** A program in an editor. Places in it are marked as `‹name›`. */
function open(program: string) {
  const places = new Map<string, number>();
  let text = "";
  for (const part of program.split(/(‹\w+›)/)) {
    const [, name] = /^‹(\w+)›$/.exec(part) ?? [];
    if (name === undefined) text += part;
    else places.set(name, text.length);
  }
  const at = (name: string): number => places.get(name) ?? -1;
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    types: ["node"],
  };
  const read = (name: string): string | undefined => (name === file ? text : ts.sys.readFile(name));
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [file],
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) => {
      const content = read(name);
      return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content);
    },
    getCurrentDirectory: () => process.cwd(),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (name) => name === file || ts.sys.fileExists(name),
    readFile: read,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
    readDirectory: ts.sys.readDirectory,
  });
  return {
    completions: (place: string) =>
      service.getCompletionsAtPosition(file, at(place), {})?.entries.map(({ name }) => name) ?? [],
    hover: (place: string) => ts.displayPartsToString(service.getQuickInfoAtPosition(file, at(place))?.documentation),
    errors: () =>
      [...service.getSyntacticDiagnostics(file), ...service.getSemanticDiagnostics(file)].map(({ messageText }) =>
        ts.flattenDiagnosticMessageText(messageText, "\n"),
      ),
  };
}

describe.each(["../../sdk/nodejs/index.ts", "pulumi-machines-plugin"])("an editor with %s", (sdk) => {
  const { completions, hover, errors } = open(`import * as machines from "${sdk}";
const region: string = "new";
new machines.PostgresCluster("main", { region, plan: "‹plan›tomorrow" });
new machines.Volume("data", { app: "a", region: "‹region›", si‹sizeGb›zeGb: 3, fs‹fstype›type: "ext4" });
new machines.Mach‹Machine›ine("web", {
  app: "a",
  region,
  fallbackRegions: ["ams", region],
  minSecretsVersion: [1, new machines.Secret("s", { app: "a", name: "S", value: "v" }).version],
  config: {
    image: "x",
    schedule: "yearly",
    guest: { gpuKind: "b200", me‹memoryMb›moryMb: 256 },
    services: [
      { protocol: "tcp", internalPort: 80, autostop: "‹autostop›later" },
      { protocol: "tcp", internalPort: 80, autostop: true, ports: [{ handlers: ["http", "h3"] }] },
    ],
  },
});
new machines.Machine("other", { app: "a", minSecretsVersion: 3, config: { image: "x" } });
new machines.Machine("wrong", { app: "a", state: "strated", config: { image: "x" } });
`);

  test("completes values that the service may extend, and accepts others", () => {
    expect(completions("plan")).toEqual(expect.arrayContaining(["basic", "Performance"]));
    expect(completions("region")).toEqual(expect.arrayContaining(["ams", "yyz"]));
    expect(completions("autostop")).toEqual(expect.arrayContaining(["off", "stop", "suspend"]));
    // The last line alone is wrong: a power state is one that the provider knows.
    expect(errors()).toEqual([expect.stringMatching(/"strated".* is not assignable/)]);
  });

  test("an editor describes a resource at its constructor, and every input with its unit and default", () => {
    expect(hover("Machine")).toMatch(/^A small VM that runs a container image/);
    expect(hover("sizeGb")).toMatch(/size in GB, 1 to 500.*Default: `3`\.$/s);
    expect(hover("fstype")).toMatch(/Default: `"ext4"`\.$/);
    expect(hover("memoryMb")).toMatch(/^Memory in MiB.*Default: `256`\.$/);
  });
});
