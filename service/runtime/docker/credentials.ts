// Credentials for registries, as `docker login` stores them: in config.json, or in a credential helper that it names.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** Credentials, as the engine's API takes them. */
export interface Credentials {
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
  readonly serveraddress: string;
}

interface DockerConfig {
  readonly auths?: Readonly<Record<string, { readonly auth?: string; readonly identitytoken?: string }>>;
  readonly credsStore?: string;
  readonly credHelpers?: Readonly<Record<string, string>>;
}

const hub = "https://index.docker.io/v1/";

/** The credentials for a registry; undefined if there are none. */
export async function credentialsFor(registry: string): Promise<Credentials | undefined> {
  const address = registry === "docker.io" ? hub : registry;
  const { auths = {}, credHelpers = {}, credsStore } = readConfig();
  const helper = credHelpers[address] ?? credsStore;
  if (helper !== undefined) return askHelper(helper, address);
  // Older versions of `docker login` wrote an address with scheme and path.
  const key = Object.keys(auths).find((one) => one === address || hostOf(one) === hostOf(address)) ?? address;
  const { auth, identitytoken } = auths[key] ?? {};
  if (identitytoken !== undefined) return { identitytoken, serveraddress: address };
  if (auth === undefined) return undefined;
  const [username = "", ...password] = Buffer.from(auth, "base64").toString().split(":");
  return { username, password: password.join(":"), serveraddress: address };
}

const hostOf = (address: string): string => address.replace(/^https?:\/\//, "").replace(/\/.*$/s, "");

function readConfig(): DockerConfig {
  const folder = process.env["DOCKER_CONFIG"] || join(homedir(), ".docker");
  try {
    return JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as DockerConfig;
  } catch {
    return {}; // there is none, or another program is writing it
  }
}

const run = promisify(execFile);

async function askHelper(helper: string, address: string): Promise<Credentials | undefined> {
  try {
    const asking = run(`docker-credential-${helper}`, ["get"], { timeout: 10_000 });
    asking.child.stdin?.on("error", () => {}).end(address);
    const { Username, Secret } = JSON.parse((await asking).stdout) as Readonly<Record<"Username" | "Secret", string>>;
    return Username === "<token>"
      ? { identitytoken: Secret, serveraddress: address }
      : { username: Username, password: Secret, serveraddress: address };
  } catch {
    return undefined; // the helper is missing, or has nothing for this registry
  }
}
