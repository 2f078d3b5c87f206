// Reads from the service, and reads again when the service says that something has changed.
import { computed, effect, signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { hasRole, type Role } from "../../store/roles.ts";
import type { Fresh, SessionView, Topic } from "../types.ts";
import { ask } from "./session.ts";
import { openStream } from "./stream.ts";

/** An answer that is no success. */
export class Failure extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Why a request failed, as a sentence. */
export const problemOf = (error: unknown): string =>
  error instanceof Failure ? error.message : "the service does not answer";

/** The session: undefined until it is known, null without one. */
export const who = signal<SessionView | null | undefined>(undefined);

/** Why the page asks to sign in; empty on a first visit. */
export const notice = signal("");

/** Whether changes arrive. */
export const isLive = signal(false);

/** Milliseconds that the clock of the service is ahead of this one. */
let ahead = 0;

/** The time of the service, each second. */
export const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now() + ahead;
}, 1000);

/** Sends a request. Throws a Failure for any answer that is no success. */
export async function send<T>(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await ask(url, {
    method,
    ...(signal ? { signal } : {}),
    cache: "no-store",
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.ok) return (text === "" ? undefined : JSON.parse(text)) as T;
  // Anything but an attempt to sign in has been refused because the session is over.
  if (response.status === 401 && method !== "POST") signedOut();
  throw new Failure(response.status, errorIn(text) ?? `${response.status} ${response.statusText}`);
}

function signedOut(): void {
  if (who.peek()) notice.value = "The session has ended: it has expired, or its token was revoked. Sign in again.";
  who.value = null;
}

function errorIn(text: string): string | undefined {
  try {
    const { error, message } = JSON.parse(text) as { readonly error?: unknown; readonly message?: unknown };
    return typeof error === "string" ? error : typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

/** What was read, and why it could not be. */
export interface Live<T> {
  readonly data: T | undefined;
  readonly error: Failure | undefined;
  readonly refresh: () => void;
}

/** How an answer that only grows is read on: from the end of what is known. */
export interface Growth<T> {
  readonly after: (known: T) => string;
  readonly add: (known: T, more: T) => T;
}

/** Answers that say that there is nothing to show; after any other failure, what was last seen stays. */
const isFinal = (status: number): boolean => status >= 400 && status < 500 && status !== 429;

/** Milliseconds between two readings of the same; more if reading takes long. */
const apart = 100;

class Reading {
  readonly url: string;
  readonly topics: readonly Topic[];
  readonly state: Signal<{ readonly data: unknown; readonly error: Failure | undefined }>;
  readonly #growth: Growth<unknown> | undefined;
  #isReading = false;
  #isStale = false;
  #timer: number | undefined;
  #isOver = false;
  #earliest = 0;

  constructor(url: string, topics: readonly Topic[], growth: Growth<unknown> | undefined) {
    this.url = url;
    this.topics = topics;
    this.#growth = growth;
    this.state = signal({ data: undefined, error: undefined });
  }

  /** Reads again, soon if it was just read. */
  refresh(): void {
    if (this.#isOver || this.#timer !== undefined) return;
    if (this.#isReading) return void (this.#isStale = true);
    const wait = Math.max(0, this.#earliest - performance.now());
    if (wait === 0) return void this.#read();
    this.#timer = window.setTimeout(() => {
      this.#timer = undefined;
      void this.#read();
    }, wait);
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    const started = performance.now();
    try {
      const known = this.#growth && this.state.peek().data;
      const isMore = this.#growth !== undefined && known !== undefined;
      const answer = await send<Fresh | undefined>("GET", isMore ? this.#growth.after(known) : this.url);
      const data = isMore ? this.#growth.add(known, answer) : answer;
      const took = performance.now() - started;
      this.#earliest = started + Math.max(apart, 4 * took);
      const { freshIn } = answer ?? {};
      if (freshIn !== undefined) {
        this.#earliest = performance.now() + freshIn;
        this.#isStale = true;
      }
      if (!this.#isOver) this.state.value = { data, error: undefined };
    } catch (error) {
      this.#earliest = performance.now() + 1000;
      const failure = error instanceof Failure ? error : new Failure(0, "the service does not answer");
      const data = isFinal(failure.status) ? undefined : this.state.peek().data;
      // Without a connection, the stream says when it is back.
      if (!isFinal(failure.status) && failure.status !== 0) this.#isStale = true;
      if (!this.#isOver) this.state.value = { data, error: failure };
    }
    this.#isReading = false;
    if (!this.#isStale) return;
    this.#isStale = false;
    this.refresh();
  }

  end(): void {
    this.#isOver = true;
    window.clearTimeout(this.#timer);
  }
}

const readings = new Set<Reading>();
const topicsNow = signal("");

function countTopics(): void {
  const topics = [...new Set([...readings].flatMap(({ topics }) => topics))].sort().join(",");
  // Between two views, and in one that shows nothing, the stream stays as it is.
  if (topics !== "") topicsNow.value = topics;
}

const isSignedIn = computed(() => who.value != null);
/** Attempts to open the stream after it has ended. */
const attempts = signal(0);
let build: string | undefined;

// The stream of changes, which is opened again after its end.
effect(() => {
  const topics = topicsNow.value;
  if (!isSignedIn.value || topics === "" || attempts.value < 0) return undefined;
  let timer: number | undefined;
  const close = openStream(`/console/events?topics=${encodeURIComponent(topics)}`, {
    message: (event, data) => (event === "hello" ? greet(data as Hello) : refreshAll(data as readonly Topic[])),
    ended(isRefused) {
      isLive.value = false;
      timer = window.setTimeout(() => attempts.value++, isRefused ? 3000 : 500);
      // The session may be over.
      if (isRefused) void checkSession();
    },
  });
  return () => {
    window.clearTimeout(timer);
    close();
  };
});

/** The first message of a stream. */
interface Hello {
  readonly version: string;
  /** The time of the service. */
  readonly now: number;
}

function greet({ version, now: time }: Hello): void {
  isLive.value = true;
  ahead = time - Date.now();
  // A newer service has a newer page.
  if (build !== undefined && build !== version) location.reload();
  build = version;
  for (const reading of readings) reading.refresh();
}

function refreshAll(topics: readonly Topic[]): void {
  const changed = new Set(topics);
  for (const reading of readings) if (reading.topics.some((topic) => changed.has(topic))) reading.refresh();
}

/** Whether the session may do what needs a role. Buttons that it may not use are not shown. */
export const may = (needed: Role): boolean => {
  const session = who.value;
  return session?.canWrite === true && hasRole(session.role, needed);
};

/** The same for what belongs to no App, as clusters do. */
export const mayInOrganization = (needed: Role): boolean => may(needed) && who.value?.apps === null;

/** Finds out who uses the page. */
export async function checkSession(): Promise<void> {
  try {
    who.value = await send<SessionView>("GET", "/console/session");
    ahead = who.value.now - Date.now();
  } catch (error) {
    if (!(error instanceof Failure) || error.status !== 401) window.setTimeout(() => void checkSession(), 1000);
  }
}

// A page that nobody uses must not go on to show what its session may not see any more.
effect(() => {
  const { expiresAt = null, now: time = 0 } = who.value ?? {};
  if (expiresAt === null) return undefined;
  const timer = window.setTimeout(() => void checkSession(), expiresAt - time + 50);
  return () => window.clearTimeout(timer);
});

/** What an address of the service answers, now and after each change of its topics. Nothing is read without an address. */
export function useLive<T>(url: string | undefined, topics: readonly Topic[], growth?: Growth<T>): Live<T> {
  const key = `${url} ${topics.join(",")}`;
  const reading = useMemo(
    () => (url === undefined ? undefined : new Reading(url, topics, growth as Growth<unknown> | undefined)),
    [key],
  );
  useEffect(() => {
    if (!reading) return;
    readings.add(reading);
    countTopics();
    reading.refresh();
    return () => {
      readings.delete(reading);
      reading.end();
      countTopics();
    };
  }, [reading]);
  const { data, error } = reading?.state.value ?? { data: undefined, error: undefined };
  return { data: data as T | undefined, error, refresh: () => reading?.refresh() };
}
