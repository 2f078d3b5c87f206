// Property paths as in `ignoreChanges`: `config.env["A.B"]`, `config.services[*].ports`.

/** The parts of a path; `*` is any item. Like the engine, it only unescapes quotes inside quotes. */
export function parsePath(text: string): (string | number)[] {
  const parts: (string | number)[] = [];
  for (const [, quoted, index, name] of text.matchAll(/\["((?:\\"|[^"])*)"\]|\[(\d+|\*)\]|([^.[\]]+)/g)) {
    if (quoted !== undefined) parts.push(quoted.replaceAll('\\"', '"'));
    else if (index !== undefined) parts.push(index === "*" ? index : Number(index));
    else if (name !== undefined) parts.push(name);
  }
  return parts;
}
