// Checks the workflows of GitHub: their syntax, the types of their expressions, and the names of inputs and outputs.
import { actionlint } from "../setup/actionlint.mjs";
import { repositoryFiles } from "./files.mjs";
import { inRoot } from "./paths.mjs";
import { quiet } from "./process.mjs";

/** The check, or why it was skipped. */
export async function checkWorkflows(env) {
  const { program, reason } = await actionlint(env);
  if (program === undefined) return { reason };
  // The checkers of shell and Python on this computer would give every computer another result.
  const alone = ["-no-color", "-shellcheck=", "-pyflakes="];
  return quiet(program, [...alone, ...repositoryFiles(".github/workflows")], { cwd: inRoot("."), env });
}
