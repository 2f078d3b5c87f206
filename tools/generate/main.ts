// Generates all files from the resource declarations and the contract; with --check only reports outdated ones.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { baselines } from "../../policy/baselines.ts";
import { main } from "../lib/process.mjs";
import { sdkGenerator } from "../setup/goProgram.mjs";
import { languageHost } from "../setup/languageHosts.mjs";
import { pulumiSdkDirs, pulumiSdks } from "./pulumiSdks.ts";
import { cliSchema } from "./cliSchema.ts";
import { coverage } from "./coverage.ts";
import { dashboard } from "./dashboard.ts";
import { examples } from "./examples.ts";
import { faultsPage, securityPage } from "./faults.ts";
import { operationsPage } from "./operations.ts";
import { goTypes } from "./goTypes.ts";
import { javaBuildFiles, javaSdkDir, javaSources } from "./javaSdk.ts";
import { homepageFile } from "./packageInfo.ts";
import { policyReference } from "./policyReference.ts";
import { policyResources, policyValidators } from "./policy.ts";
import { mergedPrograms, programsDir, programsIn, programsOf, withPrograms } from "./programs.ts";
import { packageSchema, type PackageSpec } from "./schema.ts";
import { referencePages } from "./reference.ts";
import { registryPages } from "./registry.ts";
import { sdkFiles } from "./sdk.ts";
import { serviceCoverage } from "./serviceCoverage.ts";
import { serviceDifferences } from "./serviceDifferences.ts";
import { llmsFile } from "./llms.ts";
import { missingParts } from "./missing.ts";
import { watchingPage } from "./watching.ts";

const root = process.cwd();
const isCheck = process.argv.includes("--check");

/** The languages of the examples that need no language host. */
const quick = ["nodejs", "python", "dotnet", "go"] as const;

