// `pulumi-machines cost`: what a stack costs a month by estimate, and what its next update would change of that.
import { bareId } from "../../api/names.ts";
import { isObject } from "../../api/schema.ts";
import { validated } from "../../api/validated.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { givenPrices, pricesOf } from "../../provider/cost/prices.ts";
import { costReport } from "../../provider/cost/report.ts";
import type { Prices } from "../../api/prices.ts";
import { exportStack } from "../pulumi.ts";
import { previewed, readPlan, selectedStack, type Plans } from "../savedPlan.ts";
import { readState, type StackState } from "../stackState.ts";
import type { Streams } from "../terminal.ts";
import { textIn } from "../textIn.ts";
import { pricedIn } from "./plan.ts";
import { jsonOf, markdownOf, textOf } from "./text.ts";

/** Options of the command. */
export interface CostOptions {
  readonly stack?: string;
  /** A saved plan; the command previews when left out. */
  readonly plan?: string;
  readonly policyPackConfig?: readonly string[];
  readonly markdown?: true;
  readonly json?: true;
}

/** Prints what the next update of a stack costs. */
export async function cost(options: CostOptions, { out }: Streams): Promise<void> {
  if (options.json && options.markdown)
    throw new MachinesError("invalid-input", "--json and --markdown exclude each other");
  const name = options.stack ?? (await selectedStack());
  const prices = pricesIn((options.policyPackConfig ?? []).map((path) => path.replaceAll("{stack}", bareId(name))));
  const plans = options.plan === undefined ? await previewed(name) : readPlan(textIn(options.plan), options.plan);
  const exported = await exportStack(name);
  if (options.plan !== undefined) requirePlanOf(name, readState(exported, `the state of ${name}`), plans, options.plan);
  const report = costReport(pricedIn(plans, exported, `the state of ${name}`), prices);
  const show = options.json ? jsonOf : options.markdown ? markdownOf : textOf;
  out(show(name, report));
}

/**
 * The URNs of a plan name its stack, which has to be the one whose state it is compared with: the sum would be of both.
 * @throws MachinesError `invalid-input`
 */
export function requirePlanOf(
  name: string,
  { stack = bareId(name), project }: Pick<StackState, "stack" | "project">,
  plans: Plans,
  source: string,
): void {
  for (const urn of Object.keys(plans)) {
    const [, ofStack, ofProject] = /^urn:pulumi:([^:]*)::([^:]*)::/.exec(urn) ?? [];
    if (ofStack === undefined || (ofStack === stack && (project ?? ofProject) === ofProject)) continue;
    throw new MachinesError(
      "invalid-input",
      `${source} is a plan of stack ${ofStack} of ${ofProject}, not of ${stack}${project === undefined ? "" : ` of ${project}`}; name its stack with --stack, or save a plan of this one with \`pulumi preview --save-plan\``,
    );
  }
}

/** The prices of the policy `budget` in its files; a later file replaces those of an earlier one. */
function pricesIn(files: readonly string[]): Prices {
  const given = files.map((path) => {
    let content: unknown;
    try {
      content = JSON.parse(textIn(path));
    } catch (error) {
      if (error instanceof MachinesError) throw error;
      throw new MachinesError("invalid-input", `${path}: is no JSON: ${messageOf(error)}`, { cause: error });
    }
    const budget = isObject(content) ? content["budget"] : undefined;
    const prices = validated(givenPrices, (isObject(budget) ? budget["prices"] : undefined) ?? {});
    if (prices.success) return prices.data;
    const [issue] = prices.error.issues;
    throw new MachinesError(
      "invalid-input",
      `${path}: ${["budget", "prices", ...(issue?.path ?? [])].join(".")}: ${issue?.message ?? ""}`,
    );
  });
  return pricesOf(given.reduce((all, one) => ({ ...all, ...one }), {}));
}
