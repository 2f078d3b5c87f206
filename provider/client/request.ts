// A request from its arguments to its result: the handlers, from the innermost to the outermost.
import type { z } from "zod";
import { camelKey, toWire } from "../../api/case.ts";
import type { Operation } from "../../api/operation.ts";
import { isObject } from "../../api/schema.ts";
import { noteOutcomes } from "./circuitBreaker.ts";
import type { Deadline } from "./clock.ts";
import { MachinesError } from "./errors.ts";
import { noteSeen } from "./existence.ts";
import type { ClientParts, Handler } from "./handler.ts";
import { forgetLists } from "./listCache.ts";
import { parsed } from "./parse.ts";
import { rateLimited } from "./rateLimiter.ts";
import { retried } from "./retry.ts";
import { send } from "./send.ts";
import type { Session } from "./session.ts";
import { fresh } from "./staleReads.ts";

/** All handlers. Each one calls the one that is written inside of it. */
export const handlers = (parts: ClientParts, session: Session): Handler<unknown> =>
  fresh(
    session.staleReads,
    parts.clock,
    parsed(
      parts.config,
      noteSeen(
        session,
        forgetLists(
          session,
          retried(
            parts,
            session,
            noteOutcomes(session.circuitBreaker, rateLimited(session.rateLimiter, parts.clock, send(parts))),
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
  { deadline, count }: { readonly deadline: Deadline; readonly count: () => void },
): Promise<unknown> {
  const { url, token } = await connect();
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
    count,
  });
}

function pathOf(operation: Operation, args: Readonly<Record<string, unknown>>): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = args[camelKey(name)];
    const schema = (operation.params.shape as Record<string, z.ZodType>)[name];
    const checked = schema?.safeParse(value);
    if (!checked?.success) {
      throw new MachinesError(
        "invalid-input",
        `${operation.id}: ${name}: ${checked?.error.issues[0]?.message ?? "is missing"}`,
      );
    }
    // The star of a wildcard hostname is legal as it is, and the service wants it encoded
    // (docs/interface.md#names-and-identifiers).
    return encodeURIComponent(String(value)).replaceAll("*", "%2A");
  });
  const query = new URLSearchParams();
  for (const name of Object.keys(operation.query?.shape ?? {})) {
    const value = args[camelKey(name)];
    if (Array.isArray(value)) query.set(name, value.join(","));
    else if (isObject(value)) for (const [key, one] of Object.entries(value)) query.set(`${name}.${key}`, String(one));
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
    throw new MachinesError("invalid-input", `${operation.id}: the lease's nonce is nothing that a header can hold`);
  return {
    accept: "application/json",
    authorization: `Bearer ${token}`,
    "user-agent": "pulumi-machines",
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...(typeof nonce === "string" ? { [leaseHeader]: nonce } : {}),
  };
}