async function generate(): Promise<number> {
  const shown = examples(root);
  const missing = missingParts(root, shown);
  if (missing.length > 0) {
    console.error(missing.join("\n"));
    return 1;
  }
  const { version, engines } = JSON.parse(readFileSync(join(root, "sdk/nodejs/package.json"), "utf8")) as {
    version: string;
    engines: unknown;
  };
  const plain = packageSchema(version);
  const withoutComponents = packageSchema(version, {});
  const files: Record<string, string> = {};
  files["api/homepage.ts"] = homepageFile();
  for (const [path, text] of Object.entries(sdkFiles(withoutComponents))) files[`sdk/nodejs/${path}`] = text;
  files["cli/version.ts"] = versionFile("sdk/nodejs");
  files["cli/organization/languages/goTypes.ts"] = goTypes(withoutComponents);
  files["policy/resources.ts"] = policyResources(withoutComponents);
  files["policy/validators.ts"] = policyValidators(withoutComponents);
  files["docs/reference/policies.md"] = policyReference();
  for (const [name, levels] of Object.entries(baselines))
    files[`policy/baselines/${name}.json`] = `${JSON.stringify(levels, null, 2)}\n`;

  files["service/version.ts"] = versionFile("service");
  Object.assign(files, registryPages(root, version));
  files["docs/operations.md"] = operationsPage();
  files["docs/faults.md"] = faultsPage(root);
  files["docs/security.md"] = securityPage(root);
  files["docs/coverage.md"] = coverage(root);
  files["docs/service-coverage.md"] = serviceCoverage(root);
  files["docs/service-differences.md"] = serviceDifferences(root);
  files["docs/watching.md"] = watchingPage(root);
  files["service/watch/dashboard.json"] = dashboard();

  const { program, reason } = await sdkGenerator(process.env);
  const committed = programsOf(JSON.parse(current("provider/schema.json") ?? '{ "resources": {} }') as PackageSpec);
  const ours = program === undefined ? [] : quick.map((language) => programsIn(program, language, plain));
  let programs = mergedPrograms(committed, ...ours);
  let schema = withPrograms(plain, programs);
  const isOld = (): boolean => {
    const java = javaBuildFiles(schema, version);
    return Object.keys(java).some((path) => current(path) !== java[path]);
  };
  // Building a language host takes minutes, so a new one is only built when an example or a type has changed.
  const mayBuild = !isCheck && isOld();
  for (const language of program === undefined ? [] : (["java", "yaml"] as const)) {
    const { dir, reason: missing } = await languageHost(
      language,
      mayBuild ? process.env : { ...process.env, PATH: "" },
    );
    if (dir !== undefined && program !== undefined) {
      const host = join(dir, `pulumi-language-${language}`);
      programs = mergedPrograms(programs, programsIn(program, language, plain, host));
    } else if (mayBuild) console.error(`not generated: examples in ${language}; ${missing}`);
  }
  schema = withPrograms(plain, programs);
  files["provider/schema.json"] = `${JSON.stringify(cliSchema(schema), null, 2)}\n`;
  for (const [path, text] of Object.entries(referencePages(plain, shown, programs)))
    files[`docs/reference/${path}`] = text;
  files["llms.txt"] = llmsFile(root, version, files);
  if (program === undefined) {
    console.error(`not ${isCheck ? "checked" : "generated"}: ${[...pulumiSdkDirs, programsDir].join(", ")}; ${reason}`);
  } else {
    Object.assign(files, pulumiSdks(program, schema, engines));
  }
  if (isOld()) {
    const { files: sources, reason: missing } = isCheck ? { files: {} } : await javaSources(schema, process.env);
    if (sources === undefined) console.error(`not generated: ${javaSdkDir}; ${missing}`);
    else {
      if (!isCheck) rmSync(join(root, javaSdkDir, "src"), { recursive: true, force: true });
      Object.assign(files, javaBuildFiles(schema, version), sources);
    }
  }
  const stale = Object.keys(files).filter((path) => current(path) !== files[path]);
  const gone = program === undefined ? [] : generatedFiles().filter((path) => !Object.hasOwn(files, path));
  const all = [...new Set([...stale, ...gone].map((path) => (path.startsWith(javaSdkDir) ? javaSdkDir : path)))];

  if (isCheck) {
    if (all.length > 0) console.error(`stale, run \`npm run generate\`: ${all.join(", ")}`);
    return all.length > 0 ? 1 : 0;
  }
  for (const path of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), files[path] ?? "");
  }
  for (const path of gone) rmSync(join(root, path));
  console.error(all.length > 0 ? `generated ${all.join(", ")}` : "nothing was stale");
  return 0;
}

/** The version of a package as code, because its package.json is elsewhere for the sources than for the package. */
function versionFile(folder: string): string {
  const { version } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as { version: string };
  return [
    `// Generated by \`npm run generate\` from ${folder}/package.json: do not edit.`,
    "",
    "/** Version of the package. */",
    `export const version = ${JSON.stringify(version)};`,
    "",
  ].join("\n");
}

function current(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), "utf8");
  } catch {
    return undefined;
  }
}

/** Files that Pulumi's generators have written into the SDKs, now or earlier; those no longer written are removed. */
function generatedFiles(): string[] {
  const walk = (dir: string): string[] =>
    readdirSync(join(root, dir), { withFileTypes: true }).flatMap((entry) => {
      const path = `${dir}/${entry.name}`;
      if (entry.isDirectory()) return /^(dist|build|plugin|node_modules|bin|obj)$/.test(entry.name) ? [] : walk(path);
      return entry.isFile() && /\.(ts|pyi?|go|cs)$/.test(path) && isGenerated(path) ? [path] : [];
    });
  return pulumiSdkDirs.filter((dir) => current(`${dir}/.gitattributes`) !== undefined).flatMap(walk);
}

const isGenerated = (path: string): boolean =>
  /generated by the Pulumi SDK Generator/.test(current(path)?.slice(0, 300) ?? "");

void main(generate);
