// Reports orphans as text and as JSON.
import { docsUrl } from "../../api/docsUrl.ts";
import { quotable } from "../../api/printable.ts";
import type { Compared, HeldElsewhere, Orphan } from "./compare.ts";
import { importCommand, quoted, type ReportedOrphan } from "./importFile.ts";
import type { Api } from "../../provider/client/api.ts";
import { tableOf, type Cell } from "../style.ts";
import { stackText } from "./otherStacks.ts";
import type { Target } from "../targets.ts";
import type { StateResource, StackState } from "../stackState.ts";

/** The findings for one endpoint. */
export interface PlaceReport extends Omit<Compared, "orphans"> {
  readonly place: Target;
  readonly api: Api;
  readonly orphans: readonly ReportedOrphan[];
}

const words: Readonly<Record<Orphan["createdBy"], string>> = {
  stack: "this stack",
  perhaps: "perhaps this stack",
  namesake: "another of its name",
  pulumi: "Pulumi",
  other: "not Pulumi",
  unknown: "unknown",
};

const dynamicWayOut =
  "The resources of this stack are dynamic ones, and those cannot be imported. To adopt the orphans, change over to the plugin " +
  `(${docsUrl("bindings.md#from-dynamic-to-plugin")}), run \`pulumi up\`, and run this again: it then shows what to import. Or delete what is not needed any more, with --delete.`;

const ownershipAdvice =
  "If no command to delete is shown, an orphan may belong to someone: to another stack, or to a person who created it by hand. Read it first, and leave out the objects of stacks in other backends " +
  `with --also. --delete deletes any of them whose ID you type, except those of other stacks and what their Machines mount (${docsUrl("orphans.md#what-to-do")}).`;

/** The command that deletes an orphan. */
type CommandFor = (orphan: Orphan) => string;

