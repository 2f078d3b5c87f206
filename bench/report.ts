// The figures as text.
import { median, type Sample, type Series, type SideName } from "./measure.ts";
import { operations, type Operation } from "./options.ts";
import type { Role } from "./processes.ts";
import type { Requests } from "./countingService.ts";
import type { Reached, Startup } from "./startup.ts";

/** The target ratios to the floor; `far`: to the near refresh. */
const aims: Readonly<Record<Operation, number>> = {
  create: 1.15,
  unchanged: 1.05,
  refresh: 1.05,
  far: 1.15,
  destroy: 1.2,
};

/** The figures of one operation. */
export interface Figure {
  readonly operation: Operation;
  /** Median seconds of the reference: the floor, for `far` the near refresh. */
  readonly base: number;
  readonly real: number;
  /** Of the medians. */
  readonly ratio: number;
  /** The same for CPU time, which other processes affect least. Undefined if it is unknown. */
  readonly cpuRatio: number | undefined;
  /** Smallest and largest ratio of a single round. */
  readonly spread: readonly [number, number];
  readonly aim: number;
  readonly reached: boolean;
  /** The requests to the service by operation, in the round with the most. */
  readonly requests: Requests;
}

/** The figures of a series, in the order of the operations. */
export function figuresOf({ samples }: Series): Figure[] {
  return operations.flatMap((operation) => {
    const real = samples.filter((sample) => sample.operation === operation && sample.side === "real");
    const base =
      operation === "far"
        ? samples.filter((sample) => sample.operation === "refresh" && sample.side === "real")
        : samples.filter((sample) => sample.operation === operation && sample.side === "floor");
    const requests = mostRequests(real);
    if (!requests || base.length === 0) return [];
    const ratio = secondsOf(real) / secondsOf(base);
    const each = real.map(
      ({ round, seconds }) => seconds / (base.find((one) => one.round === round)?.seconds ?? seconds),
    );
    const aim = aims[operation];
    // A refresh should be one list, without requests for single Machines.
    const listed = (requests["machines.list"] ?? 0) <= 1 && (requests["machines.get"] ?? 0) === 0;
    return {
      operation,
      base: secondsOf(base),
      real: secondsOf(real),
      ratio,
      cpuRatio: cpuOf(base) > 0 ? cpuOf(real) / cpuOf(base) : undefined,
      spread: [Math.min(...each), Math.max(...each)],
      aim,
      reached: ratio <= aim && (operation !== "refresh" || listed),
      requests,
    };
  });
}

const mostRequests = (samples: readonly Sample[]): Requests | undefined =>
  samples.map(({ requests }) => requests).toSorted((a, b) => totalOf(b) - totalOf(a))[0];

const totalOf = (requests: Requests): number => sum(Object.values(requests));

/** Median CPU time, including the service's; 0 if it is unknown. */
const cpuOf = (samples: readonly Sample[]): number =>
  median(
    samples.map(({ processes, side, serviceCpu }) =>
      processes.length === 0 ? 0 : sum(processes.map(({ cpu }) => cpu)) + (side === "real" ? serviceCpu : 0),
    ),
  );

const secondsOf = (samples: readonly Sample[]): number => median(samples.map(({ seconds }) => seconds));

/** A series as text. */
export function describeSeries(series: Series): string {
  const { binding, size, samples, stateBytes, othersUse } = series;
  const rounds = Math.max(...samples.map(({ round }) => round));
  const figures = figuresOf(series);
  const rows = figures.map(({ operation, base, real, ratio, cpuRatio, spread, aim, reached }) => [
    operation,
    `${base.toFixed(2)} s`,
    `${real.toFixed(2)} s`,
    ratio.toFixed(2),
    `${spread[0].toFixed(2)} to ${spread[1].toFixed(2)}`,
    `at most ${aim.toFixed(2)}`,
    reached ? "yes" : "NO",
    cpuRatio?.toFixed(2) ?? "",
  ]);
  const asked = figures.map(({ operation, requests }) => [operation, describeRequests(requests, size)]);
  return [
    `${binding}: ${size} Machines in one App, ${rounds} round${rounds === 1 ? "" : "s"}`,
    `state a Machine: ${bytes(stateBytes.real)}, at the floor ${bytes(stateBytes.floor)}`,
    ...(othersUse > 0.1
      ? [
          `Others used ${Math.round(othersUse * 100)} % of the processors between the rounds: do not trust these figures.`,
        ]
      : []),
    "",
    table([["", "floor", "real", "ratio", "in the rounds", "aim", "reached", "of processor time"], ...rows]),
    ...(figures.some(({ operation }) => operation === "far")
      ? ["far: a refresh with every answer 50 ms later, against the refresh without"]
      : []),
    "",
    "Requests to the service",
    table(asked),
    ...describeProcesses(samples),
  ].join("\n");
}

