// After each commit, notifies the open pages whose topics have changed. A page gets only the names of its topics, and reads them
// again with the rights that its session has then.
import { findMachine } from "../lifecycle/machines.ts";
import { findVolume } from "../lifecycle/volumes.ts";
import type { Context } from "../context.ts";
import type { Audited } from "../http/audit.ts";
import type { Topic } from "./types.ts";

/** A page that is open. */
export interface Watcher {
  /** The organization that its session belongs to. */
  readonly org: number;
  /** What its topics are about. */
  readonly topics: ReadonlyMap<Topic, Subject>;
  readonly notify: (topics: readonly Topic[]) => void;
}

/** What a topic is about: everything of the organization, some Apps with all that is in them, one object, or something else. */
export type Subject =
  | { readonly is: "org" }
  | { readonly is: "app"; readonly id: string }
  | { readonly is: "apps"; readonly has: (id: string) => boolean }
  | { readonly is: "object"; readonly id: string }
  | { readonly is: "requests"; readonly isVisible: (entry: Audited) => boolean }
  /** The rollouts of an organization, by its slug. */
  | { readonly is: "rollouts"; readonly org: string }
  | { readonly is: "faults" };

/** What a commit changed. */
interface Changed {
  readonly objects: ReadonlySet<string>;
  readonly apps: ReadonlySet<string>;
  readonly orgs: ReadonlySet<number>;
  /** Whether one of the objects is gone, so that its place is not known any more. */
  readonly hasGone: boolean;
}

/** Milliseconds between two messages to a page. */
const apart = 50;

interface Open {
  readonly watcher: Watcher;
  readonly changed: Set<Topic>;
  timer: NodeJS.Timeout | undefined;
  notifiedAt: number;
}

/** All pages that are open. */
export class Changes {
  readonly #context: Context;
  readonly #open = new Set<Open>();
  #commits = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Number of pages that are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Adds a page; returns how to remove it. */
  watch(watcher: Watcher): () => void {
    const open: Open = { watcher, changed: new Set(), timer: undefined, notifiedAt: 0 };
    this.#open.add(open);
    return () => {
      clearTimeout(open.timer);
      this.#open.delete(open);
    };
  }

  /** Number of commits. */
  get commits(): number {
    return this.#commits;
  }

  /** After a commit that changed these objects. */
  committed(touched: ReadonlySet<string>): void {
    this.#commits++;
    if (this.#open.size === 0 || touched.size === 0) return;
    const changed = this.#changedBy(touched);
    for (const open of this.#open)
      for (const [topic, subject] of open.watcher.topics)
        if (!open.changed.has(topic) && concerns(subject, open.watcher.org, changed)) this.#note(open, topic);
  }

  /** After something that only the view of this object shows. */
  seenOf(id: string): void {
    for (const open of this.#open)
      for (const [topic, subject] of open.watcher.topics)
        if (subject.is === "object" && subject.id === id) this.#note(open, topic);
  }

  /** After a request was answered. */
  answered(entry: Audited): void {
    for (const open of this.#open) {
      const subject = open.watcher.topics.get("requests");
      if (subject?.is === "requests" && !open.changed.has("requests") && subject.isVisible(entry))
        this.#note(open, "requests");
    }
  }

  /** After entries of the history about these organizations were written. */
  stored(orgs: ReadonlySet<string>): void {
    for (const open of this.#open) {
      const subject = open.watcher.topics.get("rollouts");
      if (subject?.is === "rollouts" && orgs.has(subject.org)) this.#note(open, "rollouts");
    }
  }

  /** After a fault was added or removed, or a request may have been hit by one. */
  faultsChanged(): void {
    for (const open of this.#open) if (open.watcher.topics.has("faults")) this.#note(open, "faults");
  }

  #changedBy(objects: ReadonlySet<string>): Changed {
    const orgs = new Map<string, number | undefined>();
    for (const id of objects) {
      const app = findMachine(this.#context, id)?.app ?? findVolume(this.#context, id)?.app ?? id;
      if (!orgs.has(app)) orgs.set(app, this.#orgOf(app));
    }
    const found = [...orgs.values()];
    return {
      objects,
      apps: new Set(orgs.keys()),
      orgs: new Set(found.filter((org) => org !== undefined)),
      hasGone: found.includes(undefined),
    };
  }

  /** The organization of an App or a cluster; undefined if it is gone. */
  #orgOf(id: string): number | undefined {
    const { store } = this.#context;
    const sql = (table: string) => `SELECT org FROM ${table} WHERE id = ?`;
    return (store.get<{ org: number }>(sql("apps"), id) ?? store.get<{ org: number }>(sql("clusters"), id))?.org;
  }

  /** Notifies a page, the first time at once. Changes that come soon after it are sent together. */
  #note(open: Open, topic: Topic): void {
    open.changed.add(topic);
    if (open.timer) return;
    const wait = Math.max(0, open.notifiedAt + apart - performance.now());
    open.timer = setTimeout(() => {
      open.timer = undefined;
      open.notifiedAt = performance.now();
      const topics = [...open.changed];
      open.changed.clear();
      open.watcher.notify(topics);
    }, wait);
  }
}

function concerns(subject: Subject, org: number, { objects, apps, orgs, hasGone }: Changed): boolean {
  if (subject.is === "object") return objects.has(subject.id);
  if (subject.is === "app") return hasGone || apps.has(subject.id);
  if (subject.is === "apps") return hasGone || [...apps].some((id) => subject.has(id));
  return subject.is === "org" && (hasGone || orgs.has(org));
}
