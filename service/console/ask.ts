// Asks the rules of the interface within the process, as the caller of a request: with its rights, and without its rate limits.
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import type { z } from "zod";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { rules } from "../rules/index.ts";
import { nothingFound } from "../runtime/lookup.ts";
import { Deferred, Pieces, Reply, Text, textOfChunks, type Caller, type Input } from "../rules/rule.ts";

type Groups = typeof contract;
type Answer<G extends keyof Groups, O extends keyof Groups[G]> = Groups[G][O] extends {
  readonly answer: infer A extends z.ZodType;
}
  ? z.infer<A>
  : undefined;

/** A question: who asks, in which service. */
export interface Asker {
  readonly context: Context;
  readonly caller: Caller;
}

/** The answer of an operation that only reads. Throws the operation's refusals. */
export async function ask<G extends keyof Groups, O extends keyof Groups[G] & string>(
  { context, caller }: Asker,
  group: G,
  operation: O,
  params: Readonly<Record<string, string>>,
  query: Readonly<Record<string, unknown>> = {},
): Promise<Answer<G, O>> {
  const row = (contract[group] as unknown as Readonly<Record<string, Operation>>)[operation];
  const rule = (rules[group] as unknown as Readonly<Record<string, (input: Input) => unknown>>)[operation];
  if (row?.method !== "GET" || rule === undefined) throw new Error(`${group}.${operation} does not only read`);
  const input = {
    context,
    caller,
    params,
    query,
    body: undefined,
    nonce: undefined,
    found: nothingFound(),
    onGone() {},
    note() {},
  };
  return plain(await rule(input)) as Promise<Answer<G, O>>;
}

/** The same, or undefined if there is no such object, or if it cannot answer now. */
export async function askFor<T>(question: Promise<T>): Promise<T | undefined> {
  try {
    return await question;
  } catch (error) {
    if (error instanceof Refusal && [404, 412, 503].includes(error.status)) return undefined;
    throw error;
  }
}

async function plain(answer: unknown): Promise<unknown> {
  if (answer instanceof Deferred) return plain(await answer.find());
  if (answer instanceof Reply) return plain(answer.body);
  if (answer instanceof Text) return JSON.parse(answer.text);
  if (answer instanceof Pieces) return JSON.parse(textOfChunks([...answer.pieces].flat()));
  return answer;
}