function describeRequests(requests: Requests, size: number): string {
  const all = Object.entries(requests).sort(([, a], [, b]) => b - a);
  if (all.length === 0) return "none";
  const total = totalOf(requests);
  const each = (total / size).toFixed(total % size === 0 ? 0 : 2);
  return `${total} (${each} a Machine): ${all.map(([operation, count]) => `${operation} ${count}`).join(", ")}`;
}

const roles: readonly Role[] = ["pulumi", "language host", "program", "provider"];

/** The distribution of CPU time, and the provider's memory; empty if they are unknown. */
function describeProcesses(samples: readonly Sample[]): string[] {
  const sides: readonly SideName[] = ["floor", "real"];
  const rows = operations.flatMap((operation) =>
    sides.flatMap((side) => {
      const found = samples.filter((sample) => sample.operation === operation && sample.side === side);
      if (found.every(({ processes }) => processes.length === 0)) return [];
      const cpuOf = (role: Role) =>
        median(found.map(({ processes }) => sum(processes.filter((one) => one.role === role).map(({ cpu }) => cpu))));
      const memory = Math.max(
        ...found.flatMap(({ processes }) =>
          processes.filter((one) => one.role === "provider").map((one) => one.peakMb),
        ),
      );
      const service = side === "real" ? median(found.map(({ serviceCpu }) => serviceCpu)) : 0;
      return [
        [
          operation,
          side,
          ...roles.map((role) => seconds(cpuOf(role))),
          seconds(service),
          seconds(sum(roles.map(cpuOf)) + service),
          Number.isFinite(memory) ? `${memory} MB` : "",
        ],
      ];
    }),
  );
  if (rows.length === 0) return [];
  const head = ["", "", ...roles, "service", "all", "provider's peak memory"];
  return ["", "Processor time in seconds (looked at five times a second), medians", table([head, ...rows])];
}

/** The target ratios of a start to the floor, in time and in memory. */
const startAim = 1.3;

/** The starts as text. */
export function describeStartups(startups: readonly Startup[]): string {
  const rows = startups.flatMap((startup) => {
    const { binding, side } = startup;
    const floor = startups.find((one) => one.binding === binding && one.side === "floor" && side !== "floor");
    return (["port", "checks"] as const).flatMap((point) => {
      const found = startup[point];
      return found ? [[binding, startPoints[point], side, ...describeReached(found, floor?.[point])]] : [];
    });
  });
  const head = ["", "", "", "median", "all", "ratio", "processor time", "ratio", "resident", "ratio"];
  return [
    `From the provider's start; the aim is at most ${startAim.toFixed(2)} of the floor`,
    table([head, ...rows]),
  ].join("\n");
}

const startPoints = { port: "to its port", checks: "until an App and a Machine are checked" };

function describeReached({ milliseconds, all, processor, mb }: Reached, floor: Reached | undefined): string[] {
  const ratio = (value: number | undefined, base: number | undefined): string =>
    value === undefined || base === undefined ? "" : (value / base).toFixed(2);
  return [
    `${milliseconds} ms`,
    `${Math.min(...all)} to ${Math.max(...all)}`,
    ratio(milliseconds, floor?.milliseconds),
    processor === undefined ? "" : `${Math.round(processor)} ms`,
    ratio(processor, floor?.processor),
    mb === undefined ? "" : `${mb} MB`,
    ratio(mb, floor?.mb),
  ];
}

/** The table of docs/performance.md. */
export function describeMarkdown(series: readonly Series[]): string {
  const rows = series.map((one) => {
    const figures = figuresOf(one);
    const cells = operations.map((operation) => {
      const found = figures.find((figure) => figure.operation === operation);
      return found ? `${found.real.toFixed(2)} s (${found.ratio.toFixed(2)})` : "";
    });
    return [one.binding, `${one.size}`, ...cells, bytes(one.stateBytes.real)];
  });
  const head = ["binding", "Machines", ...operations, "state of one"];
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const seconds = (value: number): string => (value === 0 ? "" : value.toFixed(2));
const bytes = (value: number): string => `${(value / 1000).toFixed(2)} kB`;

/** Pads columns to their widest cell. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, i) => Math.max(widest[i] ?? 0, cell.length)),
    [],
  );
  return rows
    .map(
      (row) =>
        `  ${row
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join("  ")
          .trimEnd()}`,
    )
    .join("\n");
}
