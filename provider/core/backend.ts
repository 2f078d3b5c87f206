// The place where Pulumi stores states. An export that is imported elsewhere takes all ids of its state with it, so an id proves
// the state it belongs to only together with the backend that it was generated in.
import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { isObject } from "../../api/schema.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A hash that identifies the backend of this process; undefined if that is unknown. It differs where this is uncertain. */
export function backendId(env: Environment = process.env, folder = process.cwd()): string | undefined {
  const url = backendUrl(env, folder);
  const place = url?.startsWith("file:") === true ? folderOf(url, env) : url?.replace(/\/+$/, "");
  if (place === undefined || place === "") return undefined;
  return createHash("sha256").update(place).digest("hex").slice(0, 12);
}

/** The id of a state that is generated in a backend. */
export const stateIdIn = (random: string, backend: string | undefined): string =>
  backend === undefined ? random : `${random}-${backend}`;

/** The backend that a state's id was generated in; undefined if that was unknown, or for an id of an older version. */
export const backendIn = (stateId: string | undefined): string | undefined => stateId?.split("-")[1];

/** The URL of the backend, chosen as the CLI does: the environment, then the project, then the login. */
function backendUrl(env: Environment, folder: string): string | undefined {
  const { PULUMI_BACKEND_URL: given } = env;
  if (given !== undefined && given !== "") return given;
  const project = projectText(folder);
  // A spelling that is not understood here must not be taken for the login's backend.
  if (project !== undefined && /^["']?backend["']?\s*:|^\s*[{,]?\s*"backend"\s*:/m.test(project))
    return /^backend:[ \t]*(?:#.*)?\r?\n(?:[ \t]+.*\r?\n|\r?\n)*?[ \t]+url:[ \t]*["']?([^\s"'#]+)/m.exec(project)?.[1];
  return loginUrl(env);
}

function projectText(folder: string): string | undefined {
  for (const name of ["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"]) {
    const text = textOf(join(folder, name));
    if (text !== undefined) return text;
  }
  const above = dirname(folder);
  return above === folder ? undefined : projectText(above);
}

function loginUrl(env: Environment): string | undefined {
  const home = env["PULUMI_CREDENTIALS_PATH"] || env["PULUMI_HOME"] || join(homedir(), ".pulumi");
  try {
    const credentials: unknown = JSON.parse(textOf(join(home, "credentials.json")) ?? "");
    const current = isObject(credentials) ? credentials["current"] : undefined;
    return typeof current === "string" ? current : undefined;
  } catch {
    return undefined;
  }
}

/** A folder by its path and its number on the disk, because two computers have folders of the same path. */
function folderOf(url: string, env: Environment): string | undefined {
  const path = url
    .slice("file:".length)
    .replace(/^\/\/(?=[/~.])/, "")
    .replace(/\?.*$/s, "");
  const absolute = path.startsWith("~") ? join(env["HOME"] || homedir(), path.slice(1)) : resolve(path);
  try {
    return `${realpathSync(absolute)} ${statSync(join(absolute, ".pulumi")).ino}`;
  } catch {
    return undefined;
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
