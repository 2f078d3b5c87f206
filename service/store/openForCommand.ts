// Opens the store for commands. It must exist, and a service may be using it.
import { existsSync } from "node:fs";
import { ownCommand } from "../ownCommand.ts";
import { schemaOf, Store, StoreError, storeFile } from "./database.ts";
import { isLocked } from "./lock.ts";
import { reading } from "./reading.ts";
import { currentSchema } from "./schema.ts";

/** Path of the store of a data folder. Throws a StoreError when there is none. */
export function requireStore(folder: string): string {
  const file = storeFile(folder);
  if (!existsSync(file))
    throw new StoreError(`there is no service in ${folder} yet; run \`${ownCommand("start --detach", folder)}\` first`);
  return file;
}

/** Opens the store of a data folder. Throws a StoreError when that would migrate the tables of a running service. */
export function openForCommand(folder: string): Store {
  const file = requireStore(folder);
  if (isLocked(folder)) {
    if (reading(file, schemaOf) < currentSchema())
      throw new StoreError(`the running service of ${folder} has an older version; stop it first`);
  }
  return new Store(file);
}
