// Strings that are put where secrets belong, and the search for them where they do not.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Something that somebody could read: what it is, and all of it. */
export interface Readable {
  readonly what: string;
  readonly text: string;
}

/** Ways in which a text comes to be written: as it is, in base64, in a URL, in JSON and in JSON within JSON. */
function spellings(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  return [
    ...new Set([
      secret,
      Buffer.from(secret).toString("base64").replace(/=+$/, ""),
      encodeURIComponent(secret),
      json,
      JSON.stringify(json).slice(1, -1),
    ]),
  ];
}

/** Where secrets, given by name, stand in what somebody could read; a line each, with what stands before. */
export function leaks(secrets: Readonly<Record<string, string>>, readable: readonly Readable[]): string[] {
  const lines = new Set<string>();
  for (const [name, secret] of Object.entries(secrets)) {
    if (secret.length < 8) throw new Error(`${name} is too short to be searched for`);
    for (const spelled of spellings(secret))
      for (const { what, text } of readable) {
        const at = text.indexOf(spelled);
        if (at >= 0) lines.add(`${name} in ${what}, after ${JSON.stringify(text.slice(Math.max(0, at - 200), at))}`);
      }
  }
  return [...lines];
}

/** Every file below a folder, byte for byte. */
export const filesBelow = (folder: string): Readable[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ what: path.slice(folder.length + 1), text: readFileSync(path, "latin1") }));
