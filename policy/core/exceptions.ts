// Exceptions by resource, with a reason and a last day: for every policy of a pack, ours and others.
import type {
  Policies,
  Policy,
  ReportViolation,
  ResourceValidationPolicy,
  StackValidationPolicy,
} from "@pulumi/policy";
import { isLike } from "./wildcard.ts";

/** An exempt resource. */
export interface Exception {
  /** Name of the resource in the program, or its URN; `*` matches any text. */
  readonly resource: string;
  /** The reason. Every preview and update that needs the exception shows it. */
  readonly reason: string;
  /** The last day on which it applies, `YYYY-MM-DD` (UTC). */
  readonly until: string;
}

const exceptionsSchema = {
  type: "array",
  description: "Resources the policy does not hold for, each with a reason and the last day.",
  items: {
    type: "object",
    properties: {
      resource: {
        type: "string",
        minLength: 1,
        description: "Name of the resource in the program, or its URN; `*` stands for any text.",
      },
      reason: { type: "string", minLength: 1, description: "Why." },
      until: {
        type: "string",
        pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$",
        description: "The last day it holds, `YYYY-MM-DD` (UTC).",
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

/**
 * Makes the policies of a pack accept exceptions, and adds a policy `exceptions` that reports each one a run needs.
 * @param policies any policies
 * @param now the time, for the last day of an exception
 */
export function withExceptions(policies: Policies, now: () => Date = () => new Date()): Policies {
  const used = new Map<string, Use>();
  const today = () => now().toISOString().slice(0, 10);

  /** The exception of a policy for a resource: the one that applies longest, or else the one that ended last. */
  function find(
    args: { readonly getConfig: () => object },
    urn: string,
  ): { readonly holds?: Exception | undefined; readonly ended?: Exception | undefined } {
    const { exceptions = [] } = args.getConfig() as { exceptions?: readonly Exception[] };
    const own = exceptions.filter(({ resource }) => isLike(nameOf(urn), [resource]) || isLike(urn, [resource]));
    const last = own.toSorted((a, b) => a.until.localeCompare(b.until)).at(-1);
    return last && last.until >= today() ? { holds: last } : { ended: last };
  }

  /** Reports a violation, unless there is an exception for the resource. */
  const reporting =
    (
      policy: Policy,
      args: { readonly getConfig: () => object },
      own: string,
      report: ReportViolation,
    ): ReportViolation =>
    (message, urn = own) => {
      const { holds, ended } = urn === "" ? {} : find(args, urn);
      if (holds) used.set(`${policy.name} ${urn}`, { policy: policy.name, urn, exception: holds });
      else {
        const more = ended ? `\nIts exception (${ended.reason}) has ended on ${ended.until}.` : "";
        report(message + more, urn === "" ? undefined : urn);
      }
    };

  const resourcePolicy = (policy: ResourceValidationPolicy): ResourceValidationPolicy => {
    const { validateResource = [], remediateResource } = policy;
    return {
      ...withSchema(policy),
      ...(policy.validateResource && {
        validateResource: [validateResource]
          .flat()
          .map((validate) => (args, report) => validate(args, reporting(policy, args, args.urn, report))),
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

  const report: StackValidationPolicy = {
    name: "exceptions",
    description: "Exceptions are shown for as long as they are needed.",
    severity: "low",
    remediationSteps: "Correct the resource, then remove the exception from the configuration of the policy.",
    validateStack: (_, report) => {
      for (const { policy, urn, exception } of used.values())
        report(`${policy} does not hold for it until ${exception.until}: ${exception.reason}`, urn);
    },
  };

  return [
    ...policies.map((policy) => ("validateStack" in policy ? stackPolicy(policy) : resourcePolicy(policy))),
    report,
  ];
}

/** Name of a resource, which may have `::` in it: the part after stack, project and type. */
const nameOf = (urn: string): string => urn.split("::").slice(3).join("::");

const withSchema = <P extends Policy>(policy: P): P => ({
  ...policy,
  configSchema: {
    ...policy.configSchema,
    properties: { ...policy.configSchema?.properties, exceptions: exceptionsSchema },
  },
});
