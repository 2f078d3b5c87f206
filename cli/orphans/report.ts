// Reports orphans as text and as JSON.
import { quotable } from "../../provider/client/printable.ts";
import type { Compared, Orphan } from "./compare.ts";
import { importCommand, quoted, type Import } from "./importFile.ts";
import type { Target } from "../targets.ts";
import type { StateResource, StackState } from "../stackState.ts";

/** An orphan and how it is imported; undefined where it cannot be. */
export interface ReportedOrphan {
  readonly orphan: Orphan;
  readonly asImport: Import | undefined;
}

/** The findings in one place. */
export interface PlaceReport extends Omit<Compared, "orphans"> {
  readonly place: Target;
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
  "(docs/bindings.md, From dynamic to plugin), run `pulumi up`, and run this again: it then shows what to import. Or delete through the service what is not needed any more.";

const ownershipAdvice =
  "If no request to delete is shown, an orphan may belong to someone: to another stack, or to a person who created it by hand. Read it first, and leave out the objects of other stacks " +
  "with --also. Delete the rest through the service (docs/orphans.md, What to do).";

/** The report for people. */
export function textOf(state: StackState, findings: readonly PlaceReport[]): string {
  const parts = findings.flatMap((finding) => [
    headline(state, finding),
    ...(finding.orphans.length > 0
      ? [table(finding.orphans), ...finding.orphans.map((one) => advice(finding.place, one))]
      : []),
    ...(finding.missing.length > 0 ? [missingText(finding.missing)] : []),
    ...finding.notes,
  ]);
  const found = findings.flatMap(({ orphans }) => orphans);
  if (found.length > 0 && state.isDynamic) parts.push(dynamicWayOut);
  if (found.some(({ orphan: { kind, deletion } }) => kind.deletedBy && deletion === undefined))
    parts.push(ownershipAdvice);
  if (found.length > 0) parts.push("Nothing was changed. Make sure that no one needs what you delete.");
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

function table(orphans: readonly ReportedOrphan[]): string {
  const rows = [
    ["TYPE", "ID", "NAME", "CREATED", "CREATED BY"],
    ...orphans.map(({ orphan: { kind, id, name, createdAt, createdBy } }) => [
      ...[kind.type, quotable(id, 200), quotable(name ?? "-", 100), quotable(createdAt ?? "-", 50), words[createdBy]],
    ]),
  ];
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** For objects that may belong to others, the report shows how to read them, and not how to delete them. */
function advice(
  { config }: Target,
  { orphan: { kind, id, remark, request, deletion }, asImport }: ReportedOrphan,
): string {
  const way = kind.deletedBy ? deletion : "nothing deletes it; it expires by itself";
  return [
    `${kind.type} ${id}${remark === undefined ? "" : `: ${remark}`}`,
    ...(deletion === undefined ? [`  read:      ${lookCommand(config.endpoint, request)}`] : []),
    ...(asImport ? [`  import:    ${importCommand(asImport)}`] : []),
    ...(way === undefined ? [] : [`  delete:    ${way}`]),
  ].join("\n");
}

/** A request that reads, as a command. The embedded service has no fixed address, so only the request is shown. */
function lookCommand(endpoint: string, request: string): string {
  const path = request.slice(request.indexOf(" ") + 1);
  if (!/^https?:/.test(endpoint)) return request;
  return `curl -H "Authorization: Bearer $MACHINES_TOKEN" ${quoted(`${endpoint}${path}`)}`;
}

const missingText = (missing: readonly StateResource[]): string =>
  [
    "In the state, but no longer in the service; `pulumi refresh` shows and forgets them:",
    ...missing.map(({ type, id, urn }) => `  ${type} ${id}  ${urn}`),
  ].join("\n");

/** The report for programs; docs/orphans.md describes its fields. */
export function jsonOf(
  { stack, project }: StackState,
  findings: readonly PlaceReport[],
  failures: readonly string[],
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
    orphans: placed(({ orphans }) => orphans, orphanJson),
    missing: placed(
      ({ missing }) => missing,
      ({ type, id, urn }) => ({ type, id, urn }),
    ),
    notes: findings.flatMap(({ notes }) => notes),
    failures,
  };
  return `${JSON.stringify(report, null, 2)}\n`;
}

const orphanJson = ({ orphan, asImport }: ReportedOrphan) => ({
  type: orphan.kind.type,
  id: orphan.id,
  name: orphan.name ?? null,
  createdAt: orphan.createdAt ?? null,
  madeBy: orphan.createdBy,
  urn: orphan.urn ?? null,
  inState: orphan.inState,
  remark: orphan.remark ?? null,
  import: asImport ? importCommand(asImport) : null,
  look: orphan.request,
  delete: orphan.deletion ?? null,
});
