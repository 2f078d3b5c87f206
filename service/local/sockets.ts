// Sockets that systemd or another program has opened for this process, and that listen already: while the service restarts, the
// system keeps new connections in their queues.
import { Problem } from "./problem.ts";

/** Descriptors of sockets, by what they are for. */
export type Sockets = Readonly<Record<"http" | "https" | "api", readonly number[]>>;

const names = ["http", "https", "api"] as const;

/** No socket was given. */
export const noSockets: Sockets = { http: [], https: [], api: [] };

/** The first descriptor, as sd_listen_fds(3) says. */
const firstDescriptor = 3;

/**
 * The sockets that were given to this process. Removes their variables from the environment, so that no child takes them as its own.
 * Throws a Problem if one has no name of this service.
 */
export function takeSockets(env: NodeJS.ProcessEnv = process.env, pid = process.pid): Sockets {
  const { LISTEN_FDS: count = "", LISTEN_PID: to = "", LISTEN_FDNAMES: given = "" } = env;
  for (const name of ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID"]) delete env[name];
  // They are for another process, whose environment this one has inherited.
  if (Number(to) !== pid || !/^\d{1,4}$/.test(count)) return noSockets;
  const named = given === "" ? [] : given.split(":");
  const found = { http: [] as number[], https: [] as number[], api: [] as number[] };
  for (let i = 0; i < Number(count); i++) {
    const name = names.find((one) => one === named[i]);
    if (name === undefined)
      throw new Problem(
        `the name of socket ${i + 1} is ${JSON.stringify(named[i] ?? "")}, and must be http, https or api; set FileDescriptorName= in its unit`,
      );
    found[name].push(firstDescriptor + i);
  }
  return found;
}
