// The answer to a request for a path that does not exist.
import { operationsById } from "../faults/faults.ts";
import { metaPaths } from "../openapi/metaPaths.ts";
import { Refusal, refuse } from "../refusal.ts";

const ways = [...operationsById.values(), ...metaPaths.map((path) => ({ path, method: "GET" }))];

const patternOf = (path: string): RegExp => new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`);

// The most specific ones first: `certificates/acme` is not a hostname.
const paths = [...new Set(ways.map(({ path }) => path))]
  .sort((a, b) => a.split("{").length - b.split("{").length)
  .map((path) => ({
    pattern: patternOf(path),
    methods: ways.filter((way) => way.path === path).map(({ method }) => method),
  }));

/** The refusal of a request without a route. ASSUMED: a path that has other methods is 405 and names them. */
export function noSuchRoute({ url, method }: { readonly url: string; readonly method: string }): Refusal {
  const asked = url.split("?", 1)[0] ?? "";
  const allow = paths.find(({ pattern }) => pattern.test(asked))?.methods.join(", ");
  if (allow === undefined) return refuse(404, "no such route");
  return new Refusal(405, { error: `${method} is not allowed here, allowed are ${allow}` }, { allow });
}
