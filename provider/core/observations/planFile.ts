// The file that a preview writes beside a saved plan of the engine, and that the update with this plan reads: what the preview saw
// of each object that it changes. The engine compares only what the program declares.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { isObject } from "../../../api/schema.ts";
import { MachinesError, messageOf } from "../../client/errors.ts";

/**
 * What was seen of an object, by name. Null: it could not be known. A text that may be secret, or reveals a secret, is here only as a
 * digest, whose key is in the state.
 */
export type Facts = Readonly<Record<string, string | number | boolean | null>>;

/** The names of the variables; each holds the path of a file. */
export const planVariables = { save: "MACHINES_SAVE_PLAN", use: "MACHINES_PLAN" } as const;

interface Line {
  readonly run: string;
  readonly object: string;
  readonly facts: Facts | null;
}

/**
 * One run of the engine. Several processes of it write to the file: one for each provider that has a configuration of its own. The
 * engine passes all of them its address as an argument, and no two runs have the same one.
 */
const runOf = (args: readonly string[]): string =>
  args.findLast((arg) => /^(127\.0\.0\.1|localhost|\[::1\]):\d+$/.test(arg)) ?? `process ${process.pid}`;

/** What a preview saw, or sees. */
export interface PlanFile {
  /** Writes the file of a preview, even if nothing is noted: the update must not take another one. */
  readonly begin: () => void;
  /** Notes what this preview sees of an object; null if it does not exist. Undefined if the run only compares. */
  readonly note: ((object: string, facts: Facts | null) => void) | undefined;
  /** Whether the preview has written the file. One that only deletes cannot: the engine sends the provider nothing then. */
  readonly exists: () => boolean;
  /** What the preview saw: null if the object did not exist, undefined if it noted nothing. */
  readonly seen: (object: string) => Facts | null | undefined;
  /** Whether an update compares what it finds with what the preview saw. */
  readonly isUsed: boolean;
}

const nothing: PlanFile = {
  begin: () => undefined,
  exists: () => false,
  note: undefined,
  seen: () => undefined,
  isUsed: false,
};

/** The file of a run, as its variables say. With both of them every look at it is refused: a plan cannot be compared with itself. */
export function planFile(
  env: Readonly<Record<string, string | undefined>>,
  args: readonly string[] = process.argv,
): PlanFile {
  const save = env[planVariables.save] || undefined;
  const use = env[planVariables.use] || undefined;
  if (save === undefined && use === undefined) return nothing;
  if (save !== undefined && use !== undefined) {
    const seen = (): never => {
      throw new MachinesError(
        "configuration",
        `${planVariables.save} and ${planVariables.use} are both set; set ${planVariables.save} for the preview, and ${planVariables.use} for the update`,
      );
    };
    return { ...nothing, exists: seen, seen, isUsed: true };
  }
  if (save !== undefined) {
    const run = runOf(args);
    let isBegun = false;
    // A run may have several processes. Replacing the file would lose what another one has noted.
    const append = (line: Line): void =>
      attempt(planVariables.save, save, () => appendFileSync(save, `${JSON.stringify(line)}\n`, { mode: 0o600 }));
    return {
      ...nothing,
      // A preview may know the id of nothing that it creates.
      begin() {
        if (!isBegun) append({ run, object: "", facts: null });
        isBegun = true;
      },
      note: (object, facts) => append({ run, object, facts }),
    };
  }
  const path = use ?? "";
  let lines: ReadonlyMap<string, Facts | null> | undefined;
  const read = (): ReadonlyMap<string, Facts | null> =>
    linesOf(attempt(planVariables.use, path, () => readFileSync(path, "utf8")));
  return { ...nothing, exists: () => existsSync(path), seen: (object) => (lines ??= read()).get(object), isUsed: true };
}

function attempt<T>(variable: string, path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new MachinesError(
      "configuration",
      `${variable}: got ${JSON.stringify(path)}, which cannot be ${variable === planVariables.save ? "written" : "read"}: ${messageOf(error)}. It is the file that the preview of the plan writes with ${planVariables.save}`,
    );
  }
}

/** What the last preview noted, which is the last run in the file. */
function linesOf(text: string): ReadonlyMap<string, Facts | null> {
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line, i): Line => {
      const parsed = parsedLine(line);
      if (parsed !== undefined) return parsed;
      throw new MachinesError(
        "configuration",
        `${planVariables.use}: line ${i + 1} of the file is not of a preview; preview again with ${planVariables.save}`,
      );
    });
  const last = lines.at(-1)?.run;
  return new Map(lines.filter(({ run }) => run === last).map(({ object, facts }) => [object, facts]));
}

function parsedLine(line: string): Line | undefined {
  try {
    const found: unknown = JSON.parse(line);
    const isLine = isObject(found) && typeof found["object"] === "string" && typeof found["run"] === "string";
    return isLine ? (found as unknown as Line) : undefined;
  } catch {
    return undefined;
  }
}
