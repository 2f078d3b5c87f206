// The record of a version: the state of a stack in both bindings, and the calls between engine and plugin, without
// irrelevant differences between recordings.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder that has one folder for every recorded version. */
export const folder = join(process.cwd(), "test/upgrade");

/** Replaces the service's address in the records, and an alias of it that counts as another endpoint. */
const recorded = { host: "127.0.0.1:4280", otherHost: "localhost:4280", token: "recorded-token" } as const;

/** The real address of a service. */
interface Place {
  readonly url: string;
  readonly token: string;
}

/** The same service under another name: the provider treats it as another endpoint. */
export const elsewhere = (url: string): string => url.replace("127.0.0.1", "localhost");

const spellings = ({ url, token }: Place): (readonly [recorded: string, real: string])[] => [
  [recorded.host, new URL(url).host],
  [recorded.otherHost, new URL(elsewhere(url)).host],
  [recorded.token, token],
];

/** A text without the service's address and token. */
export const settled = (text: string, place: Place): string =>
  spellings(place).reduce((changed, [fixed, real]) => changed.replaceAll(real, fixed), text);

/** A recorded text with the address and token of a service filled in. */
export const placedAt = (text: string, place: Place): string =>
  spellings(place).reduce((changed, [fixed, real]) => changed.replaceAll(fixed, real), text);

/** One call of the engine to the plugin and its answer, as Pulumi writes them to its debug log. */
export interface Call {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly response?: Readonly<Record<string, unknown>>;
  readonly errors?: readonly string[];
}

/** The calls of one CLI run, grouped by resource, in their order. */
export interface Operation {
  readonly operation: string;
  readonly calls: readonly Call[];
}

/** The recorded conversation of a version. */
export const conversationOf = (version: string): Operation[] =>
  JSON.parse(readFileSync(join(folder, version, "grpc.json"), "utf8")) as Operation[];

const aboutProviders = ["checkConfig", "diffConfig", "configure"];
const aboutResources = ["check", "diff", "create", "read", "update", "delete"];

/** The calls in a Pulumi debug log (`PULUMI_DEBUG_GRPC`). */
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

/** Operations without repeated checks and diffs that got the same answer. */
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

/** One line for every request and every response. */
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

/** The relevant part of a resource in an exported stack. */
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

/** An exported stack without times and source positions, in an order that depends only on the program. */
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

/** Dependencies come first; names decide the rest. */
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
