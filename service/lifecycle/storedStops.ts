// How Machines are being stopped, for runtimes that stop real processes. A service that starts meanwhile continues each stop.
import type { StopRequest, StoredStop, StoredStops } from "../runtime/runtime.ts";
import type { Clock } from "../time/clock.ts";
import type { Timers } from "../time/timers.ts";

// The timer is only the record of a stop: nothing happens when it is due. It stays for a day after the end of the stop, because a service
// that starts later must know that the time is over.
const kind = "runtime.step";
const keptMs = 24 * 3_600_000;

/** The data of the timer. */
type Data = StopRequest & { readonly instance?: string | undefined };

/** The stops in the store. */
export function storedStops(timers: Timers, clock: Clock, report: (change: () => void) => void): StoredStops {
  return {
    of(machine): StoredStop | undefined {
      const { due, data } = timers.find(machine, kind) ?? {};
      // A timer of the simulated runtime has no data.
      if (due === undefined || !data) return undefined;
      const { instance, ...request } = JSON.parse(data) as Data;
      return { request, asked: instance === undefined ? undefined : { instance, leftMs: due - keptMs - clock.now() } };
    },
    keep(machine, { request, asked }) {
      const data: Data = { ...request, instance: asked?.instance };
      const leftMs = asked?.leftMs ?? request.timeoutMs;
      report(() => timers.after(leftMs + keptMs, kind, machine, JSON.stringify(data)));
    },
    forget(machine) {
      if (timers.pending(machine, kind)) report(() => timers.cancel(machine, kind));
    },
  };
}
