// restic, and a server with the interface of S3, both for tests of backups: built once from their Go modules.
import { goProgram } from "./goProgram.mjs";

/**
 * The program restic; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 */
export const resticProgram = (env) =>
  goProgram(
    { name: "restic", what: "restic", source: "tools/restic", package: "github.com/restic/restic/cmd/restic" },
    env,
  );

/**
 * A server with the interface of S3, which keeps objects in memory; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 */
export const s3Program = (env) =>
  goProgram(
    {
      ...{ name: "gofakes3", what: "a server for tests of S3", source: "tools/s3" },
      package: "github.com/johannesboyne/gofakes3/cmd/gofakes3",
    },
    env,
  );
