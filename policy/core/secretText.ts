// Whether a variable of an environment holds a secret, by its name or by its value. The value is never told.
import { isLike } from "./wildcard.ts";

/** What names of secrets end in, after the words are parted by `_`. */
const names =
  /(?:^|_)(?:PASS(?:WD|WORD|PHRASE)?|PWD|SECRETS?|TOKEN|API_?KEY|ACCESS_?KEY|AUTH_?KEY|SECRET_?KEY|PRIVATE_?KEY|ENCRYPTION_?KEY|SIGNING_?KEY|SIGNING_?SECRET|CREDENTIALS?|CONNECTION_?STRING|DSN)$/;

/** `PWD` is where a shell is, in every container. */
const harmlessNames = /^(?:OLD)?PWD$/;

/** Formats that nothing but a secret has. */
const formats: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["a private key", /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  ["a password in an address", /^[a-z][a-z0-9+.-]*:\/\/[^/\s:@]*:[^/\s@]+@/i],
  ["a signed token", /^eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+$/],
  ["an access key", /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["a token of a code host", /\b(?:gh[pousr]_\w{36,}|github_pat_\w{50,}|glpat-[\w-]{20,})/],
  [
    "a token of a service",
    /\b(?:sk|rk|pk)_(?:live|test)_\w{16,}|\bxox[abprs]-[\w-]{10,}|\bpul-[0-9a-f]{40}\b|\bnpm_\w{36}\b/,
  ],
  ["a key of a service", /\bAIza[\w-]{35}\b|\bSG\.[\w-]{22}\.[\w-]{43}\b|\bsk-(?:ant-|proj-)?[\w-]{32,}/],
];

/** Long texts that look random and are none: digests, identifiers, times, versions, hosts, paths, lists of words. */
const harmless: readonly RegExp[] = [
  /^sha(?:1|256|384|512)[:-]/i,
  /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  /@sha256:[0-9a-f]{64}$/,
  /^[a-z][a-z0-9+.-]*:\/\//i,
  /^\.{0,2}\/[\w./-]*$/,
  /^[\w-]+(?:\.[\w-]+)+(?::\d+)?$/,
  /\s/,
  /^[\d.,:;_-]+$/,
  /^[{[]/,
];

/** Values that are no secret, whatever they are called. */
const plain = /^(?:|true|false|yes|no|on|off|none|null|\d{1,6}|\d+(?:ms|s|m|h|d))$/i;

/**
 * Why a variable looks as if it held a secret, for "it looks like a secret, by …"; undefined when it does not.
 * @param options `names`: more names; `entropy`: bits a character from which on a long text counts as random
 */
export function secretIn(
  name: string,
  value: string,
  { names: more, entropy }: { readonly names: readonly string[]; readonly entropy: number },
): string | undefined {
  const upper = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_");
  if (plain.test(value)) return undefined;
  const format = formats.find(([, pattern]) => pattern.test(value));
  if (format) return `its value, which has the format of ${format[0]}`;
  if (
    isLike(
      name.toUpperCase(),
      more.map((pattern) => pattern.toUpperCase()),
    )
  )
    return "its name";
  if (names.test(upper) && !harmlessNames.test(upper)) return "its name";
  if (looksRandom(value, entropy)) return "its value, which looks random";
  return undefined;
}

/** Whether a text is long, of the letters that keys are written in, and as good as random. */
function looksRandom(value: string, entropy: number): boolean {
  if (value.length < 20 || harmless.some((pattern) => pattern.test(value))) return false;
  if (!/^[\w+/=.~-]+$/.test(value)) return false;
  // Hexadecimal digits hold 4 bits at most.
  if (/^[0-9a-f]+$/i.test(value)) return value.length >= 32 && entropyOf(value) >= Math.min(3, entropy);
  // Words hold letters of one case alone, or digits at their end.
  const kinds = [/[a-z]/, /[A-Z]/, /\d/].filter((kind) => kind.test(value)).length;
  return kinds >= 2 && entropyOf(value) >= Math.min(entropy, Math.log2(value.length) - 0.35);
}

/** Shannon's entropy of a text, in bits a character. */
export function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}
