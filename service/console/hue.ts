// The colour of a Machine where lines of several are shown. Names are always shown too.

/** The number of a Machine's colour among that many: the same for the same id, on the page and in the terminal. */
export function hueOf(id: string, of: number): number {
  let hash = 0x811c9dc5;
  for (const character of id) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return hash % of;
}
