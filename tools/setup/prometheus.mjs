// Prometheus, and promtool, which checks its rules: built once from their Go module.
import { goProgram } from "./goProgram.mjs";

/**
 * A program of Prometheus; or the reason why there is none.
 * @param {"prometheus" | "promtool"} name
 * @param {NodeJS.ProcessEnv} env
 */
export const prometheusProgram = (name, env) =>
  goProgram(
    {
      ...{ name, what: "Prometheus", source: "tools/prometheus" },
      package: `github.com/prometheus/prometheus/cmd/${name}`,
      // Without its discovery of targets in clouds, which is most of the code.
      prepare: async () => ["-tags", "remove_all_sd"],
    },
    env,
  );
