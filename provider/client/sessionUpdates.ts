// The handlers that keep up to date what a client has learned about its service.
import { isRead, type Handler } from "./handler.ts";
import type { Session } from "./session.ts";

/** Records the App or cluster of each answer. The deletion of an App or a cluster proves nothing about it. */
export const noteSeen =
  <T>({ seen }: Session, next: Handler<T>): Handler<T> =>
  async (request) => {
    const answer = await next(request);
    const place = request.args["appName"] ?? request.args["postgresClusterId"];
    if (typeof place === "string" && !/^(apps|postgres)\.delete$/.test(request.operation.id)) seen.add(place);
    return answer;
  };

/** Forgets the lists of an App when something in it changes. */
export const forgetLists =
  <T>({ lists }: Session, next: Handler<T>): Handler<T> =>
  async (request) => {
    const forget = (): void => {
      for (const key of lists.keys()) if (key.endsWith(`/${String(request.args["appName"])}`)) lists.delete(key);
    };
    if (isRead(request)) return next(request);
    forget();
    // A list that was requested in the meantime may be older than the change.
    return next(request).finally(forget);
  };
