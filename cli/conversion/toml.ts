// Reads TOML, with the line of every key: the parser tells lines only for errors.
import { parse, TomlError } from "smol-toml";
import { MachinesError } from "../../provider/client/errors.ts";

/** Where a value is. */
export type Path = readonly (string | number)[];

/** A parsed file. */
export interface Parsed {
  readonly values: Record<string, unknown>;
  /** The line of a value, or of the nearest thing around it. */
  readonly lineOf: (path: Path) => number;
}

/**
 * Parses a file.
 * @param name what errors call it
 * @throws MachinesError `invalid-input` with line and column if it is not TOML
 */
export function parseToml(name: string, text: string): Parsed {
  let values: Record<string, unknown>;
  try {
    values = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [first = ""] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new MachinesError(
      "invalid-input",
      `${name}:${error.line}:${error.column}: this is not valid TOML: ${first}`,
      {
        cause: error,
      },
    );
  }
  const lines = new Scanner(text).lines();
  const lineOf = (path: Path): number => {
    for (let length = path.length; length > 0; length--) {
      // A single table may stand for a list of one.
      const start = path.slice(0, length);
      const line = lines.get(keyOf(start)) ?? lines.get(keyOf(start.filter((part) => part !== 0)));
      if (line !== undefined) return line;
    }
    return 1;
  };
  return { values, lineOf };
}

/** A path as a key of maps. */
export const keyOf = (path: Path): string => JSON.stringify(path);

/** Walks through a valid file, and notes where each key is. */
class Scanner {
  readonly #text: string;
  #at = 0;
  readonly #lines = new Map<string, number>();
  /** How many tables each list of tables has so far. */
  readonly #counts = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  lines(): ReadonlyMap<string, number> {
    let table: Path = [];
    for (this.#skipBlank(); this.#at < this.#text.length; this.#skipBlank()) {
      const header = this.#take(/\[\[?/y);
      if (header === "") {
        this.#pair(table);
        // The rest of a date with a space in it.
        this.#take(/[^\n]*/y);
        continue;
      }
      table = this.#header(header === "[[");
    }
    return this.#lines;
  }

  #header(isList: boolean): Path {
    const line = this.#line();
    const names = this.#names();
    this.#take(/[^\n]*/y);
    const path: (string | number)[] = [];
    for (const [i, name] of names.entries()) {
      path.push(name);
      const key = keyOf(path);
      if (isList && i === names.length - 1) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
      const count = this.#counts.get(key);
      if (isList) this.#note([...path], line);
      if (count !== undefined) path.push(count - 1);
    }
    this.#note(path, line);
    return path;
  }

  #pair(table: Path): void {
    const line = this.#line();
    const path = [...table, ...this.#names()];
    this.#note(path, line);
    this.#take(/[ \t]*=/y);
    this.#value(path);
  }

  #value(path: Path): void {
    this.#skipBlank();
    this.#note(path, this.#line());
    if (this.#take(/"""(?:[^\\]|\\[^])*?"{3,5}|'''[^]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y) !== "") return;
    if (this.#take(/\[/y) !== "") this.#items("]", (i) => this.#value([...path, i]));
    else if (this.#take(/\{/y) !== "") this.#items("}", () => this.#pair(path));
    else this.#take(/[^\n,\]}#]*/y);
  }

  #items(end: string, item: (i: number) => void): void {
    for (let i = 0; ; i++) {
      this.#skipBlank();
      if (this.#at >= this.#text.length) return;
      if (this.#text[this.#at] === end) {
        this.#at++;
        return;
      }
      item(i);
      this.#skipBlank();
      this.#take(/,/y);
    }
  }

  #names(): readonly string[] {
    const names: string[] = [];
    do {
      const part = this.#take(/[ \t]*(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+)[ \t]*/y).trim();
      names.push(part.startsWith('"') ? (JSON.parse(part) as string) : part.replaceAll("'", ""));
    } while (this.#take(/\./y) !== "");
    return names;
  }

  #note(path: Path, line: number): void {
    if (!this.#lines.has(keyOf(path))) this.#lines.set(keyOf(path), line);
  }

  #line(): number {
    return this.#text.slice(0, this.#at).split("\n").length;
  }

  #skipBlank(): void {
    this.#take(/(?:\s|#[^\n]*)*/y);
  }

  /** Takes the text that matches here; empty if none does. */
  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found = ""] = pattern.exec(this.#text) ?? [];
    this.#at += found.length;
    return found;
  }
}
