// Values that a preview does not know yet: reported as unknown, never assumed, and checked at the update.

/** The error that Pulumi's SDK throws when a policy reads an unknown value. */
interface UnknownValue extends Error {
  readonly unknownTypeSentinel: string;
  /** The path of the value: names of properties and indexes. */
  readonly props: string[];
}

// The class is not exported, and two copies of the SDK may be loaded, so the error is recognised by its contents.
/** Whether an error reports an unknown value. */
export const isUnknownValue = (error: unknown): error is UnknownValue =>
  error instanceof Error && "unknownTypeSentinel" in error && "props" in error;

/** The value that is read, or undefined if a preview does not know it. */
export function ifKnown<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isUnknownValue(error)) return undefined;
    throw error;
  }
}

/** Lets a check continue past unknown values, and reports all of them at the end. */
export class Unknowns {
  readonly #found: UnknownValue[] = [];
  readonly #when: string;

  /** @param when the time when the values are known: "…, and are checked then, …" */
  constructor(when: string) {
    this.#when = when;
  }

  /** Runs a part of a check. Its unknown values are reported at the end; the rest of the check continues. */
  readonly whenKnown = (check: () => void): void => {
    try {
      check();
    } catch (error) {
      this.#note(error);
    }
  };

  /** Runs a part of a check for each item of a list or each value of a map, even if some of them are unknown. */
  readonly each: Each = (
    items: readonly unknown[] | { readonly [key: string]: unknown } | undefined | null,
    check: (item: never, key: never) => void,
  ): void => {
    // By key, because an iterator would end at the first unknown item.
    const read = items as Record<string | number, unknown> | undefined | null;
    if (read === undefined || read === null) return;
    const keys = Array.isArray(read) ? [...read.keys()] : Object.keys(read);
    for (const key of keys)
      this.whenKnown(() => {
        const item = read[key];
        if (item !== undefined && item !== null) check(item as never, key as never);
      });
  };

  /** Runs the whole check. @throws an error that reports the unknown values to Pulumi and the user */
  async run(check: () => Promise<void> | void): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.#note(error);
    }
    const [first] = this.#found;
    if (first === undefined) return;
    const paths = [...new Set(this.#found.map(({ props }) => pathText(props)))];
    const is = paths.length > 1 ? "are" : "is";
    first.message = `${paths.join(" and ")} ${is} known only at the update, and ${is} checked ${this.#when}`;
    throw first;
  }

  #note(error: unknown): void {
    if (!isUnknownValue(error)) throw error as Error;
    this.#found.push(error);
  }
}

/** Runs a part of a check for each item of a list, or each value of a map. */
export interface Each {
  <T>(items: readonly T[] | undefined | null, check: (item: T, index: number) => void): void;
  <T>(values: { readonly [key: string]: T } | undefined | null, check: (value: T, key: string) => void): void;
}

/** A path as programs write it: `config.services[0].ports`. */
export const pathText = (path: readonly (string | number)[]): string =>
  path.map((part, at) => (/^\d+$/.test(`${part}`) ? `[${part}]` : at === 0 ? `${part}` : `.${part}`)).join("");
