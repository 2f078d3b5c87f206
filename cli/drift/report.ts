// Reports drift as text and as JSON.
import { quotable } from "../../api/printable.ts";
import type { Orphan } from "../orphans/compare.ts";
import { tableOf, type Cell, type Style } from "../style.ts";
import type { StackState } from "../stackState.ts";
import type { Checked, Difference, Status } from "./comparison.ts";

/** An object that no stack manages. */
export interface Unmanaged {
  readonly orphan: Orphan;
  /** Name of the explicit provider at whose endpoint it is. */
  readonly provider: string | undefined;
}

/** The result of the command. */
export interface DriftReport {
  readonly state: StackState;
  /** RFC 3339 time. */
  readonly checkedAt: string;
  readonly checked: readonly Checked[];
  /** Undefined if not requested. */
  readonly unmanaged: readonly Unmanaged[] | undefined;
  readonly notes: readonly string[];
  readonly failures: readonly string[];
}

const colours: Readonly<Record<Status, Style>> = {
  unchanged: "good",
  changed: "bad",
  missing: "bad",
  unchecked: "unsure",
};

/** The report for people. */
export function textOf(report: DriftReport): string {
  const { checked, unmanaged = [], notes } = report;
  const drifted = checked.filter(({ status }) => status !== "unchanged");
  const parts = [
    headline(report),
    ...(drifted.length > 0 ? [driftTable(drifted)] : []),
    ...(unmanaged.length > 0
      ? [
          `In the service, but managed by no stack; \`npx pulumi-machines orphans\` shows details:\n${unmanagedTable(unmanaged)}`,
        ]
      : []),
    ...notes,
    ...(drifted.some(({ status }) => status !== "unchecked") ? [advice] : []),
  ];
  return `${parts.join("\n\n")}\n`;
}

const advice =
  "Nothing was changed. `pulumi refresh` copies the service's values into the state; the next `pulumi up` then restores what the program declares.";

function headline({ state: { stack, project }, checked, unmanaged }: DriftReport): string {
  const counts = [
    ...(["changed", "missing", "unchecked"] as const).map((status) => [count(checked, status), status] as const),
    [unmanaged?.length ?? 0, "not managed"] as const,
  ].filter(([number]) => number > 0);
  const all = `${checked.length} resource${checked.length === 1 ? "" : "s"}`;
  const found = counts.map(([number, word]) => `${number} ${word === "unchecked" ? "could not be checked" : word}`);
  const what = stack === undefined ? "The empty state" : `Stack ${stack} of ${project ?? ""}`;
  return `${what}, ${all}: ${found.length === 0 ? "no drift" : found.join(", ")}.`;
}

const count = (checked: readonly Checked[], status: Status): number =>
  checked.filter((one) => one.status === status).length;

/** Longer values are cut. */
const widest = 60;

const driftTable = (drifted: readonly Checked[]): string =>
  tableOf(
    ["TYPE", "NAME", "ID", "STATUS", "PROPERTY", "STATE", "SERVICE"],
    drifted.flatMap(({ resource: { type, name, id }, status, differences }): Cell[][] => {
      const word: Cell = { text: status, style: colours[status] };
      const first: Cell[] = [type, quotable(name, 100), id === "" ? "-" : quotable(id, 100), word];
      if (differences.length === 0) return [first];
      return differences.map((one, i) => [...(i === 0 ? first : ["", "", "", ""]), ...cellsOf(one)]);
    }),
  );

function cellsOf({ path, state, live, isSecret }: Difference): Cell[] {
  const cell = (value: unknown): Cell =>
    isSecret
      ? { text: "[secret]", style: "aside" }
      : value === undefined
        ? { text: "not set", style: "aside" }
        : quotable(typeof value === "string" ? value : JSON.stringify(value), widest);
  return [quotable(path, 100), cell(state), cell(live)];
}

const unmanagedTable = (found: readonly Unmanaged[]): string =>
  tableOf(
    ["TYPE", "ID", "NAME"],
    found.map(({ orphan: { kind, id, name } }) => [kind.type, quotable(id, 200), quotable(name ?? "-", 100)]),
  );

/** The report as JSON; docs/drift.md describes its fields. */
export function jsonOf({ state, checkedAt, checked, unmanaged, notes, failures }: DriftReport): string {
  const provider = (urn: string | undefined): string | null =>
    state.providers.find((one) => one.urn === urn)?.name ?? null;
  const report = {
    stack: state.stack ?? null,
    project: state.project ?? null,
    checkedAt,
    summary: {
      unchanged: count(checked, "unchanged"),
      changed: count(checked, "changed"),
      missing: count(checked, "missing"),
      unchecked: count(checked, "unchecked"),
      unmanaged: unmanaged?.length ?? null,
    },
    resources: checked.map(({ resource, status, differences, reason }) => ({
      urn: resource.urn,
      type: resource.type,
      name: resource.name,
      id: resource.id === "" ? null : resource.id,
      provider: provider(resource.provider),
      status,
      differences: differences.map(({ path, state, live, isSecret }) => ({
        path,
        state: state ?? null,
        live: live ?? null,
        isSecret,
      })),
      reason: reason ?? null,
    })),
    unmanaged:
      unmanaged?.map(({ orphan, provider }) => ({
        type: orphan.kind.type,
        id: orphan.id,
        name: orphan.name ?? null,
        createdAt: orphan.createdAt ?? null,
        madeBy: orphan.createdBy,
        provider: provider ?? null,
      })) ?? null,
    notes,
    failures,
  };
  return `${JSON.stringify(report, null, 2)}\n`;
}
