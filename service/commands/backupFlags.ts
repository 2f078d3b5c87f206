// The options with which restic opens a repository, for `start` and for commands.
import { Option } from "commander";

/** What these options give. */
export interface OpeningFlags {
  readonly restic?: string;
  readonly backupPassphraseFile?: string;
  readonly backupPassphraseCommand?: string;
  readonly backupEnvironment?: string;
}

/** The options. */
export const openingOptions = (): Option[] => [
  new Option("--backup-passphrase-file <file>", "file with the passphrase that seals the backups"),
  new Option(
    "--backup-passphrase-command <command>",
    "command that prints the passphrase, such as age --decrypt --identity key.txt passphrase.age",
  ),
  new Option("--backup-environment <file>", "file with variables for restic, such as AWS_ACCESS_KEY_ID=…"),
  new Option("--restic <program>", "the program restic (default: the one on PATH)"),
];
