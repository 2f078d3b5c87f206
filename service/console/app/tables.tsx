// The tables and views of a database: their columns, indexes and rows.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { QueryAnswer, TableList } from "../types.ts";
import { queryOf, setQuery } from "./address.ts";
import { listTables, named, runQuery, type Place } from "./databases.ts";
import { problemOf } from "./live.ts";
import { Alert, Empty, Section, Table } from "./parts.tsx";
import { ResultTable } from "./resultTable.tsx";
import { bytes, count } from "./words.ts";

type Relation = TableList["tables"][number];

/** Rows of a page. */
const pageRows = 100;

const idOf = ({ schema, name }: Relation): string => JSON.stringify([schema, name]);

/** What was read, or why it could not be. */
interface Reading<T> {
  readonly data?: T;
  readonly problem?: string;
}

/** Reads once for each key, and again on demand. What comes late for an earlier key is dropped. */
export function useReading<T>(key: string, read: () => Promise<T>): Reading<T> & { readonly again: () => void } {
  const [state, set] = useState<Reading<T> & { readonly key?: string }>({});
  const [time, next] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    read().then(
      (data) => isCurrent && set({ key, data }),
      (error: unknown) => isCurrent && set({ key, problem: problemOf(error) }),
    );
    return () => void (isCurrent = false);
  }, [key, time]);
  return { ...(state.key === key ? state : {}), again: () => next(time + 1) };
}

/** The tables of a database, and the chosen one. */
export function Tables({ place }: { readonly place: Place }): JSX.Element {
  const { data, problem, again } = useReading(JSON.stringify(place), () => listTables(place));
  if (problem !== undefined) return <Alert>{problem}</Alert>;
  if (!data) return <p class="faint">Reading …</p>;
  const { tables, isMore } = data;
  const chosen = tables.find((one) => idOf(one) === queryOf("table"));
  if (chosen) return <OneTable place={place} table={chosen} />;
  return (
    <Section
      title="Tables and views"
      aside={
        <button type="button" onClick={again}>
          Read again
        </button>
      }
    >
      {tables.length === 0 ? (
        <Empty>
          {place.user} sees no table in {place.database}.
        </Empty>
      ) : (
        <Table label="Tables and views" columns={["Name", "Schema", "Kind", "Rows, estimated#", "Size#", "Columns#"]}>
          {tables.map((one) => (
            <tr key={idOf(one)}>
              <th scope="row">
                <button type="button" class="plain" onClick={() => setQuery({ table: idOf(one), page: undefined })}>
                  <bdi>{one.name}</bdi>
                </button>
              </th>
              <td>
                <bdi>{one.schema}</bdi>
              </td>
              <td>{one.kind}</td>
              <td class="number">{one.rows === null ? "" : count(one.rows)}</td>
              <td class="number">{one.bytes === 0 ? "" : bytes(one.bytes)}</td>
              <td class="number">{count(one.columns.length)}</td>
            </tr>
          ))}
        </Table>
      )}
      {isMore && <p class="faint">Only the first {count(tables.length)} are shown; query the others.</p>}
    </Section>
  );
}

/** The order of a table that stays the same from page to page, as SQL; undefined without one. */
const orderOf = ({ key, kind }: Relation): string | undefined => {
  if (key.length > 0) return key.map(named).join(", ");
  return kind === "table" || kind === "materialized view" ? "tableoid, ctid" : undefined;
};

function OneTable({ place, table }: { readonly place: Place; readonly table: Relation }): JSX.Element {
  const { schema, name, kind, columns, indexes, key } = table;
  const page = Math.max(0, Math.floor(Number(queryOf("page"))) || 0);
  const order = orderOf(table);
  const sql = `SELECT * FROM ${named(schema)}.${named(name)}${order === undefined ? "" : ` ORDER BY ${order}`} LIMIT ${pageRows + 1} OFFSET ${page * pageRows}`;
  const { data, problem, again } = useReading(JSON.stringify([place, sql]), () => runQuery(place, sql, false));
  const turn = (to: number): void => setQuery({ page: to === 0 ? undefined : String(to) });
  return (
    <>
      <header class="filters">
        <button type="button" onClick={() => setQuery({ table: undefined, page: undefined })}>
          All tables
        </button>
        <h2>
          <bdi>
            {schema}.{name}
          </bdi>
        </h2>
        <span class="faint">{kind}</span>
      </header>
      <Section title="Columns">
        <Table label="Columns" columns={["Column", "Type", "NULL", "Key"]}>
          {columns.map((column) => (
            <tr key={column.name}>
              <th scope="row">
                <bdi>{column.name}</bdi>
              </th>
              <td class="mono">{column.type}</td>
              <td>{column.isRequired ? "never" : "allowed"}</td>
              <td>{key.includes(column.name) ? "primary key" : ""}</td>
            </tr>
          ))}
        </Table>
      </Section>
      {indexes.length > 0 && (
        <Section title="Indexes">
          <Table label="Indexes" columns={["Index", "Definition"]}>
            {indexes.map((index) => (
              <tr key={index.name}>
                <th scope="row">
                  <bdi>{index.name}</bdi>
                </th>
                <td class="mono wrap">{index.definition}</td>
              </tr>
            ))}
          </Table>
        </Section>
      )}
      <Section
        title="Rows"
        aside={
          <button type="button" onClick={again}>
            Read again
          </button>
        }
      >
        <Alert>{problem}</Alert>
        {!data && problem === undefined && <p class="faint">Reading …</p>}
        {data && <Rows answer={data} page={page} turn={turn} order={order} isKey={key.length > 0} />}
      </Section>
    </>
  );
}

function Rows({
  answer,
  page,
  turn,
  order,
  isKey,
}: {
  readonly answer: QueryAnswer;
  readonly page: number;
  readonly turn: (to: number) => void;
  readonly order: string | undefined;
  readonly isKey: boolean;
}): JSX.Element {
  const rows = answer.rows.slice(0, pageRows);
  const isLast = answer.rows.length <= pageRows && !answer.isMore;
  const from = page * pageRows;
  const ordered = isKey ? "by the primary key" : "as they are stored";
  return (
    <>
      <div class="filters">
        <button type="button" disabled={page === 0} onClick={() => turn(page - 1)}>
          Previous
        </button>
        <button type="button" disabled={isLast} onClick={() => turn(page + 1)}>
          Next
        </button>
        <span role="status">
          {rows.length === 0 ? "No row" : `Rows ${count(from + 1)} to ${count(from + rows.length)}`}
          {order === undefined ? ", in no order: it may change from page to page" : `, in order ${ordered}`}
        </span>
      </div>
      {rows.length > 0 && <ResultTable label="Rows" answer={{ ...answer, rows }} />}
      {answer.isCut && <p class="faint">Long values are cut.</p>}
    </>
  );
}