/** The report for people. `isWriting`: whether a file of imports is written after it. */
export function textOf(
  state: StackState,
  findings: readonly PlaceReport[],
  { command, isWriting }: { readonly command: CommandFor; readonly isWriting: boolean },
): string {
  const parts = findings.flatMap((finding) => [
    headline(state, finding),
    ...(finding.orphans.length > 0
      ? [
          orphanTable(finding.orphans.map(({ orphan }) => orphan)),
          ...finding.orphans.map((one) => advice(finding.place, one, command)),
        ]
      : []),
    ...(finding.heldElsewhere.length > 0 ? [elsewhereText(finding.heldElsewhere)] : []),
    ...(finding.missing.length > 0 ? [missingText(finding.missing)] : []),
    ...finding.notes,
  ]);
  const found = findings.flatMap(({ orphans }) => orphans);
  if (found.length > 0 && state.isDynamic) parts.push(dynamicWayOut);
  if (
    found.some(
      ({ orphan: { kind, isToDelete, belongsTo } }) => kind.deletedBy && !isToDelete && belongsTo === undefined,
    )
  )
    parts.push(ownershipAdvice);
  const unchanged = isWriting ? "" : "Nothing was changed. ";
  if (found.length > 0) parts.push(`${unchanged}Make sure that no one needs what you delete.`);
  return `${parts.join("\n\n")}\n`;
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`;

function headline({ stack, project }: StackState, { place, orphans, missing, failures }: PlaceReport): string {
  const { config, provider } = place;
  const what = stack === undefined ? "the empty state" : `stack ${stack} of ${project ?? ""}`;
  const through = provider ? `, provider ${provider.name}` : "";
  const lost = missing.length > 0 ? ` ${count(missing.length, "resource")} of the state missing in the service.` : "";
  return `${config.endpoint}, organization ${config.organization}${through}, compared with ${what}: ${orphans.length === 0 ? "no orphans" : count(orphans.length, "orphan")}.${lost}${failures.length > 0 ? " Not everything could be compared." : ""}`;
}

/** Orphans as a table. */
export const orphanTable = (orphans: readonly Orphan[]): string =>
  tableOf(
    ["TYPE", "ID", "NAME", "CREATED", "CREATED BY"],
    orphans.map(({ kind, id, name, createdAt, createdBy, belongsTo }): Cell[] => [
      ...[kind.type, quotable(id, 200), quotable(name ?? "-", 100), quotable(createdAt ?? "-", 50)],
      belongsTo === undefined ? words[createdBy] : { text: `stack ${belongsTo}`, style: "unsure" },
    ]),
  );

/** For objects that may belong to others, the report shows how to read them, and not how to delete them. */
function advice({ config }: Target, { orphan, asImport }: ReportedOrphan, command: CommandFor): string {
  const { kind, id, remark, request, isToDelete } = orphan;
  const way = isToDelete ? command(orphan) : kind.deletedBy ? undefined : "nothing deletes it; it expires by itself";
  return [
    `${kind.type} ${id}${remark === undefined ? "" : `: ${remark}`}`,
    ...(isToDelete ? [] : [`  read:      ${lookCommand(config.endpoint, request)}`]),
    ...(asImport ? [`  import:    ${importCommand(asImport)}`] : []),
    ...(way === undefined ? [] : [`  delete:    ${way}`]),
  ].join("\n");
}

const elsewhereText = (held: readonly HeldElsewhere[]): string =>
  [
    "Held by other stacks, and no orphans:",
    ...held.map(
      ({ kind, id, stack, endpoint }) =>
        `  ${kind.type} ${quotable(id, 200)} belongs to ${stackText(stack)}${endpoint === undefined ? "" : `, whose endpoint is ${endpoint}`}`,
    ),
  ].join("\n");

/** The address of the embedded service, which is not always the same. */
const localAddress = `$(npx machines-service status --json | node -p "JSON.parse(fs.readFileSync(0)).url")`;

/** A request that reads, as a command. */
function lookCommand(endpoint: string, request: string): string {
  const path = request.slice(request.indexOf(" ") + 1);
  const isLocal = !/^https?:/.test(endpoint);
  const token = isLocal ? "$(npx machines-service token)" : "$MACHINES_TOKEN";
  const address = isLocal ? `${localAddress}${quoted(path)}` : quoted(`${endpoint}${path}`);
  return `curl -H "Authorization: Bearer ${token}" ${address}`;
}

const missingText = (missing: readonly StateResource[]): string =>
  [
    "In the state, but no longer in the service; `pulumi refresh` shows and forgets them:",
    ...missing.map(({ type, id, urn }) => `  ${type} ${id}  ${urn}`),
  ].join("\n");

/** The report as JSON; docs/orphans.md describes its fields. */
export function jsonOf(
  { stack, project }: StackState,
  findings: readonly PlaceReport[],
  { failures, command }: { readonly failures: readonly string[]; readonly command: CommandFor },
): string {
  const placed = <T, R extends object>(items: (finding: PlaceReport) => readonly T[], shown: (item: T) => R) =>
    findings.flatMap((finding) =>
      items(finding).map((item) => ({ ...shown(item), provider: finding.place.provider?.name ?? null })),
    );
  const report = {
    stack: stack ?? null,
    project: project ?? null,
    places: findings.map(({ place: { config, provider } }) => ({
      endpoint: config.endpoint,
      organization: config.organization,
      provider: provider?.name ?? null,
    })),
    orphans: placed(
      ({ orphans }) => orphans,
      (one) => orphanJson(one, command),
    ),
    heldElsewhere: placed(
      ({ heldElsewhere }) => heldElsewhere,
      ({ kind: { type }, id, stack, endpoint = null }) => ({ type, id, stack, endpoint }),
    ),
    missing: placed(
      ({ missing }) => missing,
      ({ type, id, urn }) => ({ type, id, urn }),
    ),
    notes: findings.flatMap(({ notes }) => notes),
    failures,
  };
  return `${JSON.stringify(report, null, 2)}\n`;
}

const orphanJson = ({ orphan, asImport }: ReportedOrphan, command: CommandFor) => ({
  type: orphan.kind.type,
  id: orphan.id,
  name: orphan.name ?? null,
  createdAt: orphan.createdAt ?? null,
  madeBy: orphan.createdBy,
  belongsTo: orphan.belongsTo ?? null,
  urn: orphan.urn ?? null,
  inState: orphan.inState,
  remark: orphan.remark ?? null,
  import: asImport ? importCommand(asImport) : null,
  look: orphan.request,
  delete: orphan.isToDelete ? command(orphan) : null,
});
