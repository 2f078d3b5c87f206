// The command line options.
import { resolve } from "node:path";
import { parseArgs } from "node:util";

/** An error without a stack, as a sentence for the user. */
export class Stop extends Error {}

/** The measured operations, in the order of a round. `far` is a refresh with every answer of the service 50 ms later. */
export const operations = ["create", "unchanged", "refresh", "far", "destroy"] as const;
/** One of {@link operations}. */
export type Operation = (typeof operations)[number];

/** The bindings of programs to the provider. */
export const bindingNames = ["dynamic", "plugin"] as const;
/** One of {@link bindingNames}. */
export type BindingName = (typeof bindingNames)[number];

/** What to measure, and how. */
export interface Options {
  /** Only the usage is printed. */
  readonly help: boolean;
  /** Numbers of Machines in the one App. */
  readonly sizes: readonly number[];
  /** Undefined: all existing ones. */
  readonly bindings: readonly BindingName[] | undefined;
  readonly rounds: number;
  /** Some of {@link operations}, in their order. */
  readonly only: readonly Operation[];
  /** The real side runs examples/everything, the floor an equivalent number of Machines. */
  readonly everything: boolean;
  /** Only the start time of the providers. */
  readonly starts: boolean;
  /** Number of Machines created in one App of a service with the documented rate limits; undefined: not measured. */
  readonly limited: number | undefined;
  /** Number of Machines created as a fleet and by themselves, and rolled out; undefined: not measured. */
  readonly fleet: number | undefined;
  /** Number of Machines, and a single one, created with and without their healthy time; undefined: not measured. */
  readonly watched: number | undefined;
  /** Number of Machines previewed with and without policies; undefined: not measured. */
  readonly policy: number | undefined;
  readonly skipCheckpoints: boolean;
  /** The format of standard output; `markdown` is the table of docs/performance.md. */
  readonly output: "tables" | "json" | "markdown";
  /** Folder for CPU profiles of the providers; undefined: none are written. */
  readonly profile: string | undefined;
}

/** The text of `--help`. */
export const usage = `npm run bench -- [options]
  --n 100,500            numbers of Machines in the App (100)
  --full                 the same as --n 100,500,1000
  --bindings dynamic     bindings to measure: ${bindingNames.join(", ")} (all there are)
  --rounds 3             how often everything is repeated (3)
  --only refresh         only these: ${operations.join(", ")} (all)
  --everything           instead: every resource and function once, against as many Machines of the floor
  --starts               only how long the providers take to start
  --limited 300          instead: so many Machines in an App of a service with the documented rate limits
  --fleet 300            instead: so many Machines as a fleet, against as many Machine resources and against its waves
  --watched 100          instead: one Machine and so many, with and without the time that they have to keep running
  --policy 200           instead: a preview of so many Machines with and without the policy pack
  --skip-checkpoints     with PULUMI_SKIP_CHECKPOINTS, for both sides
  --profile DIR          CPU profiles of the real providers into DIR; makes everything slower
  --json                 JSON on standard output instead of tables
  --markdown             the table of docs/performance.md instead
  --help                 this text`;

/** Parses the command line. @throws Stop when it is invalid. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parse(args);
  const only = values.only === undefined ? operations : list(values.only).flatMap(withBase);
  return {
    help: values.help,
    sizes: values.n === undefined ? (values.full ? [100, 500, 1000] : [100]) : list(values.n).map(positive("--n")),
    bindings: values.bindings === undefined ? undefined : list(values.bindings).map(oneOf("--bindings", bindingNames)),
    rounds: positive("--rounds")(values.rounds),
    only: operations.filter((operation) => only.includes(operation)),
    everything: values.everything,
    starts: values.starts,
    fleet: values.fleet === undefined ? undefined : positive("--fleet")(values.fleet),
    limited: values.limited === undefined ? undefined : positive("--limited")(values.limited),
    watched: values.watched === undefined ? undefined : positive("--watched")(values.watched),
    policy: values.policy === undefined ? undefined : positive("--policy")(values.policy),
    skipCheckpoints: values["skip-checkpoints"],
    output: values.json ? "json" : values.markdown ? "markdown" : "tables",
    profile: values.profile === undefined ? undefined : resolve(values.profile),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        n: { type: "string" },
        full: { type: "boolean", default: false },
        bindings: { type: "string" },
        rounds: { type: "string", default: "3" },
        only: { type: "string" },
        everything: { type: "boolean", default: false },
        starts: { type: "boolean", default: false },
        fleet: { type: "string" },
        limited: { type: "string" },
        watched: { type: "string" },
        policy: { type: "string" },
        "skip-checkpoints": { type: "boolean", default: false },
        profile: { type: "string" },
        json: { type: "boolean", default: false },
        markdown: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    throw new Stop(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

const list = (text: string): string[] => text.split(",").map((part) => part.trim());

const positive =
  (option: string) =>
  (text: string): number => {
    const number = Number(text);
    if (Number.isInteger(number) && number > 0) return number;
    throw new Stop(`${option} takes numbers above 0, not "${text}".`);
  };

const oneOf =
  <T extends string>(option: string, known: readonly T[]) =>
  (text: string): T => {
    const found = known.find((name) => name === text);
    if (found !== undefined) return found;
    throw new Stop(`${option} knows ${known.join(", ")}, not "${text}".`);
  };

/** The far refresh is compared with a near one. */
function withBase(text: string): Operation[] {
  const operation = oneOf("--only", operations)(text);
  return operation === "far" ? ["refresh", "far"] : [operation];
}
