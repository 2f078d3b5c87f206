// One object of a service, or an App with all in it, as a program and as the command that imports it.
import { setImmediate } from "node:timers/promises";
import type { Api } from "../../provider/client/api.ts";
import { orUndefined } from "../../provider/client/existence.ts";
import { readOneByOne } from "../../provider/client/listCache.ts";
import { emptyJournal } from "../../provider/core/journal.ts";
import { read } from "../../provider/core/verbs/index.ts";
import { newPass } from "../../provider/core/listing.ts";
import { Run } from "../../provider/core/run/run.ts";
import { ownerTag } from "../../provider/machines/create.ts";
import { fleetOf } from "../../provider/machines/live.ts";
import { resources } from "../../provider/registry.ts";
import type { ObjectCode } from "../../service/console/code.ts";
import { importCommand, importFile, quoted } from "../orphans/importFile.ts";
import { noOtherStacks } from "../orphans/otherStacks.ts";
import { importableTypes, type ListedType } from "../orphans/listing.ts";
import { emptyState } from "../stackState.ts";
import { discover, nameOf, ofAnotherStack, type Discovery, type Found } from "./discovery.ts";
import { go } from "./languages/go.ts";
import { python } from "./languages/python.ts";
import { typescript } from "./languages/typescript.ts";
import { yaml } from "./languages/yaml.ts";
import { limitsOf, withinLimits } from "./limits.ts";
import { importsOf, namesOf, programOf } from "./model.ts";
import type { Program } from "./program.ts";

/** An object as code, without the request that shows it. */
type Code = Omit<ObjectCode, "path">;

// ASSUMED: the program of an App with more Machines and volumes is not copied from a page. Reading them all would keep the
// service busy, so only the command does that.
const mostInApp = 500;

/** Pulumi would print a program of its own. */
const withoutProgram = "--generate-code=false";

/**
 * One object; undefined if it does not exist. Nothing else is read, except the Machines of an App for a fleet.
 * @throws MachinesError if it cannot be read
 */
export async function codeOfObject(api: Api, kind: ListedType, id: string): Promise<Code | undefined> {
  const { type } = kind;
  const [place = "", last = ""] = id.split("/");
  const key = `${type} ${id}`;
  if (type === "Fleet" && (await isLarge(api, place))) {
    const found = { ...{ key, type, id, inputs: {} }, name: last, held: undefined };
    return { programs: null, settings: [], importCommand: importOf(found), remarks: [tooLarge(place)] };
  }
  const { fleet, isOfStack } = await originOf(api, kind, id);
  const fleets = importableTypes.get("Fleet");
  if (fleet !== undefined && fleets !== undefined) {
    const code = await codeOfObject(api, fleets, `${place}/${fleet}`);
    const remark = `${key} belongs to Fleet ${place}/${fleet}. Programs declare only the fleet, so this is its code.`;
    return code && { ...code, remarks: [remark, ...code.remarks] };
  }
  if (type === "Machine" || type === "Volume") readOneByOne(api, place);
  const resource = resources[type];
  const caller = { api, run: new Run(() => emptyJournal), progress: () => undefined, warn: () => undefined };
  const seen = resource && (await read(resource, id, undefined, caller));
  if (!seen) return undefined;
  const found = { ...{ key, type, id, name: nameOf(undefined, seen.inputs) }, inputs: seen.inputs, held: undefined };
  const warnings = isOfStack ? [ofAnotherStack(key)] : [];
  return codeOf({ found: [found], remarks: [], warnings }, importOf(found));
}

/** An App and all in it, as `pulumi-machines import --app` writes it. @throws MachinesError if it cannot be read, or does not exist */
export async function codeOfApp(api: Api, name: string): Promise<Code> {
  if (await isLarge(api, name)) {
    const importCommand = `npx pulumi-machines import --app ${quoted(name)} --out ${quoted(name)}`;
    return { programs: null, settings: [], importCommand, remarks: [tooLarge(name)] };
  }
  const wanted = { apps: [name], hasSnapshots: false, journal: emptyJournal };
  const discovery = await discover(api, { state: emptyState, others: noOtherStacks }, wanted, () => undefined);
  const { found, remarks } = discovery;
  const file = importFile(importsOf(found, namesOf(found)));
  return codeOf(
    { ...discovery, remarks: [...remarks, ...leftOut] },
    `cat > import.json <<'EOF'\n${file}EOF\npulumi import --file import.json ${withoutProgram}`,
  );
}

const leftOut: readonly string[] = [
  "Postgres clusters: they belong to the organization, and not to the App.",
  "Snapshots of volumes: the service creates most of them.",
  "Deploy tokens: the service does not list them.",
];

async function codeOf(discovery: Discovery, importCommand: string): Promise<Code> {
  const program = withinLimits(programOf(discovery), limitsOf.all, { exists: true });
  // A large program takes a while. Other requests are served between the languages.
  const written = async (write: (one: Program) => string): Promise<string> => {
    await setImmediate();
    return write(program);
  };
  return {
    programs: {
      typescript: await written((one) => typescript(one, "plugin")),
      python: await written(python),
      go: await written(go),
      yaml: await written((one) => yaml(withinLimits(one, limitsOf.yaml, { exists: true }))),
    },
    settings: program.settings.flatMap(({ key, isSecret }) => (isSecret ? [`pulumi config set --secret ${key}`] : [])),
    importCommand,
    remarks: [...discovery.warnings, ...program.remarks],
  };
}

/** The command that imports one object under its name in the program. */
const importOf = (found: Found): string =>
  importsOf([found], namesOf([found]))
    .map((one) => `${importCommand(one)} ${withoutProgram}`)
    .join("\n");

interface Origin {
  /** Name of the fleet that an object is a part of. */
  readonly fleet?: string | undefined;
  /** Whether it has the tags of a resource. */
  readonly isOfStack: boolean;
}

async function originOf(api: Api, { type, id: format, objects }: ListedType, id: string): Promise<Origin> {
  const { app: appName = "", machineId = "", volumeId = "" }: Readonly<Record<string, string>> = format.parse(id);
  if (type === "Machine") {
    const live = await api.machines.get({ appName, machineId });
    return { fleet: fleetOf(live), isOfStack: hasOwner(live.config?.metadata) };
  }
  if (type === "Volume") {
    const { attachedMachineId } = await api.volumes.get({ appName, volumeId });
    if (!attachedMachineId) return { isOfStack: false };
    const user = await orUndefined(() => api.machines.get({ appName, machineId: attachedMachineId }));
    return { fleet: user && fleetOf(user), isOfStack: false };
  }
  if (type !== "Fleet") return { isOfStack: false };
  const fleets = await objects(newPass(api), appName);
  return { isOfStack: fleets.some(({ parts, metadata }) => format.render(parts) === id && hasOwner(metadata)) };
}

const hasOwner = (metadata: Readonly<Record<string, string>> | undefined): boolean =>
  metadata?.[ownerTag] !== undefined;

async function isLarge(api: Api, appName: string): Promise<boolean> {
  const { machineCount = 0, volumeCount = 0 } = await api.apps.get({ appName });
  return machineCount + volumeCount > mostInApp;
}

const tooLarge = (app: string): string =>
  `App ${app} has more than ${mostInApp} Machines and volumes, so this page writes no program. Run: npx pulumi-machines import --app ${app}`;
