// Exceptions by resource, with a reason and a last day: for every policy of a pack, ours and others.
import type {
  Policies,
  Policy,
  ReportViolation,
  ResourceValidationArgs,
  ResourceValidationPolicy,
  StackValidationPolicy,
} from "@pulumi/policy";
import { resourceName } from "./validate.ts";
import { isLike } from "./wildcard.ts";

/** An exempt resource. */
export interface Exception {
  /** Name of the resource in the program, or its URN; `*` matches any text. */
  readonly resource: string;
  /**
   * Type of the resource, such as `Volume`. A program may give resources of several types one name: without a type, the
   * exception applies to all of them, and its report names the others.
   */
  readonly type?: string;
  /** The reason. Every preview and update that needs the exception shows it. */
  readonly reason: string;
  /** The last day on which it applies, `YYYY-MM-DD` (UTC). */
  readonly until: string;
}

const exceptionsSchema = {
  type: "array",
  description: "Resources to which the policy does not apply, each with a reason and the last day.",
  items: {
    type: "object",
    properties: {
      resource: {
        type: "string",
        minLength: 1,
        description: "Name of the resource in the program, or its URN; `*` stands for any text.",
      },
      type: {
        type: "string",
        minLength: 1,
        description: "Type of the resource, such as `Volume`; every type when left out.",
      },
      reason: { type: "string", minLength: 1, description: "Why." },
      until: {
        type: "string",
        pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$",
        description: "Last day of the exception, `YYYY-MM-DD` (UTC).",
      },
    },
    required: ["resource", "reason", "until"],
    additionalProperties: false,
  },
} as const;

/** The violations that an exception permitted in a run. */
interface Use {
  readonly policy: string;
  readonly urn: string;
  readonly exception: Exception;
}

/** What a check of the pack can ask about the exceptions of its policy. */
export interface ExemptArgs {
  /**
   * Whether there is an exception for the resource, which is then reported as needed. For policies that look at several
   * resources together: the message about one of them may be caused by another one.
   */
  readonly isExempt: () => boolean;
}

/**
 * Makes the policies of a pack accept exceptions, and adds a policy `exceptions` that reports each one a run needs.
 * @param policies any policies
 * @param now the time, for the last day of an exception
 */
export function withExceptions(policies: Policies, now: () => Date = () => new Date()): Policies {
  const used = new Map<string, Use>();
  const today = () => now().toISOString().slice(0, 10);

  /**
   * The exception of a policy for a resource: the one that applies longest, or else the one that ended last. `others` have
   * its name and are for other types.
   */
  function find(
    args: { readonly getConfig: () => object },
    urn: string,
  ): { readonly holds?: Exception; readonly ended?: Exception; readonly others: readonly Exception[] } {
    const { exceptions = [] } = args.getConfig() as { exceptions?: readonly Exception[] };
    const named = exceptions.filter(({ resource }) => isLike(nameOf(urn), [resource]) || isLike(urn, [resource]));
    const own = named.filter(({ type }) => type === undefined || [typeOf(urn), tokenOf(urn)].includes(type));
    const others = named.filter((one) => !own.includes(one));
    const last = own.toSorted((a, b) => a.until.localeCompare(b.until)).at(-1);
    if (last === undefined) return { others };
    return last.until >= today() ? { holds: last, others } : { ended: last, others };
  }

  const note = (policy: Policy, urn: string, exception: Exception): void =>
    void used.set(`${policy.name} ${urn}`, { policy: policy.name, urn, exception });

  /** Reports a violation, unless there is an exception for the resource. */
  const reporting =
    (
      policy: Policy,
      args: { readonly getConfig: () => object },
      own: string,
      report: ReportViolation,
    ): ReportViolation =>
    (message, urn = own) => {
      if (urn === "") return report(message);
      const { holds, ended, others } = find(args, urn);
      if (holds) return note(policy, urn, holds);
      const types = [...new Set(others.map(({ type = "" }) => type))];
      const more = ended
        ? `\nIts exception (${ended.reason}) has ended on ${ended.until}.`
        : types.length > 0
          ? `\nAn exception has its name, but is for the type ${types.join(", ")}; this is a ${typeOf(urn)}.`
          : "";
      report(message + more, urn);
    };

  const exempting = (policy: Policy, args: ResourceValidationArgs): ExemptArgs => ({
    isExempt: () => {
      const { holds } = find(args, args.urn);
      if (holds) note(policy, args.urn, holds);
      return holds !== undefined;
    },
  });

  const resourcePolicy = (policy: ResourceValidationPolicy): ResourceValidationPolicy => {
    const { validateResource = [], remediateResource } = policy;
    return {
      ...withSchema(policy),
      ...(policy.validateResource && {
        validateResource: [validateResource]
          .flat()
          .map(
            (validate) => (args, report) =>
              validate({ ...args, ...exempting(policy, args) }, reporting(policy, args, args.urn, report)),
          ),
      }),
      ...(remediateResource && {
        remediateResource: (args) =>
          find(args, args.urn).holds ? args.notApplicable("there is an exception") : remediateResource(args),
      }),
    };
  };

  const stackPolicy = (policy: StackValidationPolicy): StackValidationPolicy => ({
    ...withSchema(policy),
    validateStack: (args, report) => policy.validateStack(args, reporting(policy, args, "", report)),
  });

  /**
   * The other resources to which an exception by name also applied, which may be a mistake. A pattern is for several
   * resources, and an exception with a type or a URN says what it is for.
   */
  function alsoFor(policy: string, urn: string, exception: Exception): string {
    if (exception.type !== undefined || exception.resource !== nameOf(urn)) return "";
    const types = [...used.values()]
      .filter((use) => use.policy === policy && use.exception.resource === exception.resource)
      .map((use) => typeOf(use.urn));
    const others = [...new Set(types)].filter((type) => type !== typeOf(urn)).sort();
    if (others.length === 0) return "";
    return `\nThe exception has no type, so it also applies to the ${others.join(" and the ")} of this name. If it is for one of them, give it "type": ${JSON.stringify(typeOf(urn))} or ${others.map((type) => JSON.stringify(type)).join(" or ")}.`;
  }

  const report: StackValidationPolicy = {
    name: "exceptions",
    description: "Exceptions are shown for as long as they are needed.",
    severity: "low",
    remediationSteps: "Correct the resource, then remove the exception from the configuration of the policy.",
    validateStack: (_, report) => {
      for (const { policy, urn, exception } of used.values())
        report(
          `${policy} does not apply to it until ${exception.until}: ${exception.reason}${alsoFor(policy, urn, exception)}`,
          urn,
        );
    },
  };

  return [
    ...policies.map((policy) => ("validateStack" in policy ? stackPolicy(policy) : resourcePolicy(policy))),
    report,
  ];
}

/** Name of a resource, which may have `::` in it: the part after stack, project and type. */
const nameOf = (urn: string): string => urn.split("::").slice(3).join("::");

/** Token of the type of a resource; those of its parents come before it. */
const tokenOf = (urn: string): string => urn.split("::")[2]?.split("$").at(-1) ?? "";

/** Type of a resource, as an exception names it: `Volume`, or the token for a resource of another provider. */
const typeOf = (urn: string): string => resourceName(tokenOf(urn)) ?? tokenOf(urn);

const withSchema = <P extends Policy>(policy: P): P => ({
  ...policy,
  configSchema: {
    ...policy.configSchema,
    properties: { ...policy.configSchema?.properties, exceptions: exceptionsSchema },
  },
});
