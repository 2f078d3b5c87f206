// The names of enum values in the SDKs.

/**
 * A value in PascalCase: `on-failure` is `OnFailure`, `TLSv1.2` is `Tlsv1_2`, `17` is `V17`. Without such names, generators
 * derive their own, sometimes unchanged (`On_failure`). Values in capitals, such as signals, are kept.
 */
export function enumName(value: string): string {
  if (/^[A-Z][A-Z0-9]*$/.test(value)) return value;
  if (/^\d/.test(value)) return enumName(`v${value}`);
  return value
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .reduce((name, word) => name + (/\d$/.test(name) && /^\d/.test(word) ? "_" : "") + word, "");
}
