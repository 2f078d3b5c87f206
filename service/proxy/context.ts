// What a proxy needs of the service whose Machines it reaches. The service itself has all of it; a proxy that is a process of its own
// has a copy (followed.ts).
import type { Context } from "../context.ts";
import type { Counting } from "./traffic.ts";

/** What a proxy reads and writes to. */
export interface ProxyContext extends Pick<
  Context,
  "store" | "clock" | "machineRows" | "configs" | "publicNames" | "ownNames" | "vault" | "dataId" | "log"
> {
  /** Proves to an authority that hostnames lead here. */
  readonly issuer: Pick<Context["issuer"], "challenges">;
  /** Knows which Machines will be restarted. */
  readonly timers: Pick<Context["timers"], "pending">;
  /** Counts the answers by App for metrics; a proxy of its own leaves that to the service. */
  readonly counted: Counting | undefined;
}
