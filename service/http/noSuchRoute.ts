// The answer to a request for a path that does not exist.
import type { FastifyInstance } from "fastify";
import { Refusal, refuse } from "../refusal.ts";

const patternOf = (url: string): RegExp =>
  new RegExp(`^${url.replaceAll(".", "\\.").replaceAll("*", ".*").replace(/:\w+/g, "[^/]+")}$`);

/** How many parts of a path may be anything; those with fewer are more specific: `certificates/acme` is not a hostname. */
const freedom = (url: string): number => url.split(":").length + (url.includes("*") ? 100 : 0);

/**
 * Makes the refusal of a request without a route, for the routes that are added to the server from now on. ASSUMED: a path that has
 * other methods is 405 and names them.
 */
export function refuserOf(
  app: FastifyInstance,
): (request: { readonly url: string; readonly method: string }) => Refusal {
  const methods = new Map<string, string[]>();
  app.addHook("onRoute", ({ url, method }) => {
    const named = [method].flat().filter((one) => one !== "HEAD");
    methods.set(url, [...(methods.get(url) ?? []), ...named]);
  });
  let paths: readonly { readonly pattern: RegExp; readonly methods: readonly string[] }[] | undefined;
  return ({ url, method }) => {
    paths ??= [...methods]
      .sort(([a], [b]) => freedom(a) - freedom(b))
      .map(([path, allowed]) => ({ pattern: patternOf(path), methods: allowed }));
    const asked = url.split("?", 1)[0] ?? "";
    const allow = paths.find(({ pattern }) => pattern.test(asked))?.methods.join(", ");
    if (allow === undefined) return refuse(404, "no such route");
    return new Refusal(405, { error: `${method} is not allowed here, allowed are ${allow}` }, { allow });
  };
}
