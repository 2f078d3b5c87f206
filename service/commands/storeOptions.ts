// The options of commands that work on a store that members share.
import { Option, type Command } from "commander";
import { Problem } from "../local/problem.ts";
import { fromEnvironment } from "./environment.ts";

/** What these options give. */
export interface StoreFlags {
  readonly store?: string;
  readonly keyFile?: string;
}

/** `--store`. */
export const storeOption = (): Option =>
  fromEnvironment(new Option("--store <url>", "URL of the PostgreSQL database that the members share"));

/** `--key-file`. */
export const keyFileOption = (): Option =>
  fromEnvironment(new Option("--key-file <file>", "file with the key that seals the data, with --store"));

/** The URL of the store. */
export function requireStoreUrl(command: Command): string {
  const { store } = command.optsWithGlobals<StoreFlags>();
  if (store === undefined)
    throw new Problem(`${command.name()} needs --store, the URL of the database that the members share`);
  return store;
}
