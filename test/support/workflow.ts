// A job of a workflow of examples/promotion, run as its runner would: in a checkout of its own, with the same commands and the
// same environment.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { parse } from "yaml";
import type { Ran, Stack } from "./stack.ts";

interface Step {
  readonly run?: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Job {
  readonly if?: string;
  readonly environment: string;
  readonly steps: readonly Step[];
}

/** What expressions of a workflow come to: `inputs.to`, and the secrets that the GitHub environment of the job has. */
export interface Runner {
  readonly values: Readonly<Record<string, string>>;
  /** Secrets by GitHub environment; the others have none. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** What was run, and what it could have told of. */
export interface JobRan extends Ran {
  /** The GitHub environment whose secrets the job had; undefined where the job is not for what happened. */
  readonly environment: string | undefined;
}

// What sets the runner up, and what talks to GitHub.
const isForGitHubAlone = (command: string): boolean => command === "npm ci" || command.startsWith("gh ");

/** An expression of a workflow, of which `==`, `!=`, `&&`, `||` and texts mean the same in JavaScript. */
function evaluate(expression: string, given: Readonly<Record<string, string>>): unknown {
  const script = expression.replaceAll(/'[^']*'|[a-z_]+(?:\.[\w-]+)+/g, (term) => {
    if (term.startsWith("'")) return term;
    const value = given[term];
    // GitHub takes what is not there for empty; a test should not by mistake.
    if (value === undefined && !/^(secrets|vars)\./.test(term))
      throw new Error(`the workflow asks for ${term}, which the test does not say`);
    return JSON.stringify(value ?? "");
  });
  return runInNewContext(script);
}

/** Runs the commands of a job, if it is for what happened. A step that fails ends it, but for those that run always. */
export async function runJob(stack: Stack, file: string, name: string, { values, secrets }: Runner): Promise<JobRan> {
  const { jobs } = parse(readFileSync(`examples/promotion/workflows/${file}`, "utf8")) as { jobs: Record<string, Job> };
  const job = jobs[name];
  if (job === undefined) throw new Error(`${file} has no job ${name}`);
  const filled = (text: string, given: Readonly<Record<string, string>>): string =>
    text.replaceAll(/\$\{\{ (.+?) \}\}/g, (_, expression: string) => String(evaluate(expression, given)));
  const none: Ran = { code: 0, output: "", stdout: "", stderr: "" };
  if (job.if !== undefined && evaluate(job.if, values) !== true) return { ...none, environment: undefined };

  const environment = filled(job.environment, values);
  const own = Object.entries(secrets[environment] ?? {}).map(([key, value]) => [`secrets.${key}`, value] as const);
  const given = { ...values, ...Object.fromEntries(own) };
  const bash = (script: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
    stack.run(["-ec", script], { command: "bash", plain: true, env });
  // A checkout knows what was pushed, and nothing of what other jobs left.
  let ran = await bash("git fetch --quiet && git reset --quiet --hard origin/main && git clean --quiet -fd");
  for (const { run, env = {}, if: when } of job.steps) {
    if (run === undefined || isForGitHubAlone(run.trim()) || (ran.code !== 0 && when !== "always()")) continue;
    const variables = Object.entries(env).map(([key, text]) => [key, filled(text, given)] as const);
    // The backend of the test is that of every job.
    const { PULUMI_BACKEND_URL: _, ...rest } = Object.fromEntries(variables);
    const next = await bash(filled(run, given), rest);
    ran = {
      code: ran.code === 0 ? next.code : ran.code,
      output: ran.output + next.output,
      stdout: ran.stdout + next.stdout,
      stderr: ran.stderr + next.stderr,
    };
  }
  return { ...ran, environment };
}
