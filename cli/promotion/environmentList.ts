// `pulumi-machines environment list`: shows the environments of a project.
import { bareId } from "../../api/names.ts";
import type { Streams } from "../terminal.ts";
import { fewAtATime } from "../../provider/client/fewAtATime.ts";
import { exportStack, listStacks } from "../pulumi.ts";
import { readState } from "../stackState.ts";
import { tableOf, type Cell } from "../style.ts";
import { ago, until } from "../time.ts";
import { markIn, openProject, tagsOf } from "./stacks.ts";

/** Options of the command. */
export interface ListOptions {
  readonly json?: true;
}

/** An environment, as it is listed. */
interface Listed {
  readonly name: string;
  /** Its stack, `project/stack`. */
  readonly stack: string;
  readonly template: string;
  /** RFC 3339 times. */
  readonly createdAt: string;
  readonly updatedAt: string | null;
  readonly expiresAt: string;
  readonly isExpired: boolean;
  /** How many resources of ours its state holds. */
  readonly resources: number;
}

/** Lists the environments of the project, the first to expire first. */
export async function listEnvironments({ json }: ListOptions, { out }: Streams, now: Date = new Date()): Promise<void> {
  const project = await openProject();
  const listed: Listed[] = [];
  await fewAtATime(4, await listStacks(), async ({ name, updatedAt }) => {
    const mark = markIn(await tagsOf({ name }));
    if (mark === undefined) return;
    listed.push({
      name: bareId(name),
      stack: `${project.name}/${bareId(name)}`,
      template: mark.template,
      createdAt: mark.created,
      updatedAt: updatedAt ?? null,
      expiresAt: mark.expires,
      isExpired: Date.parse(mark.expires) <= now.getTime(),
      resources: readState(await exportStack(name), `the state of ${name}`).resources.length,
    });
  });
  listed.sort((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt));
  if (json) out(`${JSON.stringify({ environments: listed }, null, 2)}\n`);
  else if (listed.length === 0) out(`The project ${project.name} has no environments.\n`);
  else out(`${textOf(listed, now)}\n`);
}

function textOf(listed: readonly Listed[], now: Date): string {
  const rows = listed.map((one): Cell[] => [
    one.name,
    one.stack,
    one.template,
    ago(one.createdAt, now),
    one.updatedAt === null ? "never" : ago(one.updatedAt, now),
    one.isExpired ? { text: `expired ${ago(one.expiresAt, now)}`, style: "bad" } : `in ${until(one.expiresAt, now)}`,
    one.resources === 0
      ? { text: "nothing", style: "aside" }
      : `${one.resources} resource${one.resources === 1 ? "" : "s"}`,
  ]);
  return tableOf(["NAME", "STACK", "LIKE", "CREATED", "UPDATED", "EXPIRES", "EXISTS"], rows);
}
