// A token of a workflow may end before its time: the service was restored, or the request waited longer than the token lives.
import { bearer, type ClientParts, type Handler } from "./handler.ts";
import type { Outcome } from "./transport.ts";

/** Sends a request once more whose token was refused, if another token can be had: a refused request changed nothing. */
export const withAcceptedToken =
  ({ connect }: Pick<ClientParts, "connect">, next: Handler<Outcome>): Handler<Outcome> =>
  async (request) => {
    const outcome = await next(request);
    if (outcome.kind !== "answer" || outcome.status !== 401) return outcome;
    const { deadline, token: refused } = request;
    const { token } = await connect({ deadline, refused });
    if (token === refused) return outcome;
    return next({ ...request, token, headers: { ...request.headers, authorization: bearer(token) } });
  };
