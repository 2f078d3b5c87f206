// `pulumi-machines orphans`: finds objects that the service has and no state knows. It changes nothing but the file of
// --import, and deletes what --delete names.
import { writeFileSync } from "node:fs";
import { docsUrl } from "../../api/docsUrl.ts";
import { newClient } from "../../provider/client/connect.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { configuredOrganizationProblem } from "../../provider/core/organization.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import { compare, comparedTypes, lookAgain, type Known, type Now, type Orphan } from "./compare.ts";
import { knownAt } from "./known.ts";
import { requireSomething, type ScopeSelection } from "./scopes.ts";
import { chosenImports, importFile, Names, quoted } from "./importFile.ts";
import { targetsOf, type Target } from "../targets.ts";
import { exportStack, stackConfig } from "../pulumi.ts";
import type { Api } from "../../provider/client/api.ts";
import { requireInteractiveTerminal, type Streams } from "../terminal.ts";
import { textIn } from "../textIn.ts";
import { deleteOrphans, type Consent } from "./deletion.ts";
import { noOtherStacks, readOtherStacks, type OtherStacks } from "./otherStacks.ts";
import { jsonOf, textOf, type PlaceReport } from "./report.ts";
import { readState, type StateResource, type StackState } from "../stackState.ts";

/** Options of the command. */
export interface Options extends Consent {
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
  /** Ids of objects to import although another stack created them; that of an App includes all in it. */
  readonly include?: readonly string[];
  /** Ids of the orphans to delete. */
  readonly delete?: readonly string[];
  readonly json?: true;
}

/** The timeout in milliseconds for one endpoint. */
const longestLook = 600_000;

/**
 * Compares and reports. Returns the exit code: 0 if nothing was found, 1 if something was, 2 if nothing was found but
 * not everything could be compared. With --delete: 0 if everything named is deleted, else 1.
 * @param cwd folder that the user named, for commands to copy
 * @throws MachinesError `invalid-input`, `configuration` or `refused` for invalid arguments
 */
export async function orphans(options: Options, streams: Streams, cwd?: string): Promise<0 | 1 | 2> {
  const { err } = streams;
  refuseTogether(options);
  const wanted = wantedOf(options);
  const state = await stateOf(options);
  if (options.import !== undefined && state.isDynamic) throw new MachinesError("refused", dynamicRefusal);
  const besides = (options.also ?? []).flatMap((file) => readState(textIn(file), file).resources);
  const compared = await findOrphans(options, { state, besides, wanted }, err);
  const { findings, refused } = compared;
  try {
    if (options.delete === undefined) return report({ state, findings, refused }, { ...options, cwd }, streams);
    for (const failure of refused) err(`Not compared: ${failure}`);
    return await deleteOrphans(options.delete, { state, besides, ...compared }, options, streams);
  } finally {
    await compared.close();
  }
}

/** The findings for every endpoint, and what could not be compared. */
interface Compared {
  readonly findings: readonly PlaceReport[];
  readonly refused: readonly string[];
  /** Reads all stacks again. The result looks at one orphan again. */
  readonly readAgain: () => Promise<(finding: PlaceReport, orphan: Orphan) => Promise<Now>>;
  /** Closes the connections of the findings. */
  readonly close: () => Promise<unknown>;
}

interface Compare {
  readonly state: StackState;
  /** Resources of stacks that the user gave. */
  readonly besides: readonly StateResource[];
  readonly wanted: ScopeSelection;
}

