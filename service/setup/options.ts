// The options of `start` as variables in the settings of a server, and back.
import { Command, type Option } from "commander";
import type { LocalOptions } from "../local/options.ts";
import type { StartOptions } from "../local/plan.ts";
import { Problem } from "../local/problem.ts";
import { settingsFile } from "./settings.ts";

/** Names of the variables that the setup knows by itself. */
export const variables = {
  data: "MACHINES_SERVICE_DATA",
  listen: "MACHINES_SERVICE_LISTEN",
  runtime: "MACHINES_RUNTIME",
  postgres: "MACHINES_POSTGRES",
  pgbouncer: "MACHINES_SERVICE_PGBOUNCER",
  hostname: "MACHINES_SERVICE_HOSTNAME",
  appsDomain: "MACHINES_SERVICE_APPS_DOMAIN",
  public: "MACHINES_SERVICE_PUBLIC",
  acme: "MACHINES_SERVICE_ACME",
  http: "MACHINES_SERVICE_HTTP",
  https: "MACHINES_SERVICE_HTTPS",
  drain: "MACHINES_SERVICE_DRAIN",
  backup: "MACHINES_SERVICE_BACKUP",
  backupEvery: "MACHINES_SERVICE_BACKUP_EVERY",
  restic: "MACHINES_SERVICE_RESTIC",
} as const;

/** The directory of the usual ACME authority. */
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory";

/**
 * The settings of a server, with what a server needs beside those that are there or given.
 * @param hasV6 Whether this computer speaks IPv6.
 */
export function withDefaults(settings: ReadonlyMap<string, string>, hasV6: boolean): Map<string, string> {
  const all = new Map(settings);
  const unlessGiven = (name: keyof typeof variables, value: string): void => {
    if ((all.get(variables[name]) ?? "") === "") all.set(variables[name], value);
  };
  unlessGiven("data", "/var/lib/machines-service");
  unlessGiven("listen", "127.0.0.1:4280");
  unlessGiven("runtime", "docker");
  unlessGiven("postgres", all.get(variables.runtime) === "docker" ? "embedded" : "simulated");
  if ((all.get(variables.hostname) ?? "") !== "") {
    unlessGiven("public", hasV6 ? "0.0.0.0,::" : "0.0.0.0");
    unlessGiven("acme", letsEncrypt);
  }
  return all;
}

/** The values that were given on a command line, as variables. */
export function givenSettings(
  values: Readonly<Record<string, unknown>>,
  options: readonly Option[],
): Map<string, string> {
  const given = new Map<string, string>();
  for (const option of options) {
    const value = values[option.attributeName()];
    if (value !== undefined && option.envVar !== undefined)
      given.set(option.envVar, [value].flat().map(String).join(","));
  }
  return given;
}

/** The arguments of `start` that say the same as settings. */
function argumentsOf(settings: ReadonlyMap<string, string>, options: readonly Option[]): string[] {
  return options.flatMap((option) => {
    const value = settings.get(option.envVar ?? "") ?? "";
    if (value === "" || option.long == null) return [];
    if (!option.isBoolean()) return [option.long, value];
    return /^(1|true)$/i.test(value) ? [option.long] : [];
  });
}

/**
 * Checks settings as `start` does.
 * @throws Problem for the first that is wrong.
 */
export async function requireValid(
  settings: ReadonlyMap<string, string>,
  options: readonly Option[],
): Promise<StartOptions> {
  let wrong = "";
  const command = new Command("start").exitOverride().configureOutput({ writeErr: (text) => (wrong += text) });
  for (const option of options) command.addOption(option);
  try {
    command.parse(argumentsOf(settings, options), { from: "user" });
  } catch (error) {
    const said = wrong.trim().replace(/^error: /, "");
    throw new Problem(`${settingsFile}: ${said === "" ? String(error) : said}`);
  }
  const { allowHost, ...rest } = command.opts<Omit<LocalOptions, "allowHosts"> & { readonly allowHost?: string[] }>();
  const data = settings.get(variables.data);
  const start = {
    ...rest,
    ...(allowHost ? { allowHosts: allowHost } : {}),
    ...(data === undefined ? {} : { data }),
    listen: rest.listen ?? "",
  };
  // Loaded only when it is used: it has many modules.
  const { planOf } = await import("../local/plan.ts");
  await planOf(start);
  return start;
}
