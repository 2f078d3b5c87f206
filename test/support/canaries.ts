// Strings used as secrets, and the search for them in other places.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A readable text, with its description. */
export interface Readable {
  readonly what: string;
  readonly text: string;
}

/** Encodings of a text: plain, base64, URL, JSON and JSON within JSON. */
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

/** The places of secrets in a readable text, by name; one line each, with the preceding text. */
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

/** The bytes of every file below a folder. */
export const filesBelow = (folder: string): Readable[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ what: path.slice(folder.length + 1), text: readFileSync(path, "latin1") }));
