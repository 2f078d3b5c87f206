// Requests per second over the last minutes.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { LoggedRequest } from "../types.ts";
import { now } from "./live.ts";

const seconds = 180;

/** Counts of each second: all requests, and those that failed. */
function countsOf(requests: readonly LoggedRequest[], end: number): [number[], number[], number[]] {
  const times = Array.from({ length: seconds }, (_, i) => end - seconds + 1 + i);
  const [all, failed] = [times.map(() => 0), times.map(() => 0)];
  for (const { at, status } of requests) {
    const i = Math.floor(at / 1000) - (end - seconds + 1);
    if (i < 0 || i >= seconds) continue;
    all[i] = (all[i] ?? 0) + 1;
    if (status === null || status >= 400) failed[i] = (failed[i] ?? 0) + 1;
  }
  return [times, all, failed];
}

/** The colour of a class of the page, as the canvas takes it. */
function colourOf(element: HTMLElement, name: string): string {
  const probe = element.appendChild(document.createElement("span"));
  probe.className = name;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** The chart. The colours are those of the page. */
export function Chart({ requests }: { readonly requests: readonly LoggedRequest[] }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const end = Math.floor(now.value / 1000);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const [line, bad, faint] = ["busy", "bad", "faint"].map((name) => colourOf(element, name));
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 90,
        legend: { show: false },
        cursor: { show: false },
        series: [
          {},
          { stroke: line ?? "", fill: `color-mix(in srgb, ${line} 15%, transparent)`, width: 1 },
          { stroke: bad ?? "", fill: `color-mix(in srgb, ${bad} 25%, transparent)`, width: 1 },
        ],
        axes: [
          { stroke: faint ?? "", grid: { show: false }, size: 26 },
          {
            stroke: faint ?? "",
            grid: { stroke: faint ?? "", width: 0.2 },
            size: 34,
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
          },
        ],
        scales: { y: { range: (_, __, most) => [0, Math.max(4, most)] } },
      },
      countsOf(requests, end),
      element,
    );
    chart.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 90 }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(countsOf(requests, end)), [requests, end]);
  return (
    <figure class="chart">
      <div ref={place} role="img" aria-label="Requests per second in the last three minutes, and those that failed" />
      <figcaption class="faint">
        <span class="busy">■</span> requests per second <span class="bad">■</span> of them failed
      </figcaption>
    </figure>
  );
}
