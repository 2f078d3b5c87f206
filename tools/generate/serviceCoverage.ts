// docs/service-coverage.md: every operation of the contract, its answers, and the tests that request it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";

/** A request in a test: the segments of its path from the end, `undefined` for a variable part. */
interface Asked {
  readonly method: string;
  readonly segments: readonly (string | undefined)[];
}

const call = /\(\s*"(GET|POST|PUT|PATCH|DELETE)",\s*(?:"([^"]*)"|`([^`]*)`|(\w+)\b)/g;

/** Paths of lists by the name of the variable that stands for one. */
type Lists = ReadonlyMap<string, string>;

/** Paths that a file names: `const at = "/orgs/personal/machines"`. */
const pathsIn = (text: string): Lists =>
  new Map(
    [...text.matchAll(/\bconst (\w+) = (?:"(\/[^"]*)"|`((?:\/|\$\{)[^`]*)`)/g)].map(
      ([, name = "", quoted, template]) => [name, quoted ?? template ?? ""],
    ),
  );

/** `${machines}/${id}/stop` as segments. */
function segmentsOf(path: string, lists: Lists, named: Lists): (string | undefined)[] {
  const begin = /^\$\{(\w+)\}/;
  const full = path.replace(begin, (whole, name: string) => named.get(name) ?? whole);
  const plain = full
    .replace(/\?.*$/, "")
    .replace(begin, (_, name: string) => (lists.has(name) ? (lists.get(name) ?? "") : "\0"));
  return plain
    .replace(/\$\{[^}]*\}/g, "\0")
    .split("/")
    .filter((segment) => segment !== "" && segment !== "v1")
    .map((segment) => (segment.includes("\0") ? undefined : segment));
}

/** Tests that request every operation. */
const asksAll = new Set(["openapi.test.ts", "schemathesis.test.ts"]);

function askedIn(text: string, lists: Lists): Asked[] {
  const named = pathsIn(text);
  return [...text.matchAll(call)].map(([, method = "", quoted, template, variable]) => ({
    method,
    segments: segmentsOf(quoted ?? template ?? `\${${variable}}`, lists, named),
  }));
}

/** Whether a request is one of that operation, as far as its text shows. */
function asks({ method, segments }: Asked, row: Operation): boolean {
  const wanted = row.path.split("/").filter((segment) => segment !== "" && segment !== "v1");
  const open = segments[0] === undefined || segments.length < wanted.length;
  if (method !== row.method || segments.length > wanted.length || (!open && segments.length !== wanted.length))
    return false;
  const pairs = segments.map((segment, i) => [segment, wanted[wanted.length - segments.length + i] ?? ""] as const);
  const isParameter = (segment: string): boolean => segment.startsWith("{");
  const fits = pairs.every(([segment, other], i) =>
    segment === undefined ? isParameter(other) || i === 0 : isParameter(other) || segment === other,
  );
  const last = wanted.at(-1) ?? "";
  const named = pairs.some(([segment, other]) => segment !== undefined && segment === other);
  return fits && named && (isParameter(last) || pairs.at(-1)?.[0] === last);
}

function testFiles(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return testFiles(root, path);
      return entry.name.endsWith(".test.ts") ? [path] : [];
    });
}

/** The page. */
export function serviceCoverage(root: string): string {
  const rows: readonly Operation[] = Object.values(contract).flatMap((group): Operation[] => Object.values(group));
  const lists = new Map<string, string>();
  for (const { path } of rows) {
    const [, ofApp] = /^\/v1\/apps\/\{\w+\}\/([a-z_]+)$/.exec(path) ?? [];
    const [, last] = /\/([a-z_]+)$/.exec(path) ?? [];
    if (ofApp !== undefined) lists.set(ofApp, `/apps/\0/${ofApp}`);
    else if (last !== undefined && !lists.has(last)) lists.set(last, `\0/${last}`);
  }
  const tests = testFiles(root, "test/service")
    .map((path) => ({ name: path.replace("test/service/", ""), text: readFileSync(join(root, path), "utf8") }))
    .filter(({ name }) => !asksAll.has(name))
    .map(({ name, text }) => ({ name, text, asked: askedIn(text, lists) }));
  const testsOf = (row: Operation): string => {
    const found = tests.filter(
      ({ text, asked }) => text.includes(`"${row.id}"`) || asked.some((one) => asks(one, row)),
    );
    const own = found.filter(({ name }) => name.startsWith("spec/"));
    return (own.length > 0 ? own : found).map(({ name }) => `[${name}](../test/service/${name})`).join(", ");
  };
  const line = (row: Operation): string => {
    const done = [row.status, ...Object.keys(row.otherSuccesses ?? {})].join(", ");
    const cells = [
      `\`${row.id}\``,
      `${row.method} \`${row.path}\``,
      done,
      Object.keys(row.failures).join(", "),
      testsOf(row),
    ];
    return `| ${cells.join(" | ")} |`;
  };
  const untested = Object.entries(contract).filter(
    ([, of]) => !(Object.values(of) as Operation[]).some((row) => testsOf(row).includes("(../test/service/spec/")),
  );
  if (untested.length > 0)
    throw new Error(`no test in test/service/spec requests ${untested.map(([group]) => group).join(", ")}`);
  const sections = Object.entries(contract).map(([group, of]) => {
    const head = "| operation | request | done | failures | tests |\n|---|---|---|---|---|";
    return `## ${group}\n\n${head}\n${(Object.values(of) as Operation[]).map(line).join("\n")}\n`;
  });
  return `<!-- Generated by \`npm run generate\` from api/ and test/service: do not edit. -->

# Coverage of the service

All ${rows.length} operations of the interface. Each has a rule: a missing one does not compile. [operations.md](operations.md)
describes their effects and failures. Every operation also answers 401 without a known token, 403 if the token does not allow it,
400 (422 for Postgres) for a bad parameter, 429 beyond a rate limit, and 503 when the service is closing or cannot write its store.
The last column lists the tests that were written from [interface.md](interface.md) and send the request. Where there is none, it
lists other tests in test/service that do. Tests of all operations: test/service/openapi.test.ts and test/service/schemathesis.test.ts,
and test/attacks/authorization.test.ts for every kind of token.

${sections.join("\n")}`;
}
