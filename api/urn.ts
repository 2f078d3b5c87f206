// What a URN of Pulumi says: `urn:pulumi:dev::shop::machines:index:Fleet::web`.

/** A stack of a project. */
export interface Stack {
  readonly project: string;
  readonly stack: string;
}

const wholeUrn = /^urn:pulumi:(.*?)::(.*?)::(.*?)::(.*)$/s;

/** The stack in a URN; undefined if the URN is not whole, as the dynamic binding may send it. */
export function stackInUrn(urn: string | null): Stack | undefined {
  const [, stack, project] = /^urn:pulumi:(.*?)::(.*?)::/s.exec(urn ?? "") ?? [];
  return stack === undefined || project === undefined ? undefined : { project, stack };
}

/** The resource that a request comes from: its type, its name, and `project/stack` if that is known. */
export interface Resource {
  readonly stack: string | undefined;
  readonly type: string;
  readonly name: string;
}

/**
 * The resource of a URN. The dynamic binding knows only `machines:index:Machine::web`, and of a long URN only its end was kept.
 */
export function resourceIn(urn: string): Resource | undefined {
  const [, stack, project, ...rest] = wholeUrn.exec(urn) ?? [];
  const [type, name] = stack === undefined ? urn.split(/::(.*)/s) : rest;
  if (type === undefined || name === undefined) return undefined;
  return {
    stack: stack === undefined || project === undefined ? undefined : `${project}/${stack}`,
    type: type.split("$").at(-1)?.split(":").at(-1) ?? type,
    name,
  };
}
