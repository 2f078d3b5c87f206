// `pulumi-machines convert`: writes a program for a deployment file.
import { existsSync, readFileSync } from "node:fs";
import { oneLine } from "../../api/printable.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { quoted } from "../orphans/importFile.ts";
import type { Streams } from "../terminal.ts";
import { writeFiles, type ToWrite } from "../organization/files.ts";
import { choiceOf, enterFolder, languageFor, languageOf, projectName } from "../organization/folder.ts";
import { languages } from "../organization/languages.ts";
import { withinLimits } from "../organization/limits.ts";
import { convert } from "./conversion.ts";
import { filesBeside } from "./localFiles.ts";

/** Options of the command. */
export interface ConvertOptions {
  readonly out?: string;
  readonly language?: string;
  readonly binding?: string;
  readonly regions?: string;
  /** Files outside of the deployment file's folder, as that names them. */
  readonly allowFile?: readonly string[];
  readonly force?: true;
}

/** @throws MachinesError `invalid-input` for a file or an argument that cannot be used */
export function convertFile(file: string, options: ConvertOptions, { out }: Streams): void {
  const choice = choiceOf(options);
  const beside = filesBeside(file, options.allowFile);
  const conversion = convert({ name: file, text: textIn(file), regions: options.regions, read: beside.read });
  beside.finish();
  enterFolder(options.out ?? ".");
  const exists = existsSync("Pulumi.yaml");
  const present = exists ? languageOf(readFileSync("Pulumi.yaml", "utf8")) : undefined;
  const { binding } = choice;
  const language = languageFor(choice, present);
  const { main, program, limits, install, project } = languages[language];
  const fitting = withinLimits(conversion.program, limits, { exists: false });
  const files: ToWrite[] = [{ name: main, text: program(fitting, binding) }];
  // Pulumi.yaml comes last: a folder with it has a project, whose other files are the user's.
  if (!exists) files.push(...project(projectName(), binding).toReversed());
  const written = writeFiles(files, options.force === true);
  const { secrets, needsImage } = conversion;
  const steps = [
    ...(exists ? [] : [...(install === undefined ? [] : [install]), "pulumi stack init dev"]),
    ...(needsImage ? [`pulumi config set image ${quoted("registry.example.com/app:1")}`] : []),
    ...[...secrets.keys()].map((key) => `pulumi config set --secret ${key}`),
    "pulumi preview",
  ];
  const list = (title: string, lines: readonly string[]): string =>
    lines.length === 0 ? "" : `\n${title}\n${lines.map((line) => `  ${oneLine(line)}\n`).join("")}`;
  out(
    `${written.length > 0 ? `Written: ${written.join(", ")}` : "Every file is up to date."}\n` +
      list("Next:", steps) +
      list(
        "Looks like a secret, and is read from the configuration:",
        [...secrets].map(([key, source]) => `${source}, as ${key}`),
      ) +
      list("Not in the program, or not as in the file:", fitting.remarks) +
      `\n${reminder.join(": ")}.\n`,
  );
}

/** What a deployment file never has, and what to do about it. */
export const reminder = [
  "Secrets, addresses and certificates are not in the file",
  "declare an AppSecrets, an IpAssignment and an AcmeCertificate",
] as const;

/**
 * The text of a file.
 * @throws MachinesError `invalid-input` if there is no such file
 */
export function textIn(file: string): string {
  try {
    // Bytes that are no text would become other characters without a word.
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    throw new MachinesError("invalid-input", `${file}: ${messageOf(error)}`, { cause: error });
  }
}
