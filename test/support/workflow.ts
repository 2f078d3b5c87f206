// Runs a job of a workflow of examples/promotion like a runner: in its own checkout, with the same commands and the same
// environment.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { parse } from "yaml";
import type { Ran, Stack } from "./stack.ts";

interface Step {
  readonly run?: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
}

type Permissions = Readonly<Record<string, string>>;

interface Job {
  readonly permissions?: Permissions;
  readonly if?: string;
  readonly environment: string;
  readonly steps: readonly Step[];
}

/** The values of a workflow's expressions: `inputs.to`, and the secrets of the job's GitHub environment. */
export interface Runner {
  readonly values: Readonly<Record<string, string>>;
  /** Secrets by GitHub environment; other environments have none. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Variables with which a job of a GitHub environment gets an identity token, if it has the permission. */
  readonly identity: (environment: string) => Promise<Readonly<Record<string, string>>>;
}

/** The output of a job. */
export interface JobRan extends Ran {
  /** The GitHub environment whose secrets the job had; undefined if the event does not start the job. */
  readonly environment: string | undefined;
}

// Steps that set up the runner, and steps that use GitHub.
const isOnlyForGitHub = (command: string): boolean => command === "npm ci" || command.startsWith("gh ");

/** A workflow expression; its `==`, `!=`, `&&`, `||` and texts mean the same in JavaScript. */
function evaluate(expression: string, given: Readonly<Record<string, string>>): unknown {
  const script = expression.replaceAll(/'[^']*'|[a-z_]+(?:\.[\w-]+)+/g, (term) => {
    if (term.startsWith("'")) return term;
    const value = given[term];
    // GitHub treats missing values as empty; a test should not do so by mistake.
    if (value === undefined && !/^(secrets|vars)\./.test(term))
      throw new Error(`the workflow asks for ${term}, which the test does not say`);
    return JSON.stringify(value ?? "");
  });
  return runInNewContext(script);
}

/** Runs the commands of a job, if the event starts it. A failing step ends it, except for steps that always run. */
export async function runJob(stack: Stack, file: string, name: string, runner: Runner): Promise<JobRan> {
  const { values, secrets, identity } = runner;
  const { jobs, permissions } = parse(readFileSync(`examples/promotion/workflows/${file}`, "utf8")) as {
    readonly jobs: Readonly<Record<string, Job>>;
    readonly permissions?: Permissions;
  };
  const job = jobs[name];
  if (job === undefined) throw new Error(`${file} has no job ${name}`);
  const filled = (text: string, given: Readonly<Record<string, string>>): string =>
    text.replaceAll(/\$\{\{ (.+?) \}\}/g, (_, expression: string) => String(evaluate(expression, given)));
  const none: Ran = { code: 0, output: "", stdout: "", stderr: "" };
  if (job.if !== undefined && evaluate(job.if, values) !== true) return { ...none, environment: undefined };

  const environment = filled(job.environment, values);
  const own = Object.entries(secrets[environment] ?? {}).map(([key, value]) => [`secrets.${key}`, value] as const);
  const given = { ...values, ...Object.fromEntries(own) };
  const mayIdentify = (job.permissions ?? permissions)?.["id-token"] === "write";
  const signsIn = mayIdentify ? await identity(environment) : {};
  const bash = (script: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
    stack.run(["-ec", script], { command: "bash", plain: true, env: { ...signsIn, ...env } });
  // A checkout has what was pushed, and nothing of other jobs.
  let ran = await bash("git fetch --quiet && git reset --quiet --hard origin/main && git clean --quiet -fd");
  for (const { run, env = {}, if: when } of job.steps) {
    if (run === undefined || isOnlyForGitHub(run.trim()) || (ran.code !== 0 && when !== "always()")) continue;
    const variables = Object.entries(env).map(([key, text]) => [key, filled(text, given)] as const);
    // All jobs use the test's backend.
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
