// Texts of others as literals of a program: the language's own parser reads the same text back (F57).
import { unprintable } from "../../../api/printable.ts";

/** How a language writes what it escapes. */
interface Escapes {
  /** The characters that have a short form, such as `\\n`. */
  readonly short: string;
  /** A character beyond U+FFFF, by its number in hexadecimal. */
  readonly long: (hex: string) => string;
  /** Whether the language has an escape for half of a surrogate pair. */
  readonly hasSurrogates: boolean;
}

/** Writes a text between quotes. */
type Quoting = (text: string, quote?: string) => string;

const letters: Readonly<Record<string, string>> = { "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t" };

/** @throws Error for half of a surrogate pair, if the language has none: limits.ts leaves such texts out before */
const quoting = ({ short, long, hasSurrogates }: Escapes): Quoting => {
  const escaped = (character: string): string => {
    const letter = letters[character];
    if (letter !== undefined && short.includes(letter)) return `\\${letter}`;
    if (!hasSurrogates && /\p{Cs}/u.test(character))
      throw new Error("half of a surrogate pair cannot be written in this language");
    const hex = (character.codePointAt(0) ?? 0).toString(16);
    return hex.length > 4 ? long(hex) : `\\u${hex.padStart(4, "0")}`;
  };
  return (text, quote = '"') =>
    quote +
    text
      .replaceAll(quote === "'" ? /[\\']/g : quote === "`" ? /[\\`]|\$\{/g : /[\\"]/g, "\\$&")
      .replace(unprintable, escaped) +
    quote;
};

const eightDigits = (hex: string): string => `\\U${hex.padStart(8, "0")}`;
const everyLetter = "bfnrt";

/** In TypeScript; between backquotes, it is the text of a template. */
export const inTypeScript = quoting({ short: everyLetter, long: (hex) => `\\u{${hex}}`, hasSurrogates: true });
/** In Python. */
export const inPython = quoting({ short: everyLetter, long: eightDigits, hasSurrogates: true });
/** In Go. */
export const inGo = quoting({ short: everyLetter, long: eightDigits, hasSurrogates: false });
/** In YAML. */
export const inYaml = quoting({ short: everyLetter, long: eightDigits, hasSurrogates: false });
/** In PCL, which has the escapes of HCL. */
export const inPcl = quoting({ short: "nrt", long: eightDigits, hasSurrogates: false });
