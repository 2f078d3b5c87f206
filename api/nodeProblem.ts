/** The message for a Node.js that is too old for a package or a command; undefined for one that is not. */
export function nodeProblem(name: string): string | undefined {
  const { node } = process.versions;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  return major < 22 || (major === 22 && minor < 19) ? `${name} needs Node 22.19 or later; this is ${node}.` : undefined;
}
