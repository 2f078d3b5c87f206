// Indents a program in Go. A service that shows programs has no Go, and starts no program for a request.

/** The text with a tab for each line that has open brackets. No text of the program may have several lines. */
export function indented(source: string): string {
  // The lines of the open brackets. Brackets that one line opens indent once, until a line begins with one that closes.
  let open: number[] = [];
  return source
    .split("\n")
    .map((line, number) => {
      const leading = /^[})\]]*/.exec(line)?.[0].length ?? 0;
      const ended = new Set(leading === 0 ? [] : open.splice(-leading));
      open = open.map((one) => (ended.has(one) ? number : one));
      const depth = new Set(open.filter((one) => one !== number)).size;
      for (const bracket of bracketsIn(line.slice(leading)))
        if (/[{([]/.test(bracket)) open.push(number);
        else open.pop();
      return line === "" ? "" : "\t".repeat(depth) + line;
    })
    .join("\n");
}

/** The brackets outside of texts and comments. */
const bracketsIn = (line: string): readonly string[] =>
  line.replaceAll(/"(?:[^"\\]|\\.)*"|\/\/.*$/g, "").match(/[{}()[\]]/g) ?? [];
