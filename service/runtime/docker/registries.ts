// The registries that the engine fetches images from. A client chooses the name of an image, and the engine connects to the registry in
// it, so a name could lead into the networks of the operator.
import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { isPublic } from "./addresses.ts";

/** Means every registry that is on the internet. */
const anyPublic = "public";

/** The registry of images without one. */
export const usualRegistry = "docker.io";

const form = /^(?:[a-z0-9]+(?:[.-][a-z0-9]+)*|\[[0-9a-f:]+\])(?::\d{1,5})?$/;

/** Whether a text names a registry, or all public ones. */
export const isRegistryName = (text: string): boolean => form.test(text.toLowerCase());

/** The registries that may be asked. */
export class Registries {
  readonly #names: ReadonlySet<string>;

  /** By default every one that is on the internet. */
  constructor(names: readonly string[] = [anyPublic]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /**
   * Why a registry is not asked, as a sentence; undefined if it may be. It is the same for one that does not exist, so that it says
   * nothing about networks here.
   */
  async problem(registry: string): Promise<string | undefined> {
    const name = registry.toLowerCase();
    if (this.#names.has(name)) return undefined;
    if (this.#names.has(anyPublic) && (name === usualRegistry || (await isOnInternet(hostOf(name))))) return undefined;
    return `the service does not use the registry ${name}: the operator has not allowed it, and it is not known to be on the internet`;
  }
}

const hostOf = (registry: string): string => registry.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");

/** Whether all addresses of a host are on the internet. The engine looks it up again (docs/security.md#containers). */
async function isOnInternet(host: string): Promise<boolean> {
  if (isIP(host) !== 0) return isPublic(host);
  // A name without a dot is completed by the domain of this computer.
  if (!host.includes(".") || (await isInHostsFile(host))) return false;
  const found = await addressesOf(host);
  return found.length > 0 && found.every(isPublic);
}

const notThere: readonly string[] = ["ENOTFOUND", "ENODATA"];

/** Not by `dns.lookup`: a few slow names would keep its threads, which the whole service needs. */
async function addressesOf(host: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  const read = (asking: Promise<string[]>): Promise<string[]> =>
    asking.catch((error: unknown) => {
      if (error instanceof Error && "code" in error && notThere.includes(String(error.code))) return [];
      throw error;
    });
  try {
    return (await Promise.all([read(resolver.resolve4(host)), read(resolver.resolve6(host))])).flat();
  } catch {
    return []; // what cannot be looked up may be anywhere
  }
}

async function isInHostsFile(host: string): Promise<boolean> {
  const text = await readFile("/etc/hosts", "utf8").catch(() => "");
  return text
    .split("\n")
    .some((line) => line.replace(/#.*/, "").toLowerCase().trim().split(/\s+/).slice(1).includes(host));
}

// What a registry answers is its own text, or that of a server that it sends the engine to. So the text only selects a reason.
const reasons: readonly (readonly [RegExp, string])[] = [
  [/no basic auth credentials|unauthorized|authentication required|denied|forbidden/i, "the registry denies access"],
  [/manifest unknown|name unknown|not found|does not exist/i, "the registry has no such image"],
  [/too ?many ?requests|rate limit/i, "the registry limits requests; try again later"],
  [/no matching manifest|no match for platform/i, "the image is not for this kind of computer"],
  [/no space left on device/i, "no space left on device"],
];

/** Why an image could not be fetched, by what the engine said about it. */
export const fetchProblem = (said: string): string =>
  reasons.find(([pattern]) => pattern.test(said))?.[1] ??
  "the registry could not be reached; the log of the service has the reason";
