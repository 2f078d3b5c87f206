// The alert rules and the dashboard of the package, and the expressions in them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

const root = join(__dirname, "../../..");

/** Path of the alert rules. */
export const rulesFile = join(root, "service/watch/alerts.yaml");

/** A rule. */
export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

interface Rules {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

/** The text of a file of the repository. */
export const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

/** The alert rules. */
export const rules: readonly Rule[] = (parse(readFileSync(rulesFile, "utf8")) as Rules).groups.flatMap(
  (group) => group.rules,
);

/** The dashboard. */
export interface Dashboard {
  readonly title: string;
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

export const dashboard = JSON.parse(textOf("service/watch/dashboard.json")) as Dashboard;

/** The expressions of the dashboard, with values for its variables. */
export const expressions: readonly string[] = dashboard.panels.flatMap(({ targets = [] }) =>
  targets.map(({ expr }) =>
    expr.replaceAll("$__rate_interval", "1m").replaceAll("$job", "machines-service").replaceAll("$app", ".*"),
  ),
);

/** The metrics that an expression names, each with the labels that it selects or aggregates by. */
export function metricsIn(expression: string): string[] {
  const names = [...expression.matchAll(/\b(?:machines_service|process)_\w+/g)].map(([name]) => name);
  return names.map((name) => name.replace(/_bucket$/, ""));
}
