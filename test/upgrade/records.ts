// What is kept of a version: the state of a stack in both bindings, and what the engine and the plugin said to each other,
// without what differs from one recording to the next for no reason.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder with one folder for every recorded version. */
export const folder = join(process.cwd(), "test/upgrade");

/** Stands in the records where the service was, and another spelling of it that makes it another place. */
const recorded = { host: "127.0.0.1:4280", otherHost: "localhost:4280", token: "recorded-token" } as const;

/** Where a service really is. */
interface Place {
  readonly url: string;
  readonly token: string;
}

/** The same service under another name: for the provider, another place. */
export const elsewhere = (url: string): string => url.replace("127.0.0.1", "localhost");

const spellings = ({ url, token }: Place): (readonly [recorded: string, real: string])[] => [
  [recorded.host, new URL(url).host],
  [recorded.otherHost, new URL(elsewhere(url)).host],
  [recorded.token, token],
];

/** A text with the service's address and token taken out. */
export const settled = (text: string, place: Place): string =>
  spellings(place).reduce((changed, [fixed, real]) => changed.replaceAll(real, fixed), text);

/** A recorded text with the address and token of a service put in. */
export const placedAt = (text: string, place: Place): string =>
  spellings(place).reduce((changed, [fixed, real]) => changed.replaceAll(fixed, real), text);

/** One question of the engine's to the plugin and its answer, as Pulumi writes them to its debug log. */
export interface Call {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly response?: Readonly<Record<string, unknown>>;
  readonly errors?: readonly string[];
}

/** What one run of the CLI led to: the calls about one resource together, in their order. */
export interface Operation {
  readonly operation: string;
  readonly calls: readonly Call[];
}

/** The recorded conversation of a version. */
export const conversationOf = (version: string): Operation[] =>
  JSON.parse(readFileSync(join(folder, version, "grpc.json"), "utf8")) as Operation[];

const aboutProviders = ["checkConfig", "diffConfig", "configure"];
const aboutResources = ["check", "diff", "create", "read", "update", "delete"];

/** The calls in a debug log of Pulumi's (`PULUMI_DEBUG_GRPC`). */
export function callsIn(log: string): Call[] {
  interface Entry extends Call {
    readonly progress: string;
    readonly metadata?: { readonly name?: string; readonly mode?: string };
  }
  const calls = log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry)
    .filter(({ metadata, progress }) => metadata?.name === "machines" && progress === "response_completed")
    .map(({ method, request, response, errors }): Call => {
      const name = method.slice(method.lastIndexOf("/") + 1);
      const { resourceStatusAddress: _, resourceStatusToken: __, ...rest } = request;
      return {
        method: name.charAt(0).toLowerCase() + name.slice(1),
        request: rest,
        ...(errors ? { errors } : { response: response ?? {} }),
      };
    });
  const urnOf = ({ request }: Call): string => String(request["urn"]);
  return [aboutProviders, aboutResources].flatMap((methods) =>
    calls
      .filter(({ method }) => methods.includes(method))
      .toSorted((a, b) => (urnOf(a) < urnOf(b) ? -1 : urnOf(a) > urnOf(b) ? 1 : 0)),
  );
}

const repeated = ["checkConfig", "diffConfig", "check", "diff"];

/** Operations without the checks and diffs that were asked before and answered the same. */
export function withoutRepetitions(operations: readonly Operation[]): Operation[] {
  const seen = new Set<string>();
  return operations.map(({ operation, calls }) => ({
    operation,
    calls: calls.filter(({ method, request: { randomSeed: _, ...request }, response }) => {
      const key = JSON.stringify([method, request, response]);
      const repeats = repeated.includes(method) && seen.has(key);
      seen.add(key);
      return !repeats;
    }),
  }));
}

/** A line for every request and every response. */
export const conversationText = (operations: readonly Operation[]): string =>
  `[\n${operations
    .map(
      ({ operation, calls }) =>
        `{ "operation": ${JSON.stringify(operation)}, "calls": [\n${calls
          .map(
            ({ method, request, ...answer }) =>
              `{ "method": "${method}",\n  "request": ${JSON.stringify(request)},\n  ${JSON.stringify(answer).slice(1, -1)} }`,
          )
          .join(",\n")}\n] }`,
    )
    .join(",\n")}\n]\n`;

/** A resource of an exported stack, as far as it matters here. */
interface Exported {
  readonly urn: string;
  readonly parent?: string;
  readonly provider?: string;
  readonly dependencies?: readonly string[];
  readonly propertyDependencies?: Readonly<Record<string, readonly string[]>>;
}

/** What `pulumi stack export` writes. */
interface Export {
  readonly version: number;
  readonly deployment: { readonly manifest: object; readonly resources: readonly Exported[] };
}

/** An exported stack without times and places in sources, everything in an order that depends on the program alone. */
export function stateText(exported: string): string {
  const { deployment, ...rest } = JSON.parse(exported) as Export;
  const manifest = { ...deployment.manifest, time: undefined, plugins: undefined };
  const resources = inOrder(deployment.resources).map((resource) => ({
    ...resource,
    dependencies: resource.dependencies?.toSorted(),
    propertyDependencies:
      resource.propertyDependencies &&
      Object.fromEntries(Object.entries(resource.propertyDependencies).map(([name, urns]) => [name, urns.toSorted()])),
    created: undefined,
    modified: undefined,
    sourcePosition: undefined,
    stackTrace: undefined,
  }));
  return `${JSON.stringify({ ...rest, deployment: { ...deployment, manifest, resources } }, null, 1)}\n`;
}

/** An exported stack without one of its resources. */
export function withoutResource(exported: string, name: string): string {
  const { deployment, ...rest } = JSON.parse(exported) as Export;
  const resources = deployment.resources.filter(({ urn }) => !urn.endsWith(`::${name}`));
  return JSON.stringify({ ...rest, deployment: { ...deployment, resources } });
}

/** What a resource needs comes before it, and names decide the rest. */
function inOrder(resources: readonly Exported[]): Exported[] {
  const left = resources.toSorted((a, b) => (a.urn < b.urn ? -1 : 1));
  const placed: Exported[] = [];
  const isPlaced = (urn: string): boolean => placed.some((before) => before.urn === urn);
  while (left.length > 0) {
    const next = left.findIndex(({ parent = "", provider = "", dependencies = [] }) =>
      [parent, provider.slice(0, provider.lastIndexOf("::")), ...dependencies].every(
        (urn) => urn === "" || isPlaced(urn),
      ),
    );
    if (next < 0) throw new Error(`what these resources need is not there: ${left.map(({ urn }) => urn).join(", ")}`);
    placed.push(...left.splice(next, 1));
  }
  return placed;
}
