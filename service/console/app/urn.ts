// Who asked, as a program calls it.

/** The parts of a URN of Pulumi: `urn:pulumi:dev::shop::machines:index:Fleet::web`. */
export function resourceIn(
  urn: string,
): { readonly stack: string; readonly type: string; readonly name: string } | undefined {
  const [head, project, types, ...name] = urn.split("::");
  const stack = head?.replace(/^urn:pulumi:/, "");
  if (stack === undefined || project === undefined || types === undefined || name.length === 0) return undefined;
  return {
    stack: `${project}/${stack}`,
    type: types.split("$").at(-1)?.split(":").at(-1) ?? types,
    name: name.join("::"),
  };
}
