// The tool `problems`: what is wrong, as the console of the service finds it.
import { z } from "zod";
import type { Api } from "../../provider/client/api.ts";
import { orgMachinePages } from "../../provider/client/pages.ts";
import { addTool, bounded, place, type Session } from "./tool.ts";
import type { Workspace } from "./workspace.ts";

/** The part of the console's overview that is read. */
const overview = z.object({
  problems: z.object({
    total: z.int(),
    first: z.array(
      z.object({
        kind: z.string(),
        subject: z.string(),
        text: z.array(z.union([z.string(), z.object({ at: z.number() })])),
        place: z.object({ app: z.string().optional(), machine: z.string().optional(), cluster: z.string().optional() }),
      }),
    ),
  }),
});

const problem = z.object({
  kind: z
    .string()
    .describe("As `Machine failed`, `Machine loops`, `check critical`, `certificate ends`, `cluster full`."),
  text: z.string().describe("A sentence."),
  app: z.string().optional(),
  machine: z.string().optional().describe("Id of the Machine, for `show`."),
  cluster: z.string().optional().describe("Id of the cluster, for `show`."),
});

const output = z.object({
  total: z.int(),
  problems: z.array(problem).describe("The worst first."),
  source: z
    .enum(["console", "states"])
    .describe(
      "`states`: the service has no console, so only failed Machines and clusters are known; checks and certificates are not.",
    ),
});

type Output = z.output<typeof output>;

/** Adds the tool. */
export function addProblems(session: Session, workspace: Workspace): void {
  addTool(session, {
    name: "problems",
    title: "Show what is wrong",
    description:
      "What is wrong in the organization now: Machines that failed or crash again and again, critical checks, certificates that expire, full " +
      "clusters and regions, missing backups; with the cause. Start here when something does not work.",
    input: z.strictObject({ app: z.string().min(1).max(100).optional().describe("Only those of this App."), ...place }),
    output,
    narrow: "name an app",
    async run({ app, stack, folder }) {
      const api = await workspace.service({ stack, folder });
      const found = (await ofConsole(api)) ?? (await ofStates(api));
      if (app === undefined) return found;
      const own = found.problems.filter((one) => one.app === app);
      return { ...found, total: own.length, problems: own };
    },
  });
}

/** The problems of the console; undefined if the service has none, or another one. */
async function ofConsole(api: Api): Promise<Output | undefined> {
  const { status, text } = await api.readOwn("/console/api/overview");
  if (status !== 200) return undefined;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined; // Another program answers there.
  }
  const { data } = overview.safeParse(json);
  if (!data) return undefined;
  const { total, first } = data.problems;
  const problems = first.map(({ kind, subject, text: words, place: { app, machine, cluster } }) => ({
    kind,
    text: bounded(
      subject + words.map((word) => (typeof word === "string" ? word : new Date(word.at).toISOString())).join(""),
      1000,
    ),
    ...(app !== undefined && { app }),
    ...(machine !== undefined && { machine }),
    ...(cluster !== undefined && { cluster }),
  }));
  return { total, problems, source: "console" };
}

/** Most problems in an answer, as on the page of the console. */
const mostShown = 50;

async function ofStates(api: Api): Promise<Output> {
  const orgSlug = api.config.organization;
  const problems: z.output<typeof problem>[] = [];
  for (const { id, name, status } of (await api.postgres.list({ orgSlug })).data)
    if (status === "failed")
      problems.push({ kind: "cluster failed", text: `Cluster ${name} has failed.`, cluster: id });
  for await (const { machines } of orgMachinePages(api, { orgSlug, summary: true }))
    for (const { id, name = id, appName, state } of machines)
      if (state === "failed")
        problems.push({
          kind: "Machine failed",
          text: `Machine ${name} of ${appName} has failed.`,
          app: appName,
          machine: id,
        });
  return { total: problems.length, problems: problems.slice(0, mostShown), source: "states" };
}
