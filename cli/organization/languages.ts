// The languages of programs, and the files of a new project in each.
import { version } from "../version.ts";
import type { ToWrite } from "./files.ts";
import { go } from "./languages/go.ts";
import { formatted } from "./languages/gofmt.ts";
import { python } from "./languages/python.ts";
import { scalar, yaml } from "./languages/yaml.ts";
import { limitsOf, type Limits } from "./limits.ts";
import { npmPackage, typescript } from "./languages/typescript.ts";
import type { Program } from "./program.ts";

/** How a program declares resources. */
export type Binding = "plugin" | "dynamic";

/** A language. */
interface Language {
  /** Its name in Pulumi.yaml. */
  readonly runtime: string;
  /** The file of the program. */
  readonly main: string;
  readonly program: (program: Program, binding: Binding) => string;
  /** What it cannot write. */
  readonly limits: Limits;
  /** The command that installs what a new project needs. */
  readonly install: string | undefined;
  /** The other files of a new project. */
  readonly project: (name: string, binding: Binding) => readonly ToWrite[];
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const tsconfig = {
  compilerOptions: {
    ...{ target: "es2022", module: "nodenext", moduleResolution: "nodenext", types: ["node"] },
    ...{ strict: true, skipLibCheck: true, noEmit: true },
  },
};

// A dynamic program needs the plugin too, until its objects are imported.
const pluginOfPackage = `plugins:
  providers:
    - name: machines
      path: node_modules/pulumi-machines-plugin/plugin
`;

const goModule = (name: string): string => `module ${name.toLowerCase()}

go 1.25

require (
\tgithub.com/pulumi-machines/pulumi-machines/sdk/go/machines v${version}
\tgithub.com/pulumi/pulumi/sdk/v3 v3.259.0
)
`;

/** All languages, by the name that --language takes. */
export const languages = {
  typescript: {
    runtime: "nodejs",
    main: "index.ts",
    program: typescript,
    limits: limitsOf.all,
    install: "npm install",
    project: (name, binding) => [
      { name: "Pulumi.yaml", text: `name: ${scalar(name)}\nruntime: nodejs\n${pluginOfPackage}` },
      {
        name: "package.json",
        text: json({
          ...{ name: name.toLowerCase(), private: true, main: "index.ts" },
          dependencies: {
            "@pulumi/pulumi": "^3.259.0",
            [npmPackage[binding]]: version,
            ...(binding === "dynamic" ? { [npmPackage.plugin]: version } : {}),
          },
          devDependencies: { "@types/node": "^24.0.0", typescript: "^6.0.0" },
        }),
      },
      { name: "tsconfig.json", text: json(tsconfig) },
    ],
  },
  python: {
    runtime: "python",
    main: "__main__.py",
    program: python,
    limits: limitsOf.all,
    install: "python3 -m venv venv && venv/bin/pip install -r requirements.txt",
    project: (name) => [
      {
        name: "Pulumi.yaml",
        text: `name: ${scalar(name)}\nruntime:\n  name: python\n  options:\n    virtualenv: venv\n`,
      },
      { name: "requirements.txt", text: `pulumi>=3.231.0,<4.0.0\npulumi_machines==${version}\n` },
    ],
  },
  go: {
    runtime: "go",
    main: "main.go",
    program: (program) => formatted(go(program)),
    limits: limitsOf.all,
    install: "go mod tidy",
    project: (name) => [
      { name: "Pulumi.yaml", text: `name: ${scalar(name)}\nruntime: go\n` },
      { name: "go.mod", text: goModule(name) },
    ],
  },
  yaml: {
    runtime: "yaml",
    main: "Main.yaml",
    program: yaml,
    limits: limitsOf.yaml,
    install: undefined,
    project: (name) => [{ name: "Pulumi.yaml", text: `name: ${scalar(name)}\nruntime: yaml\n` }],
  },
} satisfies Readonly<Record<string, Language>>;

/** Name of a language. */
export type LanguageName = keyof typeof languages;

/** All names of languages. */
export const languageNames = Object.keys(languages) as readonly LanguageName[];
