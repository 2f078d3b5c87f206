// Helm, for tests of the chart: built once from its Go module.
import { goProgram } from "./goProgram.mjs";

/**
 * The program; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 */
export const helmProgram = (env) =>
  goProgram({ name: "helm", what: "Helm", source: "tools/helm", package: "helm.sh/helm/v3/cmd/helm" }, env);
