// `pulumi-machines import`: writes a program for everything that an organization has, and the file to import it.
import { readFileSync } from "node:fs";
import { oneLine } from "../../api/printable.ts";
import type { Config } from "../../provider/client/config.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { importFile, quoted } from "../orphans/importFile.ts";
import type { Streams } from "../terminal.ts";
import type { Discovery, Found } from "./discovery.ts";
import { choiceOf, enterFolder, languageFor, projectName } from "./folder.ts";
import { writeFiles, type ToWrite } from "./files.ts";
import { languages, type Binding, type LanguageName } from "./languages.ts";
import { withinLimits } from "./limits.ts";
import { importsOf, namesOf, programOf } from "./model.ts";
import { projectHere, readOrganization, type Project } from "./reading.ts";
import { readTerraform, type TerraformState } from "./terraform.ts";

/** Options of the command. */
export interface ImportOptions {
  readonly org?: string;
  readonly app?: readonly string[];
  readonly out?: string;
  readonly language?: string;
  readonly binding?: string;
  readonly stack?: string;
  /** File with the state of Terraform, `-` for standard input. */
  readonly terraform?: string;
  readonly snapshots?: true;
  readonly force?: true;
}

/** Name of the file for `pulumi import --file`. */
const importName = "import.json";

/** @throws MachinesError `invalid-input` or `configuration` for invalid arguments */
export async function importOrganization(options: ImportOptions, streams: Streams): Promise<void> {
  const choice = choiceOf(options);
  if (options.terraform !== undefined && options.app !== undefined)
    throw new MachinesError("invalid-input", "--terraform and --app cannot be combined: the state names the Apps");
  const terraform = options.terraform === undefined ? undefined : terraformIn(options.terraform);
  enterFolder(options.out ?? ".");
  const project = await projectHere(options.stack);
  const { binding } = choice;
  const language = languageFor(choice, project.language);
  const { discovery, config } = await readOrganization(project, { ...options, terraform }, streams.err);
  const { found } = discovery;
  const program = withinLimits(programOf(discovery), languages[language].limits, { exists: true });
  const text = languages[language].program(program, binding);
  const toImport = found.filter(({ held }) => held === undefined);
  const files: ToWrite[] = [{ name: languages[language].main, text }];
  if (toImport.length > 0)
    files.push({ name: importName, text: importFile(importsOf(toImport, namesOf(found))), isResumed });
  // Pulumi.yaml comes last: a folder with it has a project, whose other files are the user's.
  if (!project.exists) files.push(...languages[language].project(projectName(), binding).toReversed());
  const written = writeFiles(files, options.force === true);
  report({ discovery, toImport, written, program, project, config, language, binding }, streams);
}

/** @throws MachinesError `invalid-input` if the file cannot be read */
function terraformIn(file: string): TerraformState {
  try {
    return readTerraform(readFileSync(file === "-" ? 0 : file, "utf8"), file);
  } catch (error) {
    if (error instanceof MachinesError) throw error;
    throw new MachinesError("invalid-input", `--terraform ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** Everything that the file must import is in the one that exists: an import was interrupted, and continues with that one. */
function isResumed(before: string, next: string): boolean {
  const linesIn = (text: string): readonly string[] => {
    try {
      const { resources } = JSON.parse(text) as { resources: { type: string; name: string; id: string }[] };
      return resources.map(({ type, name, id }) => `${type} ${name} ${id}`);
    } catch {
      return [];
    }
  };
  const known = new Set(linesIn(before));
  return linesIn(next).every((line) => known.has(line));
}

interface Result {
  readonly discovery: Discovery;
  readonly toImport: readonly Found[];
  readonly written: readonly string[];
  readonly program: ReturnType<typeof programOf>;
  readonly project: Project;
  readonly config: Config;
  readonly language: LanguageName;
  readonly binding: Binding;
}

function report(
  { discovery, toImport, written, program, project, config, language, binding }: Result,
  { out }: Streams,
): void {
  const { found, warnings } = discovery;
  const line = (text = ""): void => out(`${text}\n`);
  const counts = new Map<string, number>();
  for (const { type } of found) counts.set(type, (counts.get(type) ?? 0) + 1);
  line(`${found.length} objects: ${[...counts].map(([type, count]) => `${count} ${type}`).join(", ")}.`);
  line(written.length > 0 ? `Written: ${written.join(", ")}` : "Every file is up to date.");
  const secrets = program.settings.flatMap(({ key, isSecret }) => (isSecret ? [key] : []));
  const { install } = languages[language];
  const { organization } = config;
  const isLocal = config.endpoint === "local";
  const steps = [
    ...(project.exists
      ? []
      : [
          ...(install === undefined ? [] : [install]),
          "pulumi stack init dev",
          `pulumi config set machines:endpoint ${quoted(config.endpoint)}`,
          ...(isLocal ? [] : ["pulumi config set --secret machines:token"]),
        ]),
    ...(project.config.get("organization") === organization ||
    (organization === "personal" && project.config.get("organization") === undefined)
      ? []
      : [`pulumi config set machines:organization ${quoted(organization)}`]),
    ...secrets.map((key) => `pulumi config set --secret ${key}`),
    ...(toImport.length === 0 ? [] : [`pulumi import --file ${importName} --generate-code=false`]),
    ...(binding === "dynamic" ? ["pulumi up"] : []),
    "pulumi preview",
  ];
  line();
  line(
    toImport.length === 0
      ? "The stack holds all of them. Next:"
      : `${toImport.length} of them are in no state yet. Next:`,
  );
  for (const step of steps) line(`  ${step}`);
  const held = new Set(found.flatMap((one) => (one.held ? [one.held.urn] : [])));
  const others = project.state.resources.filter(({ urn, isPending }) => !held.has(urn) && !isPending);
  const remarks = [
    ...program.remarks,
    ...others.map(
      ({ type, urn }) =>
        `${type} ${urn} is in the state. The program does not declare it, so the next up would delete it.`,
    ),
  ];
  const list = (title: string, sentences: readonly string[]): void => {
    if (sentences.length > 0) line(`\n${title}\n${sentences.map((sentence) => `  ${oneLine(sentence)}`).join("\n")}`);
  };
  list("Look at these before the import:", warnings);
  list("Not in the program:", remarks);
}
