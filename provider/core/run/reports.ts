// What a run has reported: objects to the engine, and problems to the user.
import type { Values } from "../resource.ts";

/** An object that was reported to the engine although a step after its creation or update failed. */
export interface Unfinished {
  readonly id: string;
  readonly properties: Values;
}

/** The objects that a run has reported as partly created or updated (R13), by type and owner. */
export class UnfinishedObjects {
  readonly #reported = new Map<string, Unfinished>();

  note(type: string, owner: string | undefined, object: Unfinished): void {
    if (owner !== undefined) this.#reported.set(`${type} ${owner}`, object);
  }

  of(type: string, owner: string | undefined): Unfinished | undefined {
    return this.#reported.get(`${type} ${owner ?? ""}`);
  }

  /** Notes that an owner's object is complete, or gone. */
  forget(type: string, owner: string | undefined): void {
    this.#reported.delete(`${type} ${owner ?? ""}`);
  }
}

/** The problems that a run has reported. Many resources may have the same one. */
export class Problems {
  /** With the subject of the first report. */
  readonly #known = new Map<string, string>();

  /** Whether something is reported for the first time. */
  isFirst(key: string): boolean {
    if (this.#known.has(key)) return false;
    this.#known.set(key, "");
    return true;
  }

  /** The subject that something was reported about first: the given one, unless there is an earlier report. */
  firstSubject(key: string, subject: string): string {
    const first = this.#known.get(key) ?? subject;
    this.#known.set(key, first);
    return first;
  }
}
