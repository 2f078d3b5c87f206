// Tells the pages that are open what has changed, after each commit. A page gets only the topics that it asked for, never what
// changed in them: it reads that with the rights that its session has then.
import { findMachine } from "../lifecycle/machines.ts";
import { findVolume } from "../lifecycle/volumes.ts";
import type { Context } from "../context.ts";
import type { Topic } from "./types.ts";

/** A page that is open. */
export interface Watcher {
  /** The organization that its session belongs to. */
  readonly org: number;
  /** What its topics are about. */
  readonly topics: ReadonlyMap<Topic, Subject>;
  readonly tell: (topics: readonly Topic[]) => void;
}

/** What a topic is about: everything of the organization, one App with all that is in it, one object, or something else. */
export type Subject =
  | { readonly is: "org" }
  | { readonly is: "app"; readonly id: string }
  | { readonly is: "object"; readonly id: string }
  | { readonly is: "requests" }
  | { readonly is: "faults" };

/** The App and the organization of a changed object; undefined if it is gone. */
interface Place {
  readonly app: string | undefined;
  readonly org: number | undefined;
}

/** Milliseconds between two messages to a page. */
const apart = 50;

interface Open {
  readonly watcher: Watcher;
  readonly changed: Set<Topic>;
  timer: NodeJS.Timeout | undefined;
  toldAt: number;
}

/** All pages that are open. */
export class Changes {
  readonly #context: Context;
  readonly #open = new Set<Open>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Number of pages that are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Adds a page; returns how to remove it. */
  watch(watcher: Watcher): () => void {
    const open: Open = { watcher, changed: new Set(), timer: undefined, toldAt: 0 };
    this.#open.add(open);
    return () => {
      clearTimeout(open.timer);
      this.#open.delete(open);
    };
  }

  /** After a commit that changed these objects. */
  committed(touched: ReadonlySet<string>): void {
    if (this.#open.size === 0 || touched.size === 0) return;
    const places = new Map<string, Place>();
    const placeOf = (id: string): Place => {
      let place = places.get(id);
      if (!place) places.set(id, (place = this.#placeOf(id)));
      return place;
    };
    for (const open of this.#open)
      for (const [topic, subject] of open.watcher.topics)
        if (!open.changed.has(topic) && concerns(subject, open.watcher.org, touched, placeOf)) this.#note(open, topic);
  }

  /** After a request was answered, or a fault was changed. */
  happened(what: "requests" | "faults"): void {
    for (const open of this.#open) if (open.watcher.topics.has(what)) this.#note(open, what);
  }

  #placeOf(id: string): Place {
    const app = findMachine(this.#context, id)?.app ?? findVolume(this.#context, id)?.app ?? id;
    const { store } = this.#context;
    const org =
      store.get<{ org: number }>("SELECT org FROM apps WHERE id = ?", app) ??
      store.get<{ org: number }>("SELECT org FROM clusters WHERE id = ?", id);
    return { app, org: org?.org };
  }

  /** Tells a page, the first time at once: changes that come soon after it are told together. */
  #note(open: Open, topic: Topic): void {
    open.changed.add(topic);
    if (open.timer) return;
    const wait = Math.max(0, open.toldAt + apart - performance.now());
    open.timer = setTimeout(() => {
      open.timer = undefined;
      open.toldAt = performance.now();
      const topics = [...open.changed];
      open.changed.clear();
      open.watcher.tell(topics);
    }, wait);
  }
}

function concerns(
  subject: Subject,
  org: number,
  touched: ReadonlySet<string>,
  placeOf: (id: string) => Place,
): boolean {
  if (subject.is === "object") return touched.has(subject.id);
  if (subject.is !== "org" && subject.is !== "app") return false;
  for (const id of touched) {
    const place = placeOf(id);
    // Of an object that is gone, the place is not known any more.
    if (place.org === undefined || (subject.is === "org" ? place.org === org : place.app === subject.id)) return true;
  }
  return false;
}