/** Compares a state with every endpoint that it uses. A failure there does not keep the others from being compared. */
export async function findOrphans(
  options: Pick<Options, "stack" | "state" | "provider">,
  { state, besides, wanted }: Compare,
  warn: (message: string) => void,
): Promise<Compared> {
  const { places, failures } = await placesFor(options, state, wanted);
  const others = await othersOf(options);
  const findings: PlaceReport[] = [];
  const refused = [...failures, ...others.failures];
  const clients = new Set<Api>();
  const close = () => Promise.all([...clients].map((api) => api.close()));
  const readAgain = async () => {
    const now = { state: await stateOf(options), others: await othersOf(options) };
    return async ({ api, place }: PlaceReport, orphan: Orphan): Promise<Now> =>
      lookAgain(within(api), knownAt(place, { ...now, places, besides, warn }), orphan);
  };
  const names = new Names(state.resources);
  try {
    for (const place of places) {
      const known = knownAt(place, { state, places, besides, others, warn });
      try {
        requireSomething(known.own, wanted, whatIs(state, place));
        const api = newClient(place.config, warn);
        clients.add(api);
        // Its Apps could be read nevertheless, and nothing would belong to it.
        const problem = await configuredOrganizationProblem(api);
        if (problem !== undefined) throw new MachinesError("configuration", problem);
        findings.push(await lookInto(place, { api, state, known, others, wanted, names }));
      } catch (error) {
        if (!(error instanceof MachinesError)) throw error;
        refused.push(error.message);
      }
    }
  } catch (error) {
    await close();
    throw error;
  }
  refused.push(...findings.flatMap((finding) => finding.failures));
  return { findings, refused, readAgain, close };
}

/** The other stacks of the backend; those of a project where an export is compared are unknown. */
const othersOf = ({ stack, state }: Pick<Options, "stack" | "state">): Promise<OtherStacks> =>
  state === undefined ? readOtherStacks(stack) : Promise.resolve(noOtherStacks);

const within = (api: Api): Api => api.within({ at: api.clock.now() + longestLook, allowed: "10m" });

interface Found {
  readonly state: StackState;
  readonly findings: readonly PlaceReport[];
  readonly refused: readonly string[];
}

function report({ state, findings, refused }: Found, options: Options & Scope, { out, err }: Streams): 0 | 1 | 2 {
  const command = deletionCommand(options, findings);
  // Programs read the object, also one without findings.
  if (options.json || findings.length > 0)
    out(
      options.json
        ? jsonOf(state, findings, { failures: refused, command })
        : textOf(state, findings, { command, isWriting: options.import !== undefined }),
    );
  for (const failure of refused) err(`Not compared: ${failure}`);
  if (options.import !== undefined) writeImports(options.import, options.include, findings, err);
  if (findings.some(({ orphans, missing }) => orphans.length + missing.length > 0)) return 1;
  return refused.length > 0 ? 2 : 0;
}

