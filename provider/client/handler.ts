// The handlers of a request: each does one thing around the next one. request.ts has their order.
import type { Operation } from "../../api/operation.ts";
import type { Clock, Deadline } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Sent, Transport } from "./transport.ts";

/** What a request needs of its connection. */
export interface Need {
  /** No request waits longer for a token. */
  readonly deadline?: Deadline;
  /** A token that the service did not accept; another one is given, where one can be had. */
  readonly refused?: string;
}

/** The value of the header that sends a token. */
export const bearer = (token: string): string => `Bearer ${token}`;

/** The parts of a client. */
export interface ClientParts {
  readonly config: Config;
  /** Base URL and token. Called before a request is sent, so that `local` starts only when it is needed. */
  readonly connect: (need?: Need) => Promise<{ readonly url: string; readonly token: string }>;
  readonly transport: Transport;
  readonly clock: Clock;
  /** Called once per request sent; for counting and for the log. It never gets headers or bodies. */
  readonly onRequest?: (event: {
    operation: string;
    method: string;
    path: string;
    status: number | undefined;
    attempt: number;
  }) => void;
}

/** A request in the chain of handlers. */
export interface Request {
  readonly operation: Operation;
  /** Arguments of the method, in camelCase. */
  readonly args: Readonly<Record<string, unknown>>;
  /** Path with its query. */
  readonly path: string;
  readonly url: string;
  readonly headers: Sent["headers"];
  readonly body: string | undefined;
  readonly deadline: Deadline;
  /** The sent token. No message may quote it. */
  readonly token: string;
  /** How often the request was sent before. */
  readonly attempt: number;
  /** Its place in the rate limiter's queues. A request that is sent again keeps it. */
  readonly position: number;
  /** Called before every request that is sent. @throws MachinesError when the operation has sent too many. */
  readonly countRequest: () => void;
}

/** Handles a request, usually with the help of the next handler. */
export type Handler<Result> = (request: Request) => Promise<Result>;

/** Whether the operation only reads, so that it may be sent at any time. */
export const isRead = ({ operation }: Pick<Request, "operation">): boolean => operation.repeat === "read";
