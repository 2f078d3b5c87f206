// The stream of changes, as server-sent events.
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { refuse, Refusal } from "../refusal.ts";
import { appOf, machineOf } from "../rules/find.ts";
import { version } from "../version.ts";
import type { Asker } from "./ask.ts";
import { visibleTo } from "./requests.ts";
import type { Changes, Subject } from "./changes.ts";
import type { Pages } from "./pages.ts";
import type { Topic } from "./types.ts";
import { isFor, isForAll } from "../store/tokens.ts";
import type { AppRow } from "../store/rows.ts";

/** A connection on which nothing comes is noticed after this many milliseconds. */
const aliveEvery = 15_000;
/** Topics of one page. */
const mostTopics = 10;

/** The query of the stream. */
export const eventsQuery = z.strictObject({ topics: z.string().max(2000) });

/** The subject of a topic, if the caller may see it. */
function subjectOf(asker: Asker, topic: string): Subject {
  const { context, caller } = asker;
  const [kind, rest] = [topic.split(":", 1)[0], topic.slice(topic.indexOf(":") + 1)];
  // For a token of some Apps, the organization is those.
  if (topic === "org") return isForAll(caller) ? { is: topic } : { is: "apps", has: (id) => hasApp(asker, id) };
  if (topic === "faults") return { is: topic };
  if (topic === "rollouts") return { is: topic, org: caller.slug };
  if (topic === "requests") return { is: topic, isVisible: visibleTo(asker) };
  if (kind === "app") return { is: "app", id: appOf({ context, caller, params: { app_name: rest } }).id };
  if (kind === "machine") {
    const [app, machine] = rest.split("/");
    return { is: "object", id: machineOf({ context, caller, params: { app_name: app, machine_id: machine } }).id };
  }
  if (kind === "cluster") {
    const found = context.store.get<{ org: number }>("SELECT org FROM clusters WHERE id = ?", rest);
    if (found?.org !== caller.org || !isForAll(caller)) throw refuse(404, "cluster not found");
    return { is: "object", id: rest };
  }
  const got = topic === "" ? "nothing" : JSON.stringify(topic.slice(0, 80));
  throw refuse(
    400,
    `invalid topics, got ${got}, must be org, requests, rollouts, faults, app:NAME, machine:APP/ID or cluster:ID`,
  );
}

/** Whether a token is for an App now: Apps of its network may have been created meanwhile. */
function hasApp({ context, caller }: Asker, id: string): boolean {
  const app = context.store.get<Pick<AppRow, "id" | "org" | "network">>(
    "SELECT id, org, network FROM apps WHERE id = ?",
    id,
  );
  return app?.org === caller.org && isFor(caller, app);
}

/** The same; while there is no such object, its page waits for one among all changes of the organization. */
function knownSubject(asker: Asker, topic: string): Subject {
  try {
    return subjectOf(asker, topic);
  } catch (error) {
    if (error instanceof Refusal && (error.status === 404 || error.status === 403)) return subjectOf(asker, "org");
    throw error;
  }
}

/** A running stream. */
export interface Stream {
  readonly asker: Asker;
  readonly topics: string;
  readonly changes: Changes;
  readonly pages: Pages;
  /** Whether the session was opened with a code of this computer. */
  readonly isOperator: boolean;
  /** Identifies this run of the service. */
  readonly run: string;
  /** Whether the session of the page is still valid. */
  readonly isValid: () => boolean;
  readonly closing: AbortSignal;
}

/** Sends the changes of the topics until the page is closed, or its session ends. */
export function sendChanges(reply: FastifyReply, stream: Stream): FastifyReply {
  const { asker, changes, pages, isOperator, run, isValid, closing } = stream;
  const names = stream.topics.split(",");
  if (names.length > mostTopics)
    throw refuse(400, `invalid topics, got ${names.length}, must be at most ${mostTopics}`);
  const topics = new Map(names.map((name) => [name as Topic, knownSubject(asker, name)]));
  const { id: token, org } = asker.caller;
  const leave = pages.add({ token, org, isOperator }, () => end());
  const out = new Readable({ read() {} });
  let behind: Set<Topic> | undefined;
  const send = (event: string, data: unknown): void => {
    out.push(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const notify = (changed: readonly Topic[]): void => {
    if (!isValid()) return end();
    // A page that does not read must not fill the memory.
    if (out.readableLength > 65_536) return void (behind = new Set([...(behind ?? []), ...changed]));
    send("changed", [...new Set([...(behind ?? []), ...changed])]);
    behind = undefined;
  };
  const unwatch = changes.watch({ org: asker.caller.org, topics, notify });
  const alive = setInterval(() => {
    if (!isValid()) return end();
    if (behind) notify([]);
    else out.push(":\n\n");
  }, aliveEvery);
  const end = (): void => {
    clearInterval(alive);
    unwatch();
    leave();
    out.push(null);
  };
  closing.addEventListener("abort", end, { once: true });
  reply.raw.once("close", () => {
    closing.removeEventListener("abort", end);
    end();
  });
  out.push("retry: 500\n");
  send("hello", { run, version, now: asker.context.clock.now() });
  return reply
    .type("text/event-stream; charset=utf-8")
    .header("cache-control", "no-store")
    .header("x-accel-buffering", "no")
    .send(out);
}
