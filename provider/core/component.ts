// The declaration of a component: it creates nothing in the service, and computes its outputs from its inputs.
import type { z } from "zod";
import type { Field } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { fieldsOf, type Values } from "./resource.ts";

/** Another place to read from than the provider's own. */
export interface Elsewhere {
  readonly endpoint?: string | undefined;
  readonly token: string;
}

/** What a component has while it computes its outputs. */
export interface Constructing {
  /** The service of the provider, or another one. */
  readonly apiOf: (elsewhere?: Elsewhere) => Api;
  readonly warn: (message: string) => void;
}

/** An output: it is secret if one of these inputs is, and depends on what they depend on. */
export interface Derived {
  /** The value; {@link UNKNOWN} while an input is unknown that it needs. */
  readonly value: unknown;
  /** Names of the inputs that it was computed from. */
  readonly secretLike: readonly string[];
  /** Names of further inputs that decided on it. */
  readonly decidedBy?: readonly string[];
}

/** A resource that a program passes to a method. */
export interface Passed {
  /** Name of its type. */
  readonly type: string;
  /** Its id and outputs; {@link UNKNOWN} stands for those that a preview does not know. */
  readonly values: Values;
}

/** A call of a method. */
export interface MethodCall {
  /** Name of the component in the program. */
  readonly name: string;
  /** The outputs of the component. */
  readonly self: Values;
  /** The resources of the argument. */
  readonly passed: readonly Passed[];
  /** The stack, `project/stack`. */
  readonly stack: string;
}

/** A method of a component. It takes a list of resources, and has one result. */
export interface Method {
  readonly description: string;
  /** The argument: its name, and what it is. */
  readonly argument: string;
  readonly argumentDescription: string;
  /** Types of the resources that it takes, with the outputs that the method reads of each; `?` follows one that may be absent. */
  readonly takes: Readonly<Record<string, readonly string[]>>;
  /** The result: its name, and what it is. */
  readonly result: string;
  readonly resultDescription: string;
  /** Computes the result. It is only called when all values are known. */
  call(given: MethodCall): Values;
}

/** The declaration of a component. */
interface Definition<I extends z.ZodObject, O extends z.ZodObject> {
  /** Name in PascalCase. */
  readonly name: string;
  /** One sentence for the docs. */
  readonly summary: string;
  /** The longer description in the docs. */
  readonly description: string;
  readonly inputs: I;
  readonly outputs: O;
  readonly methods: Readonly<Record<string, Method>>;
  construct(
    inputs: z.output<I>,
    constructing: Constructing,
  ): Promise<Readonly<Record<keyof z.output<O> & string, Derived>>>;
}

/** A declared component as the plugin sees it. */
export interface Component {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly inputFields: Readonly<Record<string, Field>>;
  readonly outputFields: Readonly<Record<string, Field>>;
  readonly methods: Readonly<Record<string, Method>>;
  construct(inputs: Values, constructing: Constructing): Promise<Readonly<Record<string, Derived>>>;
}

/** Declares a component. */
export function defineComponent<I extends z.ZodObject, O extends z.ZodObject>(definition: Definition<I, O>): Component {
  return {
    ...definition,
    inputFields: fieldsOf(definition.inputs),
    outputFields: fieldsOf(definition.outputs),
  };
}
