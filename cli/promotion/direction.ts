// The direction of promotions between the stacks of a project, checked before anything else is.
import { bareId } from "../../api/names.ts";
import { listStacks } from "../pulumi.ts";
import { stackBefore, type Project, type Stack } from "./stacks.ts";

/** Why nothing is promoted from one stack to another, in lines; undefined if it may be. `goBack` is a command. */
export async function wrongDirection(
  project: Project,
  source: Stack,
  target: Stack,
  goBack: string,
): Promise<readonly string[] | undefined> {
  const there = (await listStacks()).map(({ name }) => bareId(name));
  const before = await placeBefore(target, there);
  if (before !== undefined)
    return before === bareId(source.name)
      ? undefined
      : [
          `Not promoted: ${target.name} takes its releases from ${before}, as \`before\` in its configuration says, and not from ${source.name}. Nothing has changed.`,
        ];
  // By way of other stacks, too: dev, staging, prod.
  const seen = new Set<string>();
  for (let at: Stack | undefined = source; at !== undefined && !seen.has(at.name);) {
    seen.add(at.name);
    const from: string | undefined = await placeBefore(at, there);
    if (from === bareId(target.name)) return noWayBack(target.name, goBack);
    at = from === undefined ? undefined : await project.find(from);
  }
  return undefined;
}

/** The refusal of a promotion to the stack where releases begin. */
export const noWayBack = (stack: string, goBack: string): readonly string[] => [
  `Releases begin in ${stack}, so nothing is promoted to it. To roll back: ${goBack}`,
  "Not promoted. Nothing has changed.",
];

/** The stack before, by the configuration `before`, as in the docs. A program may use this key for something else. */
async function placeBefore(stack: Stack, there: readonly string[]): Promise<string | undefined> {
  const before = bareId((await stackBefore(stack)) ?? "");
  return there.includes(before) ? before : undefined;
}
