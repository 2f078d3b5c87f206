// Pulumi's constructors omit some given arguments: unknown names, which only the TypeScript compiler refuses, and empty
// secrets. This code passes them on, so that the provider refuses unknown names with a suggestion.

const required = /(?: {12}if \(args\?\.\w+ === undefined && !opts\.urn\) \{\n.*\n {12}\}\n)+/;
const resourceInput = / {12}resourceInputs\["\w+"\] = .*\n(?= {8}\})/;
const functionInputs = /(pulumi\.runtime\.invoke(?:Output)?\("[\w:]+", )(\{\n(?: {8}.*\n)+ {4}\})(, opts\);)/g;

/** The helper that classes and functions call; part of utilities.ts. */
export const handOnHelper = `
/**
 * Hands on the arguments that are not among the inputs, for the provider to judge; says whether there were any.
 * @internal
 */
export function handOn(inputs: pulumi.Inputs, args: object | undefined): boolean {
    const left = Object.entries(args ?? {}).filter(([name, value]) =>
        inputs[name] === undefined && value !== undefined && !name.startsWith("__"));
    Object.assign(inputs, Object.fromEntries(left));
    return left.length > 0;
}

/** @internal */
export function withAll(inputs: pulumi.Inputs, args: object | undefined): pulumi.Inputs {
    handOn(inputs, args);
    return inputs;
}
`;

/** A resource or provider class that passes on all its arguments. A missing one may be present under a misspelt name. */
export function handingOn(text: string): string {
  const [missing = ""] = required.exec(text) ?? [];
  const call = "utilities.handOn(resourceInputs, args)";
  const lines =
    missing === ""
      ? `            ${call};\n`
      : `            if (!${call}) {\n${missing.replaceAll(/^/gm, "    ").trimEnd()}\n            }\n`;
  const changed = text.replace(missing, "").replace(resourceInput, (last) => last + lines);
  if (!changed.includes(call))
    throw new Error("Pulumi's generator no longer writes the inputs of a resource as it did");
  return changed;
}

/** A function that passes on all its arguments, if it has any. */
export function functionHandingOn(text: string): string {
  const changed = text.replaceAll(functionInputs, "$1utilities.withAll($2, args)$3");
  if (changed === text && text.includes(": args."))
    throw new Error("Pulumi's generator no longer writes functions as it did");
  return changed;
}
