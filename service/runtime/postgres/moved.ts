// Servers that still run in a folder that was moved away.
import type { EngineHost } from "../postgresEngine.ts";
import { PostgresError } from "./postgresError.ts";
import { endProcess, mayEnd, serversMovedFrom } from "./processes.ts";

// ASSUMED: a server that does not end within ten seconds is killed. It recovers when it is started in its folder again.
const patienceMs = 10_000;

/**
 * Ends servers whose folder was moved away. With another folder in its place, such as an older copy, they would go on in the old one,
 * and what they acknowledge would be lost with their end.
 * @throws PostgresError if they are another user's.
 */
export async function endMoved({ log }: Pick<EngineHost, "log">, folder: string): Promise<void> {
  const ending = serversMovedFrom(folder).map(async ({ pid, data, now }) => {
    if (!mayEnd(pid))
      throw new PostgresError(
        `a server of another user, process ${pid}, still runs in ${now}, which was ${data}; end it first`,
      );
    log.warn(
      { process: pid, data, now },
      "a Postgres server still ran in a folder that was moved away; it is ended, and its rows stay there",
    );
    // Without a checkpoint: a server of an earlier version would write into the folder that is now in the place of its own.
    await endProcess(pid, data, { signal: "SIGQUIT", last: "SIGKILL", patienceMs });
  });
  await Promise.all(ending);
}
