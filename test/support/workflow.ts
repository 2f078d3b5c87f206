// A job of a workflow of examples/promotion, run as its runner would: the same commands, with the same environment.
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Ran, Stack } from "./stack.ts";

interface Step {
  readonly run?: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** What expressions of a workflow come to: `inputs.to`, and the secrets that the GitHub environment of the job has. */
export interface Runner {
  readonly values: Readonly<Record<string, string>>;
  /** Secrets by GitHub environment; the others have none. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

// What sets the runner up, and what talks to GitHub.
const isForGitHubAlone = (command: string): boolean => command === "npm ci" || command.startsWith("gh ");

/** Runs the commands of a job. A step that fails ends it, but for those that run always. */
export async function runJob(stack: Stack, file: string, name: string, { values, secrets }: Runner): Promise<Ran> {
  const { jobs } = parse(readFileSync(`examples/promotion/workflows/${file}`, "utf8")) as {
    jobs: Record<string, { environment: string; steps: readonly Step[] }>;
  };
  const job = jobs[name];
  if (job === undefined) throw new Error(`${file} has no job ${name}`);
  const filled = (text: string, given: Readonly<Record<string, string>>): string =>
    text.replaceAll(/\$\{\{ (.+?) \}\}/g, (_, expression: string) => {
      const value = given[expression];
      // GitHub takes what is not there for empty.
      if (value === undefined && !/^(secrets|vars)\./.test(expression))
        throw new Error(`${file} asks for ${expression}, which the test does not say`);
      return value ?? "";
    });
  const own = secrets[filled(job.environment, values)] ?? {};
  const given = {
    ...values,
    ...Object.fromEntries(Object.entries(own).map(([key, value]) => [`secrets.${key}`, value])),
  };
  let ran: Ran = { code: 0, output: "", stdout: "", stderr: "" };
  for (const { run, env = {}, if: when } of job.steps) {
    if (run === undefined || isForGitHubAlone(run.trim()) || (ran.code !== 0 && when !== "always()")) continue;
    const variables = Object.fromEntries(Object.entries(env).map(([key, text]) => [key, filled(text, given)]));
    // The backend of the test is that of every job.
    const { PULUMI_BACKEND_URL: _, ...rest } = variables;
    const next = await stack.run(["-ec", filled(run, given)], { command: "bash", plain: true, env: rest });
    ran = {
      code: ran.code === 0 ? next.code : ran.code,
      output: ran.output + next.output,
      stdout: ran.stdout + next.stdout,
      stderr: ran.stderr + next.stderr,
    };
  }
  return ran;
}
