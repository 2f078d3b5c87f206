// The rows of a query as a table, and as CSV and JSON.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { QueryAnswer } from "../types.ts";
import { Dialog } from "./dialog.tsx";
import { Code, copy } from "./parts.tsx";
import { count, some } from "./words.ts";

/** Characters of a value that fit into a cell. */
const longest = 200;

type Shown = Pick<QueryAnswer, "columns" | "rows">;

const inCsv = (value: string | null): string =>
  // An empty text has quotes, so that it differs from NULL.
  value === null ? "" : value === "" || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

/** The rows as CSV (RFC 4180): NULL is nothing, and an empty text is two quotes. */
const csvOf = ({ columns, rows }: Shown): string =>
  [columns.map(({ name }) => name), ...rows].map((row) => `${row.map(inCsv).join(",")}\r\n`).join("");

/** The rows as JSON. Of several columns with one name, the last one is kept; so they are numbered. */
function jsonOf({ columns, rows }: Shown): string {
  const seen = new Map<string, number>();
  const names = columns.map(({ name }) => {
    const n = (seen.get(name) ?? 0) + 1;
    seen.set(name, n);
    return n === 1 ? name : `${name}_${n}`;
  });
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(row.map((value, i) => [names[i] ?? String(i), value]))),
    null,
    2,
  );
}

function Value({ of, name }: { readonly of: string | null; readonly name: string }): JSX.Element {
  const [isOpen, open] = useState(false);
  if (of === null) return <i class="faint">NULL</i>;
  if (of === "") return <span class="faint">&quot;&quot;</span>;
  if (of.length <= longest) return <bdi>{of}</bdi>;
  return (
    <>
      <bdi>{of.slice(0, longest)}</bdi>…{" "}
      <button type="button" class="plain" aria-haspopup="dialog" onClick={() => open(true)}>
        all {count(of.length)} characters
      </button>
      {isOpen && (
        <Dialog title={name} onClose={() => open(false)}>
          <Code label={name}>{of}</Code>
        </Dialog>
      )}
    </>
  );
}

/** The rows of an answer. */
export function ResultTable({ label, answer }: { readonly label: string; readonly answer: Shown }): JSX.Element {
  const { columns, rows } = answer;
  return (
    <div class="scroll result" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, type }, i) => (
              <th key={i} scope="col">
                <bdi>{name}</bdi> <span class="faint">{type}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((value, j) => (
                <td key={j} class="mono">
                  <Value of={value} name={columns[j]?.name ?? ""} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What a query has answered. */
export function Result({ answer }: { readonly answer: QueryAnswer }): JSX.Element {
  const { columns, rows, isMore, isCut, command, count: n, ms } = answer;
  const took = `${count(ms)} ms`;
  if (columns.length === 0)
    return (
      <p role="status">
        {command === "" ? "Nothing was asked" : command}
        {/^(?:INSERT|UPDATE|DELETE|MERGE|COPY)$/.test(command) && `, ${some(n, "row")}`}, {took}.
      </p>
    );
  return (
    <>
      <div class="filters">
        <span role="status">
          {isMore ? `The first ${some(rows.length, "row")}; there are more` : some(rows.length, "row")}, {took}.
          {isCut && " Long values are cut."}
        </span>
        <button type="button" onClick={() => void copy(csvOf(answer))}>
          Copy as CSV
        </button>
        <button type="button" onClick={() => void copy(jsonOf(answer))}>
          Copy as JSON
        </button>
      </div>
      <ResultTable label="Rows of the query" answer={answer} />
    </>
  );
}
