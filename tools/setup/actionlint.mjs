// actionlint, which checks the workflows of GitHub: built once from its Go module.
import { goProgram } from "./goProgram.mjs";

/**
 * The program actionlint; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 */
export const actionlint = (env) =>
  goProgram(
    {
      ...{ name: "actionlint", what: "actionlint", source: "tools/actionlint" },
      package: "github.com/rhysd/actionlint/cmd/actionlint",
    },
    env,
  );
