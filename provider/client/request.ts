// Turns a call of an operation into a request, and sends it through the chain of handlers.
import type { z } from "zod";
import { camelKey, toWire } from "../../api/case.ts";
import type { Operation } from "../../api/operation.ts";
import { isObject } from "../../api/schema.ts";
import { firstIssue } from "../../api/validated.ts";
import { noteOutcomes } from "./circuitBreaker.ts";
import type { Deadline } from "./clock.ts";
import { MachinesError } from "./errors.ts";
import { bearer, type ClientParts, type Handler } from "./handler.ts";
import { askerHeader } from "./asker.ts";
import { updateHeader } from "./update.ts";
import { noteRollouts } from "./rollouts.ts";
import { withParsing } from "./parse.ts";
import { withRateLimit } from "./rateLimiter.ts";
import { withAcceptedToken } from "./acceptedToken.ts";
import { withRetries } from "./retry.ts";
import { send } from "./send.ts";
import type { Session } from "./session.ts";
import { forgetLists, noteSeen } from "./sessionUpdates.ts";
import { retryStaleReads } from "./staleReads.ts";

/** The chain of handlers, from the outermost to the innermost. Each handler calls its last argument, the next handler. */
export const handlers = (parts: ClientParts, session: Session): Handler<unknown> =>
  retryStaleReads(
    session.staleReads,
    parts.clock,
    withParsing(
      parts.config,
      noteSeen(
        session,
        forgetLists(
          session,
          withRetries(
            parts,
            session,
            noteOutcomes(
              session.circuitBreaker,
              noteRollouts(
                session,
                withRateLimit(session.rateLimiter, parts.clock, withAcceptedToken(parts, send(parts))),
              ),
            ),
          ),
        ),
      ),
    ),
  );

/** Sends a request with arguments in camelCase, and returns its result in camelCase. */
export async function call(
  { config, connect }: ClientParts,
  session: Session,
  handle: Handler<unknown>,
  operation: Operation,
  args: Readonly<Record<string, unknown>>,
  { deadline, countRequest }: { readonly deadline: Deadline; readonly countRequest: () => void },
): Promise<unknown> {
  const { url, token } = await connect({ deadline });
  const path = pathOf(operation, args);
  const body = bodyOf(operation, args);
  return handle({
    operation,
    args,
    path,
    url: url + path,
    headers: headersOf(operation, args, token, config.leaseHeader, body !== undefined),
    body,
    deadline,
    token,
    attempt: 0,
    position: session.rateLimiter.nextPosition(),
    countRequest,
  });
}

function pathOf(operation: Operation, args: Readonly<Record<string, unknown>>): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = args[camelKey(name)];
    const schema = (operation.params.shape as Record<string, z.ZodType>)[name];
    const issue = schema && firstIssue(schema, value);
    if (!schema || issue)
      throw new MachinesError(
        "invalid-input",
        `${operation.id}: ${camelKey(name)}: ${value === undefined || !issue ? "is missing" : issue.message}`,
      );
    // A URL may contain the star of a wildcard hostname unencoded, but the service requires it encoded
    // (docs/interface.md#names-and-identifiers).
    return encodeURIComponent(String(value)).replaceAll("*", "%2A");
  });
  const query = new URLSearchParams();
  for (const name of Object.keys(operation.query?.shape ?? {})) {
    const value = args[camelKey(name)];
    if (Array.isArray(value)) query.set(name, value.join(","));
    else if (isObject(value))
      for (const [key, item] of Object.entries(value)) query.set(`${name}.${key}`, String(item));
    else if (value !== undefined) query.set(name, `${value as string | number | boolean}`);
  }
  return query.size > 0 ? `${path}?${query.toString()}` : path;
}

const bodyOf = (operation: Operation, args: Readonly<Record<string, unknown>>): string | undefined =>
  operation.body && args["body"] !== undefined ? JSON.stringify(toWire(operation.body, args["body"])) : undefined;

function headersOf(
  operation: Operation,
  args: Readonly<Record<string, unknown>>,
  token: string,
  leaseHeader: string,
  hasBody: boolean,
): Record<string, string> {
  const nonce = operation.lease ? args["leaseNonce"] : undefined;
  if (typeof nonce === "string" && !/^[\u0021-\u007e]+$/.test(nonce))
    throw new MachinesError(
      "invalid-input",
      `${operation.id}: the lease's nonce contains a character that is not allowed in a header`,
    );
  return {
    accept: "application/json",
    authorization: bearer(token),
    "user-agent": "pulumi-machines",
    ...askerHeader(),
    ...updateHeader(),
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...(typeof nonce === "string" ? { [leaseHeader]: nonce } : {}),
  };
}
