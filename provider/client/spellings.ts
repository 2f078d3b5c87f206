// The forms in which a service may quote a secret text.

// Shorter encoded texts are ambiguous.
const shortestEncoded = 8;

/**
 * The forms of a text that a service may quote: unchanged, in a URL, in hexadecimal, and in base64, alone or inside a
 * longer text.
 */
export function spellings(text: string): string[] {
  if (text === "") return [];
  const bytes = Buffer.from(text);
  const encoded = [...inUrl(text), bytes.toString("hex"), bytes.toString("hex").toUpperCase()];
  // Three bytes make four characters, so the position of the first byte decides them. Characters with bits of other
  // bytes are left out.
  for (const before of [0, 1, 2]) {
    const whole = Math.floor(((before + bytes.length) * 8) / 6);
    const middle = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .slice([0, 2, 3][before], whole);
    encoded.push(middle, middle.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return [...new Set([text, ...encoded.filter(({ length }) => length >= shortestEncoded)])];
}

/** A text in a URL. Encoders differ: some escape more characters, write a space as `+`, or use small letters. */
function inUrl(text: string): string[] {
  // Half of a surrogate pair has no encoding.
  if (/\p{Cs}/u.test(text)) return [];
  const forms = [encodeURIComponent(text), encodeURI(text), new URLSearchParams([["", text]]).toString().slice(1)];
  return forms.flatMap((form) => [form, form.replaceAll(/%[\dA-F]{2}/g, (escaped) => escaped.toLowerCase())]);
}
