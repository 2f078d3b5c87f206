// The series that are measured: their names, and what their values are.
import type { Merge } from "../history/points.ts";

/** The values of a Machine: processors in use, bytes of memory, and bytes a second. */
export const machineFields = {
  cpus: "mean",
  memory: "most",
  received: "mean",
  sent: "mean",
  read: "mean",
  written: "mean",
} as const satisfies Readonly<Record<string, Merge>>;

/** The values of an App or one of its routes: requests and errors a second, and milliseconds within which half and 95 % were answered. */
export const trafficFields = {
  requests: "mean",
  errors: "mean",
  median: "mean",
  p95: "most",
} as const satisfies Readonly<Record<string, Merge>>;

/** The values of a cluster. */
export const clusterFields = {
  connections: "most",
  active: "most",
  most: "most",
  slow: "most",
} as const satisfies Readonly<Record<string, Merge>>;

/** The series of a Machine. */
export const machineSeries = (id: string): string => `machine ${id}`;

/** The series of an App, or with a route, of that. */
export const trafficSeries = (app: string, route: string): string => `app ${app} ${route}`;

/** The series of a cluster. */
export const clusterSeries = (id: string): string => `cluster ${id}`;

/** The series that has a value whenever something was measured: no request at such a time is none, not an unknown number. */
export const measuredSeries = "measured";
