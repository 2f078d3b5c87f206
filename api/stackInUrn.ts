// The stack in a URN of Pulumi.

/** A stack of a project. */
export interface Stack {
  readonly project: string;
  readonly stack: string;
}

/** The stack in a URN; undefined if the URN is not whole, as the dynamic binding may send it. */
export function stackInUrn(urn: string | null): Stack | undefined {
  const [, stack, project] = /^urn:pulumi:(.*?)::(.*?)::/s.exec(urn ?? "") ?? [];
  return stack === undefined || project === undefined ? undefined : { project, stack };
}
