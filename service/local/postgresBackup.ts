// The object storage of Postgres clusters on Kubernetes, as the options of `start` name it.
import { variablesIn } from "../backup/variables.ts";
import type { ObjectStore } from "../runtime/cnpg/objectStore.ts";
import { problemOf } from "./backupProblem.ts";
import { optionOf, type LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";

const option = optionOf("postgresBackup");

/** The object storage; undefined if there is none. Throws a Problem for what cannot be one. */
export function postgresStoreOf({
  postgres,
  postgresBackup: at,
  postgresBackupEnvironment: file,
}: LocalOptions): ObjectStore | undefined {
  if (at === undefined) {
    if (file !== undefined) throw new Problem(`${optionOf("postgresBackupEnvironment")} needs ${option}, the address`);
    return undefined;
  }
  if (postgres !== "cnpg")
    throw new Problem(`${option} needs --postgres cnpg: other engines have ${optionOf("backup")}`);
  return storeOf(at, file === undefined ? process.env : readVariables(file));
}

function readVariables(file: string): NodeJS.ProcessEnv {
  try {
    return variablesIn(optionOf("postgresBackupEnvironment"), file);
  } catch (error) {
    return problemOf(error);
  }
}

/** The object storage at an address of the form that restic has, too. */
export function storeOf(at: string, variables: NodeJS.ProcessEnv): ObjectStore {
  const [, scheme = "https", host, path] = /^s3:(?:(https?):\/\/)?([^/@\s]+)\/([^\s]*[^\s/])\/?$/.exec(at) ?? [];
  if (host === undefined || path === undefined)
    // An address may have a password.
    throw new Problem(`${option} takes s3:https://HOST/BUCKET or s3:https://HOST/BUCKET/PREFIX, got another address`);
  const given = Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      name.startsWith("AWS_") && value !== undefined && value !== "" ? [[name, value]] : [],
    ),
  );
  for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    if (given[name] === undefined)
      throw new Problem(
        `${option} needs ${name}, in the file of ${optionOf("postgresBackupEnvironment")} or as a variable`,
      );
  return { path: `s3://${path}`, endpoint: `${scheme}://${host}`, variables: given };
}
