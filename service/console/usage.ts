// What Machines, Apps and clusters have used over the last hours.
import { z } from "zod";
import { sizeOf } from "../../api/machineConfig.ts";
import { keptMs, stepMs, type Course, type Merge } from "../history/points.ts";
import { findMachine, subjectOf } from "../lifecycle/machines.ts";
import { appOf, machineOf } from "../rules/find.ts";
import {
  clusterFields,
  clusterSeries,
  machineFields,
  machineSeries,
  measuredSeries,
  trafficFields,
  trafficSeries,
} from "../usage/series.ts";
import { memoryLimit } from "../runtime/memory.ts";
import type { Subject } from "../runtime/runtime.ts";
import type { Usage } from "../usage/usage.ts";
import { ask, type Asker } from "./ask.ts";
import type { Courses, MachineUsage, TrafficUsage } from "./types.ts";

/** Moments of a chart at most. */
const mostMoments = 180;
const hourMs = 3_600_000;

export const usageQuery = z.strictObject({
  /** Hours back from now. */
  hours: z.coerce
    .number<string>()
    .int()
    .min(1)
    .max(keptMs / hourMs)
    .default(1),
});

export const trafficQuery = usageQuery.extend({
  /** Scheme and host name; all of them if it is empty. */
  route: z.string().max(300).default(""),
});

const courseOf = ({ context }: Asker, series: string, merge: readonly Merge[], hours: number): Promise<Course> => {
  const to = context.clock.now();
  return context.history.course({ series, from: to - hours * hourMs, to, most: mostMoments, merge });
};

async function coursesOf<F extends string>(
  asker: Asker,
  series: string,
  fields: Readonly<Record<F, Merge>>,
  hours: number,
): Promise<Courses<F>> {
  const names = Object.keys(fields) as F[];
  const { times, values } = await courseOf(
    asker,
    series,
    names.map((name) => fields[name]),
    hours,
  );
  const courses = Object.fromEntries(names.map((name, i) => [name, values[i] ?? []]));
  return { times, courses: courses as Courses<F>["courses"], freshIn: stepMs };
}

const limitsOf = (machine: Subject): MachineUsage["limits"] => ({
  cpus: sizeOf(machine.config).cpus,
  memory: memoryLimit(machine).limitMb * 2 ** 20,
});

/** What a Machine has used. */
export async function machineUsage(
  asker: Asker,
  params: Readonly<Record<"app_name" | "machine_id", string>>,
  hours: number,
  usage: Usage,
): Promise<MachineUsage> {
  const { id } = machineOf({ ...asker, params });
  const { context } = asker;
  const row = findMachine(context, id);
  return {
    ...(await coursesOf(asker, machineSeries(id), machineFields, hours)),
    isSimulated: context.runtime.usage === undefined,
    problem: usage.problem ?? null,
    hasNetwork: usage.hasNetwork,
    isRunning: row?.state === "started",
    limits: row ? limitsOf(subjectOf(context, row)) : null,
  };
}

/** What the proxy has answered for an App. */
export async function trafficUsage(
  asker: Asker,
  app_name: string,
  { hours, route }: z.infer<typeof trafficQuery>,
  hasProxy: boolean,
): Promise<TrafficUsage> {
  const { id } = appOf({ ...asker, params: { app_name } });
  const prefix = trafficSeries(id, "");
  const routes = (await asker.context.history.series(prefix)).map((name) => name.slice(prefix.length));
  const [{ courses, ...rest }, measured] = await Promise.all([
    coursesOf(asker, trafficSeries(id, route), trafficFields, hours),
    courseOf(asker, measuredSeries, ["most"], hours),
  ]);
  const orNone = (values: readonly (number | null)[]) =>
    values.map((value, i) => value ?? (measured.values[0]?.[i] == null ? null : 0));
  return {
    ...rest,
    courses: { ...courses, requests: orNone(courses.requests), errors: orNone(courses.errors) },
    routes: routes.filter((name) => name !== ""),
    isSimulated: !hasProxy,
  };
}

/** What the server of a cluster did. */
export async function clusterUsage(asker: Asker, id: string, hours: number) {
  const { data } = await ask(asker, "postgres", "get", { postgres_cluster_id: id });
  const courses = await coursesOf(asker, clusterSeries(data.id ?? id), clusterFields, hours);
  return { ...courses, isSimulated: asker.context.postgres.load === undefined };
}

/** What the page gets of a cluster's load. */
export type ClusterUsage = Awaited<ReturnType<typeof clusterUsage>>;
