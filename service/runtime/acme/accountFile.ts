// Where the key of the account at an ACME authority is: a file of its own, because the rest has many modules.
import { join } from "node:path";

/** The file with the key, in a data folder. */
export const accountFile = (folder: string): string => join(folder, "acme-account.key");
