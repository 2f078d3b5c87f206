// Who asked, as a program calls it.

/** The resource that asked: its type, its name, and `project/stack` if that is known. */
export interface Resource {
  readonly stack: string | undefined;
  readonly type: string;
  readonly name: string;
}

/**
 * The resource of a URN of Pulumi, as `urn:pulumi:dev::shop::machines:index:Fleet::web`. The dynamic binding knows only
 * `machines:index:Machine::web`, and of a long URN only its end was kept.
 */
export function resourceIn(urn: string): Resource | undefined {
  const whole = /^urn:pulumi:(.*?)::(.*?)::(.*?)::(.*)$/s.exec(urn);
  const [type, name] = whole ? [whole[3], whole[4]] : urn.split(/::(.*)/s);
  if (type === undefined || name === undefined) return undefined;
  return {
    stack: whole ? `${whole[2]}/${whole[1]}` : undefined,
    type: type.split("$").at(-1)?.split(":").at(-1) ?? type,
    name,
  };
}
