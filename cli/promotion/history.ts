// The last update of a stack, from its history.
import { z } from "zod";
import { MachinesError } from "../../provider/client/errors.ts";
import { pulumi } from "../pulumi.ts";

const entries = z.array(z.object({ kind: z.string(), result: z.string(), endTime: z.iso.datetime().optional() }));

/** An update, a refresh or a destroy of a stack. */
export interface Update {
  readonly kind: string;
  readonly hasFailed: boolean;
  /** RFC 3339 time of its end. */
  readonly endedAt: string | undefined;
}

/** The last update of a stack; undefined if it has none. */
export async function lastUpdate(stack: string): Promise<Update | undefined> {
  const text = await pulumi(["stack", "history", "--json", "--page-size", "1"], stack);
  const parsed = entries.safeParse(JSON.parse(text));
  if (!parsed.success)
    throw new MachinesError("configuration", `\`pulumi stack history\` of stack ${stack} has an unknown form`);
  const [last] = parsed.data;
  return last && { kind: last.kind, hasFailed: last.result === "failed", endedAt: last.endTime };
}
