// A service in the test's own process, on a free port of this computer.
import {
  createService,
  type Clock,
  type Fault,
  type Seen,
  type Service,
  type ServiceOptions,
} from "../../service/index.ts";
import { operationsById } from "../../service/faults/faults.ts";

/** A service a test may do everything to. */
export interface TestService<C extends Clock | undefined = Clock | undefined> {
  readonly url: string;
  /** Token of organization `personal`. */
  readonly token: string;
  readonly service: Service;
  /** The clock that was handed in; a ManualClock is told to `advance`. */
  readonly clock: C;
  /** Every request that was answered, oldest first. */
  readonly requests: Seen[];
  /** Plans faults; see service/faults/faults.ts. */
  fail(...faults: Fault[]): void;
  close(): Promise<void>;
}

/** Whether a request was meant to change something. */
export const isWrite = ({ operation = "" }: Seen): boolean => operationsById.get(operation)?.repeat !== "read";

/** Starts a service: strict, without delays and without a disk, and with an audit, unless the options say otherwise. */
export async function startService<C extends Clock | undefined = undefined>(
  options: ServiceOptions & { clock?: C } = {},
): Promise<TestService<C>> {
  const requests: Seen[] = [];
  const service = createService({
    delays: "none",
    strict: true,
    audit: true,
    ...options,
    onRequest: (seen) => requests.push(seen),
  });
  const url = await service.app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    token: service.token,
    service,
    clock: options.clock as C,
    requests,
    fail: (...faults) => service.faults.add(...faults),
    close: () => service.close(),
  };
}
