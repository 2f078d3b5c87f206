// A log at the other end of a network that delays, loses and doubles requests and answers, as a process sees it that may be paused, cut
// off and killed.
import { LogUnavailable } from "../../service/replication/log.ts";

/** Milliseconds until a request counts as lost. */
const answerMs = 2000;

/** A process, and the network between it and the log. */
export interface Link {
  now(): number;
  /** Calls back after that many milliseconds, whatever happens to the process. Returns how to prevent it. */
  after(ms: number, run: () => void): () => void;
  /** Calls back as soon as the process runs: now, after its pause, or never if it has died. */
  awake(run: () => void): void;
  /** Whether nothing leaves the process and nothing reaches it. */
  isCut(): boolean;
  /** Milliseconds that a message needs. */
  delay(): number;
  /** Whether the next message of this kind is lost, or arrives twice. */
  strikes(what: "requests lost" | "answers lost" | "requests doubled"): boolean;
  /** Called before the process sees an answer, with the milliseconds that it waited. */
  waited?(ms: number): void;
}

type Request = (...values: readonly unknown[]) => Promise<unknown>;

/** The same functions as those of a log, over a network. */
export function remoteLog<L extends object>(log: L, link: Link): L {
  const over =
    (request: Request): Request =>
    (...values) =>
      new Promise((resolve, reject) => {
        const sentAt = link.now();
        let isOver = false;
        const answer = (how: () => void): void =>
          link.awake(() => {
            if (isOver) return;
            isOver = true;
            cancel();
            link.waited?.(link.now() - sentAt);
            how();
          });
        const cancel = link.after(answerMs, () => answer(() => reject(new LogUnavailable("no answer"))));
        if (link.isCut() || link.strikes("requests lost")) return;
        // The request arrives even if the process has died or is paused by then.
        const send = async (): Promise<void> => {
          const later = (how: () => void): void => void link.after(link.delay(), () => answer(how));
          try {
            const found = await request(...values);
            if (!link.isCut() && !link.strikes("answers lost")) later(() => resolve(found));
          } catch (error) {
            later(() => reject(asUnavailable(error)));
          }
        };
        link.after(link.delay(), () => void send());
        if (link.strikes("requests doubled"))
          link.after(link.delay(), () => void request(...values).catch(() => undefined));
      });
  return new Proxy(log, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? over((member as Request).bind(target)) : member;
    },
  });
}

/** As with a database: an entry that is there already came from an attempt whose answer was lost. */
const asUnavailable = (error: unknown): unknown =>
  error instanceof Error && /cannot be appended/.test(error.message) ? new LogUnavailable(error.message) : error;
