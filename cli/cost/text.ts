// A report of costs for people, for a comment, and for programs.
import { afterText, changeText, type CostReport, type Costs } from "../../provider/cost/report.ts";
import { paint, tableOf } from "../style.ts";

const nothing = (stack: string): string => `Nothing in ${stack} costs anything, by estimate.`;

/** The cells of a row: before, afterwards, and the difference. */
const amounts = (costs: Costs): readonly string[] => [costs.before.toFixed(2), afterText(costs), changeText(costs)];

const notes = ({ unknown }: CostReport): readonly string[] =>
  unknown.length === 0 ? [] : [`Depends on values that only the update knows: ${unknown.join(", ")}.`];

/** For a terminal. */
export function textOf(stack: string, report: CostReport | undefined): string {
  if (report === undefined) return `${nothing(stack)}\n`;
  const { apps, currency } = report;
  const rows = [...apps.map((one) => [one.place, ...amounts(one)]), ["total", ...amounts(report)]];
  return [
    paint("head", `Cost of ${stack} a month, by estimate, in ${currency}`),
    tableOf(["", "NOW", "AFTER", "CHANGE"], rows),
    ...notes(report),
    "",
  ].join("\n");
}

/** A text in a cell of Markdown that is shown as it is. */
const cell = (text: string): string => text.replaceAll(/[\\`*_[\]<>#|~&]/g, "\\$&").replaceAll(/\s+/g, " ");

/** For a comment. */
export function markdownOf(stack: string, report: CostReport | undefined): string {
  if (report === undefined) return `**Cost:** ${cell(nothing(stack))}\n`;
  const { apps, currency } = report;
  const row = (place: string, costs: Costs): string => `| ${place} | ${amounts(costs).join(" | ")} |`;
  return [
    `**Cost of ${cell(stack)}:** ${afterText(report)} ${cell(currency)} a month by estimate, ${report.change === 0 ? "as before" : `change ${changeText(report)}`}`,
    "",
    "| | now | after | change |",
    "|---|---:|---:|---:|",
    ...apps.map((one) => row(cell(one.place), one)),
    row("**total**", report),
    ...notes(report).flatMap((note) => ["", cell(note)]),
    "",
  ].join("\n");
}

/** For programs. */
export const jsonOf = (stack: string, report: CostReport | undefined): string =>
  `${JSON.stringify({ stack, cost: report ?? null }, undefined, 2)}\n`;
