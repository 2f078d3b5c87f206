/** Whether a text matches one of several patterns, in which `*` matches any text. */
export const isLike = (text: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) =>
    new RegExp(
      `^${pattern
        .split("*")
        .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"))
        .join(".*")}$`,
      "s",
    ).test(text),
  );
