// The typed client: one method per row of the contract, bound to the deadline of the operation that calls it.
import type { z } from "zod";
import type { Camel } from "../../api/case.ts";
import { contract } from "../../api/index.ts";
import type { Clock, Deadline } from "./clock.ts";
import type { Config } from "./config.ts";
import { MachinesError } from "./errors.ts";
import type { ClientParts } from "./handler.ts";
import { call, handlers } from "./request.ts";
import { readOwn, type OwnAnswer } from "./ownRoutes.ts";
import { readRollouts, sendReport, type RolloutQuery, type RolloutReport } from "./rollouts.ts";
import { newConnection, newSession, type Connection, type Session } from "./session.ts";

type Contract = typeof contract;
type In<S> = S extends z.ZodType ? Camel<z.input<S>> : unknown;
/** Without this, a row without path parameters would forbid every other argument. */
type Params<Row> = Row extends { params: z.ZodObject<infer Shape> }
  ? keyof Shape extends never
    ? unknown
    : In<Row["params"]>
  : unknown;
type Arguments<Row> = Params<Row> &
  (Row extends { query: infer Q } ? In<Q> : unknown) &
  (Row extends { lease: string } ? { leaseNonce?: string | undefined } : unknown) &
  (Row extends { body: infer B } ? (Row extends { bodyOptional: true } ? { body?: In<B> } : { body: In<B> }) : unknown);
type Answer<Row> = Row extends { answer: infer A } ? (A extends z.ZodType ? Camel<z.output<A>> : void) : void;
/** Every operation of the interface as a method, by group. */
export type Methods = {
  readonly [G in keyof Contract]: {
    readonly [M in keyof Contract[G]]: (args: Arguments<Contract[G][M]>) => Promise<Answer<Contract[G][M]>>;
  };
};

/** An answer of the service as programs see it. */
export type AnswerOf<G extends keyof Contract, M extends keyof Contract[G]> = Answer<Contract[G][M]>;

/** The service as handlers see it. */
export interface Api extends Methods {
  readonly config: Config;
  readonly clock: Clock;
  readonly deadline: Deadline;
  /** What the run has learned about the service. */
  readonly session: Session;
  /** The same service with another deadline. */
  within(deadline: Deadline): Api;
  /** Reports a rollout to a service that shows rollouts. It never fails. */
  reportRollout(report: RolloutReport): Promise<void>;
  /** The rollouts that the service shows; undefined if it shows none. @throws MachinesError if it does not answer, or refuses */
  rollouts(query: RolloutQuery): ReturnType<typeof readRollouts>;
  /** Reads from a route that only a machines-service has. @throws MachinesError if it does not answer, or refuses the token */
  readOwn(path: string): Promise<OwnAnswer>;
  /** Closes idle connections; requests in progress continue. */
  close(): Promise<void>;
}

/** Creates the client of one run for an endpoint and token. */
export function createApi(parts: ClientParts, connection: Connection = newConnection(parts.clock)): Api {
  const session = newSession(connection);
  const handle = handlers(parts, session);
  const bind = (deadline: Deadline): Api => {
    const under = { deadline, countRequest: counter(deadline) };
    const methodsOf = (group: keyof Contract) => {
      const methods = Object.entries(contract[group]).map(([name, row]) => [
        name,
        (args: Record<string, unknown>) => call(parts, session, handle, row, args, under),
      ]);
      return Object.fromEntries(methods) as Methods[typeof group];
    };
    return Object.assign(byGroup(methodsOf), {
      config: parts.config,
      clock: parts.clock,
      deadline,
      session,
      within: bind,
      rollouts: (query: RolloutQuery) => readRollouts(parts, query),
      readOwn: (path: string) => readOwn(parts, path),
      reportRollout: (report: RolloutReport) => sendReport(parts, session, report),
      close: () => parts.transport.close(),
    });
  };
  return bind({ at: Number.POSITIVE_INFINITY, allowed: "no limit" });
}

/** All groups, each created on first use. A run uses two or three, and each loads the schemas of all its rows. */
export function byGroup(make: (group: keyof Contract) => Methods[keyof Contract]): Methods {
  const groups = Object.keys(contract).map((group): [string, PropertyDescriptor] => {
    let methods: Methods[keyof Contract] | undefined;
    return [group, { enumerable: true, get: () => (methods ??= make(group as keyof Contract)) }];
  });
  return Object.defineProperties({}, Object.fromEntries(groups)) as Methods;
}

function counter({ requests = Number.POSITIVE_INFINITY, allowed }: Deadline): () => void {
  let sent = 0;
  return () => {
    if (++sent <= requests) return;
    throw new MachinesError(
      "wait-timeout",
      `${requests} requests were sent in the ${allowed} of this operation, and it is not finished; the next up continues from here`,
    );
  };
}
