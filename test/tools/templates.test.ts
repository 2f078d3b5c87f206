// The templates of `pulumi new`: all languages have the same settings, the same program, and the packages of this version.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

/** What a template's Pulumi.yaml says. */
interface Project {
  readonly name: string;
  readonly description: string;
  readonly runtime: string | { readonly name: string };
  readonly template: {
    readonly displayName: string;
    readonly description: string;
    readonly quickstart: string;
    readonly config: Readonly<Record<string, { description: string; default?: string; secret?: boolean }>>;
  };
}

const languages = {
  csharp: "C#",
  go: "Go",
  java: "Java",
  python: "Python",
  typescript: "TypeScript",
  yaml: "YAML",
} as const;
type Language = keyof typeof languages;
const all = Object.keys(languages) as Language[];
const read = (file: string): string => readFileSync(`templates/${file}`, "utf8");
const projects = new Map(all.map((language) => [language, parse(read(`${language}/Pulumi.yaml`)) as Project]));
const { version } = JSON.parse(readFileSync("sdk/nodejs/package.json", "utf8")) as { version: string };

const programs: Readonly<Record<Language, string>> = {
  csharp: "Program.cs",
  go: "main.go",
  java: "src/main/java/hello/App.java",
  python: "__main__.py",
  typescript: "index.ts",
  yaml: "Main.yaml",
};

test("there is one template for each language", () => {
  const folders = readdirSync("templates", { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).toSorted()).toEqual(all);
});

describe.each([...projects])("the template %s", (language, { name, description, runtime, template }) => {
  test("its Pulumi.yaml takes the name from `pulumi new`, and asks the same questions as the others", () => {
    expect({ name, description }).toEqual({ name: "${PROJECT}", description: "${DESCRIPTION}" });
    const named = typeof runtime === "string" ? runtime : runtime.name;
    expect(named).toBe({ typescript: "nodejs", csharp: "dotnet" }[language as string] ?? language);
    expect(template.config).toEqual(projects.get("typescript")?.template.config);
    expect(template.config["machines:token"]).toEqual({ description: expect.any(String), secret: true });
    expect(template.displayName).toBe(`Machines, ${languages[language]}`);
    expect(template.description).toBe(`An App with a volume and a Machine on it, in ${languages[language]}`);
    expect(template.quickstart).toContain("pulumi config set --secret machines:token");
  });

  test("its program reads all settings that are not the provider's", () => {
    const program = read(`${language}/${programs[language]}`);
    const own = Object.keys(template.config).filter((key) => !key.includes(":"));
    expect(own).toEqual(["image", "region"]);
    for (const key of own)
      expect(program).toMatch(new RegExp(`equire\\("${key}"\\)|^  ${key}: \\{ type: string \\}`, "m"));
  });

  test("its name stays text: Pulumi replaces only the name and the description of the project", () => {
    expect(read(`${language}/${programs[language]}`)).not.toMatch(/\$\{(PROJECT|DESCRIPTION)\}/);
  });
});

test("the templates install this version of the packages", () => {
  const manifest = JSON.parse(read("typescript/package.json")) as { dependencies: Record<string, string> };
  const example = JSON.parse(readFileSync("examples/quickstart/package.json", "utf8")) as typeof manifest;
  expect(manifest.dependencies).toEqual(example.dependencies);
  expect(manifest.dependencies["pulumi-machines"]).toBe(`^${version}`);
  expect(read("python/requirements.txt")).toContain(`pulumi_machines>=${version},<`);
  expect(read("go/go.mod")).toContain(`/sdk/go/machines v${version}\n`);
  const required = /^\tgithub.com\/pulumi\/pulumi\/sdk\/v3 v.*$/m;
  expect(read("go/go.mod")).toContain(required.exec(readFileSync("examples/quickstart-go/go.mod", "utf8"))?.[0]);
  const pom = /^```xml\n(.*?)^```/ms.exec(readFileSync("sdk/java/README.md", "utf8"))?.[1];
  const project = /^```xml\n(.*?)^```/ms.exec(readFileSync("sdk/dotnet/README.md", "utf8"))?.[1];
  const dependency = `<PackageReference Include="PulumiMachines.Machines" Version="${version}" />`;
  expect(read("csharp/${PROJECT}.csproj")).toBe(project?.replace(/<ProjectReference .*\/>/, dependency));
  expect(read("java/pom.xml")).toBe(pom?.replace("<artifactId>hello<", "<artifactId>${PROJECT}<"));
});
