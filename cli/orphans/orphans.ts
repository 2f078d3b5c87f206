// `pulumi-machines orphans`: finds objects that the service has and no state knows. It changes nothing but the file of
// --import.
import { readFileSync, writeFileSync } from "node:fs";
import { clientFor } from "../../provider/client/connect.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { processJournal } from "../../provider/core/journal.ts";
import { didYouMean } from "../../provider/core/didYouMean.ts";
import { compare, comparedTypes } from "./compare.ts";
import { requireSomething, type ScopeSelection } from "./scopes.ts";
import { importFile, Names } from "./importFile.ts";
import { provenancesOf } from "./provenance.ts";
import { targetsOf, type Target } from "../targets.ts";
import { exportStack, stackConfig } from "../pulumi.ts";
import { jsonOf, textOf, type PlaceReport } from "./report.ts";
import { readState, type StateResource, type StackState } from "../stackState.ts";

/** Options of the command. */
export interface Options {
  readonly stack?: string;
  /** File of an export, `-` for standard input. */
  readonly state?: string;
  /** Files of exports of other stacks. */
  readonly also?: readonly string[];
  readonly app?: readonly string[];
  readonly allApps?: true;
  readonly provider?: string;
  readonly snapshots?: true;
  readonly only?: readonly string[];
  readonly import?: string;
  readonly json?: true;
}

/** The streams that the command writes to. */
export interface Streams {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Milliseconds one place may take. */
const longestLook = 600_000;

/**
 * Compares and reports. Returns the exit code: 0 if nothing was found, 1 if something was, 2 if nothing was found but
 * not everything could be compared.
 * @throws MachinesError `invalid-input`, `configuration` or `refused` for invalid arguments
 */
export async function orphans(options: Options, { out, err }: Streams): Promise<0 | 1 | 2> {
  const wanted = wantedOf(options);
  const state = await stateOf(options);
  if (options.import !== undefined && state.isDynamic) throw new MachinesError("refused", dynamicRefusal);
  const besides = (options.also ?? []).flatMap((file) => readState(textIn(file), file).resources);
  const { places, failures } = await placesFor(options, state, wanted);
  const names = new Names(state.resources);
  const findings: PlaceReport[] = [];
  const refused = [...failures];
  for (const place of places) {
    const own = state.resources.filter(({ provider }) => provider === place.provider?.urn);
    try {
      requireSomething(own, wanted, whatIs(state, place));
      findings.push(await lookInto(place, { state, places, own, besides, wanted, names, warn: err }));
    } catch (error) {
      if (!(error instanceof MachinesError)) throw error;
      refused.push(error.message);
    }
  }
  refused.push(...findings.flatMap((finding) => finding.failures));
  if (findings.length > 0) out(options.json ? jsonOf(state, findings, refused) : textOf(state, findings));
  for (const failure of refused) err(`Not compared: ${failure}`);
  if (options.import !== undefined) writeImports(options.import, findings, err);
  if (findings.some(({ orphans, missing }) => orphans.length + missing.length > 0)) return 1;
  return refused.length > 0 ? 2 : 0;
}

function wantedOf({ app = [], allApps, snapshots, only = [] }: Options): ScopeSelection {
  for (const type of only) {
    if (comparedTypes.includes(type)) continue;
    const meant = didYouMean(type, comparedTypes);
    throw new MachinesError(
      "invalid-input",
      `--only ${type}: no such type is compared${meant === undefined ? `; there are ${comparedTypes.join(", ")}` : `; did you mean ${meant}?`}`,
    );
  }
  return { apps: app, isAll: allApps === true, hasSnapshots: snapshots === true, only };
}

async function stateOf({ stack, state }: Options): Promise<StackState> {
  if (state === undefined) return readState(await exportStack(stack), "the output of `pulumi stack export`");
  return readState(textIn(state), state === "-" ? "standard input" : state);
}

function textIn(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new MachinesError("invalid-input", `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** An export alone says nothing of the stack's configuration: then it is the environment's. */
async function placesFor({ stack, state: file, provider }: Options, state: StackState, wanted: ScopeSelection) {
  const config = file === undefined || stack !== undefined ? await stackConfig(stack) : new Map<string, string>();
  const isAsked = wanted.isAll || wanted.apps.length > 0;
  return targetsOf(state, (key) => config.get(key), process.env, { chosen: provider, isAsked });
}

const whatIs = ({ stack, project }: StackState, { provider }: Target): string =>
  `${stack === undefined ? "the state" : `stack ${stack} of ${project ?? ""}`}${provider ? `, provider ${provider.name},` : ""}`;

interface Looking {
  readonly state: StackState;
  readonly places: readonly Target[];
  readonly own: readonly StateResource[];
  readonly besides: readonly StateResource[];
  readonly wanted: ScopeSelection;
  readonly names: Names;
  readonly warn: (message: string) => void;
}

async function lookInto(
  place: Target,
  { state, places, own, besides, wanted, names, warn }: Looking,
): Promise<PlaceReport> {
  const { config, provider } = place;
  const api = clientFor(config, warn);
  // An object that another provider manages at the same service is no orphan, but the other endpoint may be unknown.
  const elsewhere = new Set(
    places.flatMap((other) => (other.config.endpoint === config.endpoint ? [] : [other.provider?.urn])),
  );
  const held = [...state.resources.filter((one) => !elsewhere.has(one.provider)), ...besides];
  const origins = provenancesOf(config.endpoint, own, { all: state.resources, besides }, processJournal(warn));
  try {
    const at = api.clock.now() + longestLook;
    const found = await compare(api.within({ at, allowed: "10m" }), { own, held, origins }, wanted);
    const orphans = found.orphans.map((orphan) => ({
      orphan,
      // Objects of another stack are not deleted or imported.
      asImport: state.isDynamic || orphan.createdBy === "namesake" ? undefined : names.importOf(orphan, provider),
    }));
    return { ...found, place, orphans };
  } finally {
    await api.close();
  }
}

const dynamicRefusal =
  "--import: the resources of this stack are dynamic ones, and those cannot be imported. Change over to the plugin first (docs/bindings.md, From dynamic to plugin) and run `pulumi up`, or delete the orphans through the service; without --import this lists them";

function writeImports(file: string, findings: readonly PlaceReport[], err: Streams["err"]): void {
  const imports = findings.flatMap(({ orphans }) => orphans.flatMap(({ asImport }) => asImport ?? []));
  if (imports.length === 0) return err(`There is nothing to import: ${file} is not written.`);
  try {
    writeFileSync(file, importFile(imports), { flag: "wx" });
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === "EEXIST" ? "it exists already; choose another" : messageOf(error);
    throw new MachinesError("invalid-input", `--import: ${file} cannot be written: ${why}`, { cause: error });
  }
  err(`${file} is written. Take out what is not to be taken over, then run: pulumi import --file ${file}`);
}
