// The declaration of a function: one object, from which both bindings, the schema, the SDKs and the docs are derived.
import { z } from "zod";
import { formatDuration, required, type Field } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { problemsOf } from "./check.ts";
import { MachinesError } from "../client/errors.ts";
import { fieldsOf, type Values } from "./resource.ts";
import { pathText, UNKNOWN, withBareIds, withoutUndefined } from "./values.ts";

/** Arguments of a function. */
export interface FunctionCall {
  /** The service, bound to the deadline of this call. */
  readonly api: Api;
  /** Reports progress while waiting. */
  readonly progress: (message: string) => void;
}

/** The declaration of a function. */
export interface FunctionDefinition<I extends z.ZodObject, O extends z.ZodType> {
  /** Name in camelCase. */
  readonly name: string;
  /** One sentence for the docs. */
  readonly summary: string;
  /** The longer description in the docs, if any. */
  readonly description?: string;
  readonly inputs: I;
  /** Schema of an object. */
  readonly outputs: O;
  /**
   * For functions that wait or act: reads the current state for previews. It is called only if the engine accepts no
   * unknown results; otherwise the preview's result is unknown.
   */
  look?(args: FunctionCall & { inputs: z.output<I> }): Promise<z.output<O>>;
  /** Maximum seconds of a call; 120 by default. */
  readonly seconds?: (inputs: z.output<I>) => number;
  call(args: FunctionCall & { inputs: z.output<I> }): Promise<z.output<O>>;
}

/** A declared function as the bindings see it. */
export interface MachinesFunction {
  readonly name: string;
  readonly summary: string;
  readonly description: string | undefined;
  readonly inputFields: Readonly<Record<string, Field>>;
  readonly outputFields: Readonly<Record<string, Field>>;
  readonly look: ((args: FunctionCall & { inputs: Values }) => Promise<Values>) | undefined;
  readonly seconds: (inputs: Values) => number;
  call(args: FunctionCall & { inputs: Values }): Promise<Values>;
}

/** Declares a function. */
export function defineFunction<I extends z.ZodObject, O extends z.ZodType>(
  definition: FunctionDefinition<I, O>,
): MachinesFunction {
  return {
    description: undefined,
    look: undefined,
    seconds: () => 120,
    ...definition,
    inputFields: fieldsOf(definition.inputs),
    outputFields: fieldsOf(definition.outputs),
  } as unknown as MachinesFunction;
}

/** The declaration of a function that lists. */
interface ListDefinition<I extends z.core.$ZodShape, T extends z.ZodType> extends Pick<
  FunctionDefinition<z.ZodObject<I>, z.ZodType>,
  "name" | "summary" | "description"
> {
  readonly inputs: I;
  /** The member of the answer that is the list, its text in the docs, and the type of an element. */
  readonly items: readonly [member: string, description: string, type: T];
  readonly list: (inputs: z.output<z.ZodObject<I>>, api: Api) => Promise<readonly z.output<T>[]>;
}

/** Declares a function whose whole answer is one list. */
export function listFunction<I extends z.core.$ZodShape, T extends z.ZodType>({
  inputs,
  items: [member, description, type],
  list,
  ...rest
}: ListDefinition<I, T>): MachinesFunction {
  return defineFunction({
    ...rest,
    inputs: z.object(inputs),
    outputs: z.object({ [member]: required(z.array(type), description) }),
    call: async ({ inputs: given, api }) => ({ [member]: [...(await list(given, api))] }),
  });
}

/** How a binding calls a function. */
export interface FunctionCaller extends FunctionCall {
  readonly signal?: AbortSignal | undefined;
  /** The result of an acting function in a preview: unknown, or a read of the current state. Undefined in an up. */
  readonly preview: "unknown" | "look" | undefined;
}

/**
 * Checks the arguments and calls the function. {@link UNKNOWN} stands for all unknown values in a preview.
 * @throws MachinesError `invalid-input` for invalid arguments; the service's own refusals
 */
export async function callFunction(
  called: MachinesFunction,
  args: Values,
  { api, progress, signal, preview }: FunctionCaller,
): Promise<Values> {
  const { name, inputFields, outputFields, look } = called;
  const { inputs, problems } = problemsOf(inputFields, args);
  if (problems.length > 0) {
    const text = problems.map(({ path, message }) => `${pathText(path)}: ${message}`).join("; ");
    throw new MachinesError("invalid-input", `${name}: ${text}`);
  }
  if (look && preview === "unknown")
    return Object.fromEntries(Object.keys(outputFields).map((output) => [output, UNKNOWN]));
  const bare = Object.entries(inputs).map(([key, value]) => {
    const field = inputFields[key];
    return [key, field ? withBareIds(field, value) : value];
  });
  const known = Object.fromEntries(bare) as Values;
  const allowed = called.seconds(known);
  const advice = Object.hasOwn(inputFields, "timeoutSeconds") ? "timeoutSeconds allows more time." : "";
  const deadline = { at: api.clock.now() + allowed * 1000, allowed: formatDuration(allowed * 1e9), signal, advice };
  const bound = { api: api.within(deadline), progress, inputs: known };
  return withoutUndefined(await (look && preview === "look" ? look(bound) : called.call(bound)));
}
