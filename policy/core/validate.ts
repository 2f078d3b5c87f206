// Typed checks of one type of resource, the same for both bindings.
import type {
  PolicyResource,
  ReportViolation,
  ResourceRemediation,
  ResourceValidation,
  ResourceValidationArgs,
  StackValidation,
  StackValidationArgs,
} from "@pulumi/policy";
import type { FleetInputs, ResourceName, ResourceTypes } from "../resources.ts";
import { machineOf, regionsIn } from "./fleet.ts";
import { Unknowns, type Each } from "./unknown.ts";
import { view } from "./view.ts";

/**
 * Arguments of a check besides the resource: those that Pulumi gives every policy, and two ways to continue past
 * unknown values.
 */
export interface CheckArgs extends ResourceValidationArgs {
  /**
   * Runs a part of the check for each item of a list, or each value of a map; not at all without one. Unknown values of
   * an item are reported at the end, and the other items are checked nevertheless.
   */
  readonly each: Each;
  /** Runs a part of the check. If it reads an unknown value, that is reported at the end and the check continues. */
  readonly whenKnown: (check: () => void) => void;
}

/**
 * Checks a resource before it is created or changed.
 * @param resource its inputs, as the program declares them with the defaults filled in, secret values in plain text:
 *   never put a possibly secret value into a message. Reading an unknown value in a preview ends the check with a
 *   notice; the update repeats the check with every value known, before it changes anything
 * @param args name, type, URN and options of the resource, and the policy's configuration
 * @param report reports a violation, at the enforcement level of the policy's configuration
 */
export type Check<Name extends ResourceName> = (
  resource: ResourceTypes[Name]["inputs"],
  args: CheckArgs,
  report: (message: string) => void,
) => Promise<void> | void;

/**
 * Remediates a resource before it is checked, by changing its inputs in place. An unknown value ends the remediation, as it
 * ends a {@link Check}; parts that `each` and `whenKnown` skip are remediated at the update.
 * @returns whether anything was changed
 */
export type Repair<Name extends ResourceName> = (resource: ResourceTypes[Name]["inputs"], args: CheckArgs) => boolean;

/** The name of our type, `Machine`, for either binding; undefined for others. */
export const resourceName = (type: string): string | undefined =>
  /^(?:pulumi-nodejs:dynamic\/machines|machines:index):(\w+)$/.exec(type)?.[1];

const atUpdate = (name: string): string => `then, before the ${name} is created or changed`;

/** Whether a check of a type applies to a resource. Checks of Machines apply to the template of a fleet too. */
const applies = (name: string, type: string): boolean =>
  resourceName(type) === name || (name === "Machine" && resourceName(type) === "Fleet");

/** The inputs that a check of a type gets. */
const inputsOf = <Name extends ResourceName>(
  name: Name,
  type: string,
  props: unknown,
): ResourceTypes[Name]["inputs"] => {
  const inputs = view(props) as ResourceTypes[Name]["inputs"];
  if (resourceName(type) === name) return inputs;
  return machineOf(inputs as FleetInputs);
};

/** Builds a policy's `validateResource` for one type of resource. */
export const validating =
  <Name extends ResourceName>(name: Name) =>
  (check: Check<Name>): ResourceValidation =>
  async (args, report) => {
    if (!applies(name, args.type)) return args.notApplicable(`it is about each ${name}`);
    const unknowns = new Unknowns(atUpdate(name));
    const { each, whenKnown } = unknowns;
    await unknowns.run(() =>
      check(inputsOf(name, args.type, args.props), { ...args, each, whenKnown }, (message) => report(message)),
    );
  };

/** Builds a policy's `remediateResource` for one type of resource. */
export const remediating =
  <Name extends ResourceName>(name: Name) =>
  (repair: Repair<Name>): ResourceRemediation =>
  async (args) => {
    if (!applies(name, args.type)) return args.notApplicable(`it is about each ${name}`);
    const unknowns = new Unknowns(atUpdate(name));
    const { each, whenKnown } = unknowns;
    let isChanged = false;
    whenKnown(() => {
      isChanged = repair(inputsOf(name, args.type, args.props), { ...args, each, whenKnown });
    });
    // The check that follows reports the unknown values.
    if (isChanged) return args.props;
    await unknowns.run(() => undefined);
    return undefined;
  };

/** A resource of a stack, with the resources that refer to it. */
export interface StackResource<Name extends ResourceName> extends PolicyResource {
  readonly props: ResourceTypes[Name]["outputs"];
}

/** Arguments of a check of a whole stack. */
export interface StackCheckArgs extends StackValidationArgs {
  /** The resources of one type. Machines include those of fleets, each with the name and URN of its fleet. */
  readonly all: <Name extends ResourceName>(name: Name) => StackResource<Name>[];
  /** As in {@link CheckArgs}. */
  readonly each: Each;
  /** As in {@link CheckArgs}. */
  readonly whenKnown: (check: () => void) => void;
}

/**
 * Builds a policy's `validateStack`. It runs at the end of the preview, and of the update.
 * @param check gets the whole stack; `report` takes the URN of the resource that it concerns
 */
export const validateStack =
  (check: (args: StackCheckArgs, report: ReportViolation) => Promise<void> | void): StackValidation =>
  async (args, report) => {
    const unknowns = new Unknowns("at its end");
    const { each, whenKnown } = unknowns;
    const seen = <Name extends ResourceName>(name: Name) =>
      args.resources
        .filter(({ type }) => resourceName(type) === name)
        .map((resource) => ({ ...resource, props: view(resource.props, resource.name) })) as StackResource<Name>[];
    const ofFleets = () =>
      seen("Fleet").flatMap((fleet) =>
        regionsIn(fleet.props).flatMap(([region, count]) =>
          Array.from({ length: count }, () => ({ ...fleet, props: machineOf(fleet.props, region) })),
        ),
      );
    const all = <Name extends ResourceName>(name: Name) =>
      (name === "Machine" ? [...seen(name), ...ofFleets()] : seen(name)) as StackResource<Name>[];
    await unknowns.run(() => check({ ...args, all, each, whenKnown }, report));
  };