/** Options that go with another one only, or never. */
function refuseTogether(options: Options): void {
  const { delete: ids, confirm = [], allowDataLoss, yes, state, import: file, include, app, allApps, json } = options;
  const wrong = (message: string): never => {
    throw new MachinesError("invalid-input", message);
  };
  if (app !== undefined && allApps) wrong("--app and --all-apps cannot be combined: --all-apps compares every App");
  if (include !== undefined && file === undefined) wrong("--include goes with --import");
  if (ids === undefined && allowDataLoss) wrong("--allow-data-loss goes with --delete");
  if (ids === undefined && yes) wrong("--yes goes with --delete; without it, nothing is changed");
  for (const id of confirm) if (!(ids ?? []).includes(id)) wrong(`--confirm ${id}: --delete does not name this ID`);
  if (ids === undefined) return;
  if (file !== undefined) wrong("--import and --delete cannot be combined: adopt the orphans, or delete them");
  if (json) wrong("--json and --delete cannot be combined");
  if (state !== undefined)
    wrong(
      "--state and --delete cannot be combined: an export may be older than the stack. Run this in the project, without --state",
    );
  requireInteractiveTerminal({ ...(yes && { yes }) }, "add --yes to delete without a question");
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

/** An export alone has no stack configuration: then the environment's is used. */
async function placesFor({ stack, state: file, provider }: Options, state: StackState, wanted: ScopeSelection) {
  const config = file === undefined || stack !== undefined ? await stackConfig(stack) : new Map<string, string>();
  const isAsked = wanted.isAll || wanted.apps.length > 0;
  return targetsOf(state, (key) => config.get(key), process.env, { chosen: provider, isAsked });
}

const whatIs = ({ stack, project }: StackState, { provider }: Target): string =>
  `${stack === undefined ? "the state" : `stack ${stack} of ${project ?? ""}`}${provider ? `, provider ${provider.name},` : ""}`;

interface Looking {
  readonly api: Api;
  readonly state: StackState;
  readonly known: Known;
  readonly others: OtherStacks;
  readonly wanted: ScopeSelection;
  readonly names: Names;
}

async function lookInto(place: Target, { api, state, known, others, wanted, names }: Looking): Promise<PlaceReport> {
  const { provider } = place;
  const found = await compare(within(api), known, wanted);
  const orphans = found.orphans.map((orphan) => {
    // Objects of another stack are not deleted or imported, nor are those of a stack that could not be read.
    const isOfOthers = orphan.createdBy === "namesake" || orphan.belongsTo !== undefined;
    const mayBeOfOthers = isOfOthers || others.unread.length > 0;
    return { orphan, asImport: state.isDynamic || mayBeOfOthers ? undefined : names.importOf(orphan, provider) };
  });
  return { ...found, api, place, orphans };
}

const dynamicRefusal = `--import: the resources of this stack are dynamic ones, and those cannot be imported. Change over to the plugin first (${docsUrl("bindings.md#from-dynamic-to-plugin")}) and run \`pulumi up\`, or delete the orphans with --delete. Without --import, this command lists them.`;

function writeImports(
  file: string,
  include: readonly string[] | undefined,
  findings: readonly PlaceReport[],
  err: Streams["err"],
): void {
  const { imports, leftOut } = chosenImports(
    findings.map(({ orphans }) => orphans),
    include,
  );
  if (leftOut.length > 0)
    err(
      `Left out, because Pulumi created them for another stack: ${leftOut.map(({ text }) => text).join(", ")}. ` +
        `If that stack is gone, or its state is lost, add --include ${leftOut.map(({ id }) => quoted(id)).join(" ")}`,
    );
  if (imports.length === 0) return err(`There is nothing to import: ${file} is not written.`);
  try {
    writeFileSync(file, importFile(imports), { flag: "wx" });
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === "EEXIST" ? "it exists already; choose another" : messageOf(error);
    throw new MachinesError("invalid-input", `--import: ${file} cannot be written: ${why}`, { cause: error });
  }
  err(`${file} is written. Remove what must not be adopted, then run: pulumi import --file ${file}`);
}

/** The options that decide what is compared, and where. */
interface Scope {
  readonly cwd?: string | undefined;
}

/**
 * The command that deletes an orphan, to be copied. It compares the same as this run did. An id that several types have is told
 * apart by its type.
 */
function deletionCommand(options: Options & Scope, findings: readonly PlaceReport[]): (orphan: Orphan) => string {
  const { cwd, stack, app = [], allApps, provider, also = [] } = options;
  const scope = [
    ...(cwd === undefined ? [] : ["--cwd", cwd]),
    ...(stack === undefined ? [] : ["--stack", stack]),
    ...app.flatMap((name) => ["--app", name]),
    ...(allApps ? ["--all-apps"] : []),
    ...(provider === undefined ? [] : ["--provider", provider]),
    ...also.flatMap((file) => ["--also", file]),
  ];
  const all = findings.flatMap(({ orphans }) => orphans.map(({ orphan }) => orphan));
  return ({ id, kind }) => {
    const isShared = all.some((other) => other.id === id && other.kind !== kind);
    const only = isShared ? ["--only", kind.type] : [];
    return ["npx", "pulumi-machines", "orphans", ...scope, ...only, "--delete", id].map(quoted).join(" ");
  };
}
