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

/** A service that a test fully controls. */
export interface TestService<C extends Clock | undefined = Clock | undefined> {
  readonly url: string;
  /** Token of organization `personal`. */
  readonly token: string;
  readonly service: Service;
  /** The given clock; a ManualClock can be advanced. */
  readonly clock: C;
  /** Every answered request, oldest first. */
  readonly requests: Seen[];
  /** Every request with a body, oldest first, if they are kept. */
  readonly bodies: { readonly method: string; readonly path: string; readonly body: unknown }[];
  /** Plans faults; see service/faults/faults.ts. */
  fail(...faults: Fault[]): void;
  close(): Promise<void>;
}

/** Is called with every answer of a service. */
type OnAnswer = (operation: string, status: number, text: string) => void;

/** Whether a request intends a change. */
export const isWrite = ({ operation = "" }: Seen): boolean => operationsById.get(operation)?.repeat !== "read";

/** Starts a service: by default strict, without delays or disk, and with an audit. */
export async function startService<C extends Clock | undefined = undefined>({
  keepBodies = false,
  onAnswer,
  ...options
}: ServiceOptions & { clock?: C; keepBodies?: boolean; onAnswer?: OnAnswer } = {}): Promise<TestService<C>> {
  const requests: Seen[] = [];
  const bodies: TestService["bodies"] = [];
  const service = createService({
    delays: "none",
    strict: true,
    audit: true,
    ...options,
    onRequest: (seen) => requests.push(seen),
  });
  if (keepBodies)
    service.app.addHook("preHandler", ({ method, url: path, body }, _reply, done) => {
      if (body !== undefined) bodies.push({ method, path, body });
      done();
    });
  if (onAnswer)
    service.app.addHook("onSend", ({ routeOptions }, { statusCode }, payload, done) => {
      onAnswer(
        routeOptions.config.operation ?? "",
        statusCode,
        Buffer.isBuffer(payload) ? payload.toString() : typeof payload === "string" ? payload : "",
      );
      done();
    });
  const url = await service.app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    token: service.token,
    service,
    clock: options.clock as C,
    requests,
    bodies,
    fail: (...faults) => service.faults.add(...faults),
    close: () => service.close(),
  };
}
