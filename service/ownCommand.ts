// Commands of machines-service for users to copy. They have the data folder of the service that they are about.
import { homedir } from "node:os";
import { join } from "node:path";

/** The data folder if none is named. */
export const usualFolder = (): string => join(homedir(), ".machines-service");

/** Names the folder of the data: an option, or else this variable. */
export const dataVariable = "MACHINES_SERVICE_DATA";

/** How the command itself is called, where that is not with npx: in a clone, its scripts set it. */
export const commandVariable = "MACHINES_SERVICE_COMMAND";

/** A text as one word of a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** A command such as `npx machines-service token --data FOLDER`; the option is left out for the usual folder. */
export function ownCommand(words: string, folder: string): string {
  const { [commandVariable]: own, [dataVariable]: named } = process.env;
  const isUsual = folder === usualFolder() && (named === undefined || named === "");
  const option = isUsual ? [] : ["--data", /^[\w./-]+$/.test(folder) ? folder : quoted(folder)];
  return [own === undefined || own === "" ? "npx machines-service" : own, words, ...option].join(" ");
}
