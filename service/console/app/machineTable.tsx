// The Machines of an App. Only the rows in sight exist on the page, and only the windows around them are read.
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { JSX } from "preact";
import { useEffect, useMemo, useReducer, useRef } from "preact/hooks";
import type { Fresh, MachineItem, MachineWindow } from "../types.ts";
import { queryOf, setQuery, to } from "./address.ts";
import { useLive } from "./live.ts";
import { Choice, Empty, Filter, Id, Problem, State, Time } from "./parts.tsx";
import { some } from "./words.ts";

const rowHeight = 32;
/** Rows of one window. */
const size = 100;

const filterNames = ["text", "state", "region", "only", "fleet", "image", "sort", "order"] as const;

const columns = [
  ["name", "Name"],
  ["", "Id"],
  ["region", "Region"],
  ["state", "State"],
  ["", "Checks"],
  ["image", "Image"],
  ["", "Size"],
  ["updated", "Changed"],
] as const;

/** The table with its filters. */
export function MachineTable({
  app,
  regions,
}: {
  readonly app: string;
  readonly regions: readonly string[];
}): JSX.Element {
  const filters = new URLSearchParams(
    filterNames.flatMap((name) => (queryOf(name) === "" ? [] : [[name, queryOf(name)]])),
  );
  return (
    <>
      <div class="filters">
        <Filter name="text" label="Name or id" />
        <Choice
          name="state"
          label="Any state"
          from={[
            "started",
            "stopped",
            "suspended",
            "failed",
            ["created,starting,stopping,replacing,suspending,restarting,launch_failed,updating", "on the way"],
          ]}
        />
        <Choice name="region" label="Any region" from={regions} />
        <Choice name="only" label="All" from={["critical", "warning", "passing", "cordoned"]} />
        {["fleet", "image"].map(
          (name) =>
            queryOf(name) !== "" && (
              <button
                key={name}
                type="button"
                class="chip"
                onClick={() => setQuery({ [name]: undefined })}
                aria-label={`Show other ${name}s too`}
              >
                {name} {queryOf(name)} ✕
              </button>
            ),
        )}
      </div>
      <Rows app={app} filters={filters.toString()} />
    </>
  );
}

function Rows({ app, filters }: { readonly app: string; readonly filters: string }): JSX.Element {
  const scroll = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((n: number, _: void) => n + 1, 0);
  const list = useMemo(
    () =>
      new Virtualizer<HTMLDivElement, HTMLDivElement>({
        count: 0,
        getScrollElement: () => scroll.current,
        estimateSize: () => rowHeight,
        overscan: 10,
        observeElementRect,
        observeElementOffset,
        scrollToFn: elementScroll,
        onChange: () => redraw(),
      }),
    [],
  );
  useEffect(() => list._didMount(), [list]);
  useEffect(() => list._willUpdate());
  useEffect(() => scroll.current?.scrollTo(0, 0), [filters]);
  const rows = list.getVirtualItems();
  const first = Math.floor((rows[0]?.index ?? 0) / size);
  // The rows in sight may be in two windows.
  const [one, two] = [
    useWindow(app, filters, first),
    useWindow(app, filters, first + 1, (rows.at(-1)?.index ?? 0) >= (first + 1) * size),
  ];
  // With other filters or another order, the rows from before stay until the new ones are there.
  const known = useRef<{ readonly total: number; readonly items: ReadonlyMap<number, MachineItem> }>(undefined);
  const read = [one.data, two.data].filter((data) => data !== undefined);
  if (read[0])
    known.current = {
      total: read[0].total,
      items: new Map(read.flatMap(({ offset, rows }) => rows.map((row, i) => [offset + i, row] as const))),
    };
  const { total = 0, items } = known.current ?? {};
  if (list.options.count !== total) {
    list.setOptions({ ...list.options, count: total });
    list.measure();
  }
  if (one.error && !one.data) return <Problem error={one.error} />;
  return (
    <>
      <p class="faint" role="status">
        {items ? some(total, "Machine") : "Reading …"}
      </p>
      {items?.size === 0 && total === 0 ? (
        <Empty>
          {filters === ""
            ? "This App has no Machines. A program declares them as machines.Machine or machines.Fleet."
            : "No Machine is like that."}
        </Empty>
      ) : (
        <div class="grid" role="table" aria-label="Machines" aria-rowcount={total + 1}>
          <div class="grid-row head" role="row" aria-rowindex={1}>
            {columns.map(([sort, title]) => (
              <Head key={title} sort={sort} title={title} />
            ))}
          </div>
          <div
            class="grid-body"
            ref={scroll}
            tabIndex={0}
            role="rowgroup"
            aria-label="Rows"
            style={{ height: `min(70vh, ${total * rowHeight}px)` }}
          >
            <div style={{ height: `${list.getTotalSize()}px`, position: "relative" }} role="presentation">
              {rows.map(({ index, start }) => (
                <div
                  key={index}
                  class="grid-row"
                  role="row"
                  aria-rowindex={index + 2}
                  style={{ position: "absolute", inset: "0 0 auto 0", transform: `translateY(${start}px)` }}
                >
                  <Cells app={app} item={items?.get(index)} />
                </div>
              ))}
            </div>
          </div>
        </div>
      )}
    </>
  );
}

const useWindow = (app: string, filters: string, number: number, isNeeded = true) =>
  useLive<MachineWindow & Fresh>(
    isNeeded
      ? `/console/api/apps/${encodeURIComponent(app)}/machines?${filters}${filters === "" ? "" : "&"}offset=${number * size}&limit=${size}`
      : undefined,
    [`app:${app}`],
  );

function Head({ sort, title }: { readonly sort: string; readonly title: string }): JSX.Element {
  if (sort === "")
    return (
      <div role="columnheader" class={`c-${title.toLowerCase()}`}>
        {title}
      </div>
    );
  const chosen = queryOf("sort") || "name";
  const order = chosen === sort ? (queryOf("order") === "desc" ? "descending" : "ascending") : "none";
  return (
    <div role="columnheader" aria-sort={order} class={`c-${title.toLowerCase()}`}>
      <button
        type="button"
        class="plain"
        onClick={() =>
          setQuery({ sort: sort === "name" ? undefined : sort, order: order === "ascending" ? "desc" : undefined })
        }
      >
        {title} <span aria-hidden="true">{order === "none" ? "" : order === "ascending" ? "↑" : "↓"}</span>
      </button>
    </div>
  );
}

function Cells({ app, item }: { readonly app: string; readonly item: MachineItem | undefined }): JSX.Element {
  if (!item)
    return (
      <div role="cell" class="faint">
        …
      </div>
    );
  const { id, name, region, state, checks, image, size, updated, cordoned } = item;
  return (
    <>
      <div role="cell" class="c-name">
        <a href={to.machine(app, id)}>{name}</a>
      </div>
      <div role="cell" class="c-id">
        <Id>{id}</Id>
      </div>
      <div role="cell" class="c-region">
        {region}
      </div>
      <div role="cell" class="c-state">
        <State of={state} />
        {cordoned && <State of="cordoned" />}
      </div>
      <div role="cell" class="c-checks">
        {checks !== null && <State of={checks} />}
      </div>
      <div role="cell" class="c-image" title={image}>
        {image}
      </div>
      <div role="cell" class="c-size">
        {size}
      </div>
      <div role="cell" class="c-changed">
        <Time at={updated} />
      </div>
    </>
  );
}
