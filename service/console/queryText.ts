// The text of a query as the audit and the history keep it: without the values in it, because they may be secrets.

const words = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const spaces = /\s+/y;
const numbers = /(?:0[xXoObB])?\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\.\d\w*/y;
const quotedNames = /[uU]&"(?:[^"]|"")*(?:"|$)|"(?:[^"]|"")*(?:"|$)/y;
/** With backslashes, a quote within the text may be written as `\'`. */
const escaped = /[eE]'(?:[^'\\]|\\[^]|'')*(?:'|\\?$)/y;
const plain = /(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*(?:'|$)/y;
const dollars = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;
const lineComments = /--[^\n\r]*/y;
const parameters = /\$\d+/y;

/** Letters of other languages are parts of names; signs such as curly quotes are not, and begin what someone meant as a value. */
const isName = (word: string): boolean => !/[^\p{L}\p{M}\p{N}_$]/u.test(word);

const mostParts = 1000;

/** Words after which a value may be written without quotes. */
const beforeValue = /^(?:password)$/i;

/**
 * A query with `$n` in the place of each value, on one line, without comments. From what is no SQL, and in statements that set
 * something, it keeps less rather than more.
 */
export function withoutValues(sql: string): string {
  const parts: string[] = [];
  let [at, values, first, isSetting, isValue] = [0, 0, "", false, false];
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const [found] = pattern.exec(sql) ?? [];
    if (found === undefined || found === "") return undefined;
    at += found.length;
    return found;
  };
  const value = (): void => {
    isValue = false;
    parts.push(`$${++values}`);
  };
  // The audit keeps only the beginning.
  while (at < sql.length && parts.length < mostParts) {
    if (take(spaces) !== undefined || take(lineComments) !== undefined || skipComment()) {
      parts.push(" ");
      continue;
    }
    if (take(escaped) !== undefined || take(plain) !== undefined) {
      value();
      continue;
    }
    const name = take(quotedNames);
    if (name !== undefined) {
      if (isValue) value();
      else parts.push(name.slice(0, 70));
      continue;
    }
    const word = take(words);
    if (word !== undefined) {
      first ||= word.toUpperCase();
      if (!isName(word)) return end();
      if (isValue) value();
      else parts.push(word);
      isValue = beforeValue.test(word);
      // The value of a setting may be a plain word.
      isSetting ||= first === "SET" || (first === "ALTER" && /^set$/i.test(word));
      if (isSetting && /^(?:to|time)$/i.test(word)) return end();
      continue;
    }
    if (take(parameters) !== undefined) {
      value();
      continue;
    }
    const dollar = take(dollars);
    if (dollar !== undefined) {
      const close = sql.indexOf(dollar, at);
      at = close < 0 ? sql.length : close + dollar.length;
      value();
      continue;
    }
    if (take(numbers) !== undefined) {
      value();
      continue;
    }
    const sign = sql[at++] ?? "";
    parts.push(sign);
    if (isSetting && sign === "=") return end();
  }
  return parts.join("").replaceAll(/\s+/g, " ").trim();

  /** Comments of several lines may contain others. */
  function skipComment(): boolean {
    if (!sql.startsWith("/*", at)) return false;
    let depth = 0;
    do {
      if (sql.startsWith("/*", at)) [depth, at] = [depth + 1, at + 2];
      else if (sql.startsWith("*/", at)) [depth, at] = [depth - 1, at + 2];
      else at++;
    } while (depth > 0 && at < sql.length);
    return true;
  }

  function end(): string {
    return `${parts.join("").replaceAll(/\s+/g, " ").trim()} …`;
  }
}
