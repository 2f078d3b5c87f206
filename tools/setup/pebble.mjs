// Pebble, an ACME authority for tests, and its DNS server: built once from their Go modules.
import { goProgram } from "./goProgram.mjs";

/**
 * A program of Pebble; or the reason why there is none.
 * @param {"pebble" | "pebble-challtestsrv"} name
 * @param {NodeJS.ProcessEnv} env
 */
export const pebbleProgram = (name, env) =>
  goProgram(
    { name, what: "Pebble", source: "tools/pebble", package: `github.com/letsencrypt/pebble/v2/cmd/${name}` },
    env,
  );
