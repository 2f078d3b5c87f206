// Reads from the service, and reads again when the service says that something has changed.
import { effect, signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Fresh, Topic } from "../types.ts";

/** An answer that is no success. */
export class Failure extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Who uses the page. */
export interface Who {
  readonly organization: string;
  readonly app: string | null;
  readonly owner: string;
  readonly readOnly: boolean;
  readonly isOperator: boolean;
  readonly canWrite: boolean;
  readonly runtime: string;
  /** Milliseconds since 1970; null for never. */
  readonly expiresAt: number | null;
}

/** The session: undefined until it is known, null without one. */
export const who = signal<Who | null | undefined>(undefined);

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
export async function send<T>(method: string, url: string, body?: unknown): Promise<T> {
  const response = await fetch(url, {
    method,
    cache: "no-store",
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const date = Date.parse(response.headers.get("date") ?? "");
  // The header has whole seconds.
  if (Math.abs(date - Date.now() - ahead) > 2000) ahead = date - Date.now();
  const text = await response.text();
  if (response.ok) return (text === "" ? undefined : JSON.parse(text)) as T;
  if (response.status === 401) who.value = null;
  throw new Failure(response.status, errorIn(text) ?? `${response.status} ${response.statusText}`);
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

/** Milliseconds between two readings of the same; more if reading takes long. */
const apart = 100;

class Reading {
  readonly url: string;
  readonly topics: readonly Topic[];
  readonly state: Signal<{ readonly data: unknown; readonly error: Failure | undefined }>;
  #isReading = false;
  #isStale = false;
  #timer: number | undefined;
  #isOver = false;
  #earliest = 0;

  constructor(url: string, topics: readonly Topic[], before: unknown) {
    this.url = url;
    this.topics = topics;
    // What was shown stays until the next arrives, so that nothing jumps.
    this.state = signal({ data: before, error: undefined });
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
      const data = await send<Fresh | undefined>("GET", this.url);
      const took = performance.now() - started;
      this.#earliest = started + Math.max(apart, 4 * took);
      const { freshIn } = data ?? {};
      if (freshIn !== undefined) {
        this.#earliest = performance.now() + freshIn;
        this.#isStale = true;
      }
      if (!this.#isOver) this.state.value = { data, error: undefined };
    } catch (error) {
      this.#earliest = performance.now() + 1000;
      const failure = error instanceof Failure ? error : new Failure(0, "the service does not answer");
      // Without an answer, what was last seen stays; the page says that it is not live.
      const data = failure.status === 0 ? this.state.peek().data : undefined;
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
  topicsNow.value = [...new Set([...readings].flatMap(({ topics }) => topics))].sort().join(",");
}

/** The stream of changes; the browser connects again by itself. */
let stream: EventSource | undefined;
let build: string | undefined;

effect(() => {
  const topics = topicsNow.value;
  stream?.close();
  stream = undefined;
  if (!who.value || topics === "") return;
  const opened = new EventSource(`/console/events?topics=${encodeURIComponent(topics)}`);
  stream = opened;
  opened.addEventListener("hello", (event) => {
    isLive.value = true;
    const { version } = JSON.parse(event.data as string) as { readonly version: string };
    // A newer service has a newer page.
    if (build !== undefined && build !== version) location.reload();
    build = version;
    for (const reading of readings) reading.refresh();
  });
  opened.addEventListener("changed", (event) => {
    const changed = new Set(JSON.parse((event as MessageEvent<string>).data) as Topic[]);
    for (const reading of readings) if (reading.topics.some((topic) => changed.has(topic))) reading.refresh();
  });
  opened.addEventListener("error", () => {
    isLive.value = false;
    // The browser gives up after an answer that is no success: the session may be over, or the object gone.
    if (opened.readyState === EventSource.CLOSED) void checkSession().then(() => window.setTimeout(reopen, 3000));
  });
});

function reopen(): void {
  const topics = topicsNow.peek();
  if (stream?.readyState !== EventSource.CLOSED) return;
  topicsNow.value = "";
  topicsNow.value = topics;
}

/** Finds out who uses the page. */
export async function checkSession(): Promise<void> {
  try {
    who.value = await send<Who>("GET", "/console/session");
  } catch (error) {
    if (!(error instanceof Failure) || error.status !== 401) window.setTimeout(() => void checkSession(), 1000);
  }
}

/** What an address of the service answers, now and after each change of its topics. Nothing is read without an address. */
export function useLive<T>(url: string | undefined, topics: readonly Topic[]): Live<T> {
  const key = `${url} ${topics.join(",")}`;
  const reading = useMemo(() => (url === undefined ? undefined : new Reading(url, topics, undefined)), [key]);
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
