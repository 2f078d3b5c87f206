// A small chart: lines over time, with axes and a legend that has the values under the pointer, or else the newest.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { count, moment } from "./words.ts";
import { now } from "./live.ts";

/** A line of a chart. */
export interface Line {
  readonly name: string;
  /** The class that has its colour. */
  readonly tone: "busy" | "bad" | "odd" | "calm";
  /** Null where nothing is known: the line has a gap. */
  readonly values: readonly (number | null)[];
  /** Whether it is a limit of another line, which is dashed and without an area. */
  readonly isLimit?: boolean;
}

/** Heights in pixels. */
const height = 110;
const sizes = { x: 26, y: 70 };
/** An axis is never shorter than this many steps of its unit. */
const leastSteps = 4;

/** The colour of a class of the page, as the canvas takes it. */
function colourOf(element: HTMLElement, name: string): string {
  const probe = element.appendChild(document.createElement("span"));
  probe.className = name;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Times of an axis: with seconds if they are less than a minute apart. */
const clockWords = (seconds: readonly number[]): string[] => {
  const length = (seconds[1] ?? 60) - (seconds[0] ?? 0) < 60 ? 8 : 5;
  return seconds.map((one) => new Date(1000 * one).toLocaleTimeString("sv-SE").slice(0, length));
};

const dataOf = (times: readonly number[], lines: readonly Line[]): uPlot.AlignedData => [
  times.map((time) => time / 1000),
  ...lines.map(({ values }) => [...values]),
];

const lastKnown = (values: readonly (number | null)[]): number | null =>
  values.findLast((value) => value !== null) ?? null;

/** The chart. Its colours are those of the page. */
export function Chart({
  label,
  times,
  lines,
  words = count,
  least = leastSteps,
}: {
  /** What it shows, as a sentence for those who cannot see it; its values follow. */
  readonly label: string;
  /** Milliseconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** A value with its unit. */
  readonly words?: (value: number) => string;
  /** The axis of values goes at least so far. */
  readonly least?: number;
}): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const [at, setAt] = useState<number | undefined>();
  const looks = lines.map(({ tone, isLimit }) => `${tone} ${isLimit}`).join();
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const faint = colourOf(element, "faint");
    const made = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        hooks: { setCursor: [({ cursor }) => setAt(cursor.idx ?? undefined)] },
        series: [
          {},
          ...lines.map(({ tone, isLimit }): uPlot.Series => {
            const stroke = colourOf(element, tone);
            if (isLimit) return { stroke, width: 1, dash: [4, 4] };
            return { stroke, fill: `color-mix(in srgb, ${stroke} 15%, transparent)`, width: 1 };
          }),
        ],
        axes: [
          { stroke: faint, grid: { show: false }, size: sizes.x, values: (_, times) => clockWords(times) },
          {
            stroke: faint,
            grid: { stroke: faint, width: 0.2 },
            size: sizes.y,
            values: (_, values) => values.map((value) => (value === null ? "" : words(value))),
          },
        ],
        scales: { y: { range: (_, __, most) => [0, Math.max(least, most)] } },
      },
      dataOf(times, lines),
      element,
    );
    chart.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [looks]);
  useEffect(() => chart.current?.setData(dataOf(times, lines)), [times, lines]);
  const valueOf = ({ values }: Line): string => {
    const value = at === undefined ? lastKnown(values) : values[at];
    return value == null ? "–" : words(value);
  };
  const spoken = lines.map((line) => `${line.name} ${valueOf(line)}`).join(", ");
  const time = at === undefined ? undefined : times[at];
  return (
    <figure class="chart">
      <div ref={place} role="img" aria-label={`${label} Now: ${spoken}`} />
      <figcaption class="faint">
        {lines.map((line) => (
          <span key={line.name}>
            <span class={line.tone} aria-hidden="true">
              {line.isLimit ? "┄" : "■"}
            </span>{" "}
            {line.name} {valueOf(line)}
          </span>
        ))}
        {time !== undefined && <span>at {moment(time, now.value)}</span>}
      </figcaption>
    </figure>
  );
}
