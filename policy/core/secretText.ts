// Detects secrets in environment variables, by name or by value. The value is never reported.
import { isLike } from "./wildcard.ts";

/** Last words of secrets' names, after splitting at `_`; `PGPASSWORD` and `TOKEN_2` match as well. */
const names =
  /(?:PASS(?:WD|WORD|PHRASE)|(?:^|_)(?:PASS|PWD|SECRETS?|TOKEN|(?:API|ACCESS|AUTH|SECRET|PRIVATE|ENCRYPTION|SIGNING|MASTER)_?KEY|SECRET_KEY_BASE|CREDENTIALS?|CONNECTION_?STRING|DSN))(?:_?V?\d+)?$/;

/** `PWD` is the working directory of a shell, in every container. */
const harmlessNames = /^(?:OLD)?PWD$/;

/** Last words of names whose values look random but are public: a commit, a release, a public key, an identifier. */
const publicNames =
  /(?:^|_)(?:COMMIT(?:_HASH)?|(?:GIT_)?SHA(?:1|256)?|REV(?:ISION)?|RELEASE|VERSION|BUILD|DIGEST|CHECKSUM|FINGERPRINT|PUBLIC_?KEY|ID)$/;

/**
 * Formats that only secrets have. A placeholder such as `${PASSWORD}` is not a secret. Parts of any length at the
 * beginning are bounded, because the time for a long text must not grow quadratically.
 */
const formats: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["a private key", /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----/],
  ["a password in an address", /\b[a-z][a-z0-9+.-]{0,40}:\/\/[^/\s:@]*:(?!\$[{(]|\d+[?#])[^/\s@]+@/i],
  [
    "an address with a secret in it",
    /:\/\/\S{0,2000}?[?&](?:pass(?:word)?|(?:access_?)?token|api_?key|secret|sig(?:nature)?)=(?!\$[{(])[^&\s]{6,}|:\/\/hooks\.slack\.com\/services\/\w|:\/\/discord(?:app)?\.com\/api\/webhooks\/\d/i,
  ],
  ["a password in a connection string", /(?:^|[;\s])(?:password|pwd)\s*=\s*(?!\$[{(])[^;\s]+/i],
  ["a signed token", /\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+/],
  ["an access key", /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["a token of a code host", /\b(?:gh[pousr]_\w{36,}|github_pat_\w{50,}|glpat-[\w-]{20,})/],
  [
    "a token of a service",
    /\b(?:sk|rk)_(?:live|test)_\w{16,}|\bxox[abprs]-[\w-]{10,}|\bpul-[0-9a-f]{40}\b|\bnpm_\w{36}\b/,
  ],
  [
    "a key of a service",
    /\bAIza[\w-]{35}\b|\bSG\.[\w-]{22}\.[\w-]{43}\b|\bsk-(?:ant-|proj-)?(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Z])[\w-]{32,}/,
  ],
];

/** Long texts that only look random: digests, identifiers, times, versions, hosts, paths, public keys. */
const harmless: readonly RegExp[] = [
  /^sha(?:1|256|384|512)[:-]/i,
  /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  // An identifier that sorts by time: ULID.
  /^[0-7][\dA-HJKMNP-TV-Z]{25}$/,
  /@sha256:[0-9a-f]{64}$/,
  /^[a-z][a-z0-9+.-]*:\/\//i,
  /^\.{0,2}\/[\w./-]*$/,
  /^[a-z\d_-]+(?:\.[a-z\d_-]+)+(?::\d+)?$/,
  /^[A-Za-z_-]+(?:\.[A-Za-z_-]+)+(?::\d+)?$/,
  /^pk_(?:live|test)_/,
  /\s/,
  /^[\d.,:;_-]+$/,
  /^[{[]/,
];

/** Values that are not secret under any name: switches, numbers, times. */
const plain = /^(?:|true|false|yes|no|on|off|none|null|\d{1,6}|\d+(?:ms|s|m|h|d))$/i;

/** A reference to another variable. */
const reference = /^\$(?:[A-Z_][A-Z\d_]*|\{\w+\}|\(\w+\))$/;

/** The path of a file with a secret is not a secret itself. */
const isPath = (value: string): boolean => /^\/[\w.-]+\/[\w./-]+$/.test(value) && isWords(value);

/** Whether a text consists of words, joined as in any kind of name, with a few digits at their ends. */
const isWords = (value: string): boolean =>
  value
    .split(/[^A-Za-z\d]+/)
    .every((part) => /^(?:[a-z]*(?:[A-Z][a-z]{2,})*\d{0,4}|[A-Z]+\d{0,4}|\d{1,4}[A-Za-z]{1,2})$/.test(part));

/**
 * Why a variable looks like a secret, for "it looks like a secret, by …"; undefined when it does not.
 * @param options `names`: more names; `entropy`: bits per character from which a long text counts as random
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
  if (plain.test(value) || reference.test(value)) return undefined;
  const format = formats.find(([, pattern]) => pattern.test(value));
  if (format) return `its value, which has the format of ${format[0]}`;
  if (
    isLike(
      name.toUpperCase(),
      more.map((pattern) => pattern.toUpperCase()),
    )
  )
    return "its name";
  if (names.test(upper) && !harmlessNames.test(upper) && !isPath(value)) return "its name";
  if (!publicNames.test(upper) && looksRandom(value, entropy)) return "its value, which looks random";
  return undefined;
}

/** Whether a text is long, consists of a key's characters, and looks random. */
function looksRandom(text: string, entropy: number): boolean {
  // The text without the line ends of a file, and without a prefix that states its kind.
  const value = text.trim().replace(/^(?:base64:|(?:Bearer|Basic) +)/i, "");
  if (value.length < 20 || harmless.some((pattern) => pattern.test(value))) return false;
  if (!/^[\w+/=.~-]+$/.test(value)) return false;
  // Hexadecimal digits hold 4 bits at most.
  if (/^[0-9a-f]+$/i.test(value)) return value.length >= 32 && entropyOf(value) >= Math.min(3, entropy);
  if (isWords(value)) return false;
  const kinds = [/[a-z]/, /[A-Z]/, /\d/].filter((kind) => kind.test(value)).length;
  // The highest entropy of a text of this length, with a margin for randomness. All three kinds of letters together are a
  // sign in themselves.
  const most = Math.log2(value.length) - (kinds === 3 ? 0.6 : 0.35);
  return kinds >= 2 && entropyOf(value) >= Math.min(entropy, most);
}

/** Shannon's entropy of a text, in bits per character. */
export function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}
