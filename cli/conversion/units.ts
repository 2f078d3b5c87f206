// Times, sizes and commands as deployment files write them.
import { parseDuration } from "../../api/schema.ts";

/** A time for the provider. A bare number counts in the unit; undefined if it is no time. */
export function timeOf(value: string | number, unit: "ms" | "s"): string | undefined {
  const text = String(value).trim();
  if (!/^\d+(?:\.\d+)?$/.test(text)) return parseDuration(text) === undefined ? undefined : text;
  const isWholeSeconds = unit === "ms" && Number(text) % 1000 === 0;
  return isWholeSeconds ? `${Number(text) / 1000}s` : `${text}${unit}`;
}

const factors: Readonly<Record<string, number>> = { k: 1 / 1024, m: 1, g: 1024, t: 1024 ** 2 };

/** A size in MiB. A bare number counts in the unit; undefined if it is no size. */
export function mebibytes(value: string | number, unit: "m" | "g"): number | undefined {
  const [, amount, letter = unit] = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?)?$/i.exec(String(value).trim()) ?? [];
  return amount === undefined ? undefined : Math.ceil(Number(amount) * (factors[letter.toLowerCase()] ?? 1));
}

/** The words of a command, as a shell splits them; undefined if a quote is open. */
export function wordsOf(command: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  const parts = /\s+|'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+)|(['"\\])/gy;
  for (const [all, single, double, escaped, plain, open] of command.matchAll(parts)) {
    if (open !== undefined) return undefined;
    if (/^\s/.test(all)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + (single ?? double?.replaceAll(/\\(["\\$`])/g, "$1") ?? escaped ?? plain ?? "");
  }
  return word === undefined ? words : [...words, word];
}
