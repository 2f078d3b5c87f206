// What a rule is: the behaviour behind one row of the contract. Types, routes and validation come from the row.
import type { z } from "zod";
import type { Operation } from "../../api/operation.ts";
import type { Context } from "../context.ts";

/** Who is asking: whom the token stands for, what it may do, and the name its leases are held under. */
export interface Caller {
  /** Id its token is listed under. */
  readonly id: string;
  readonly org: number;
  readonly slug: string;
  readonly owner: string;
  /** The one App a deploy token is good for; null for all of the organization. */
  readonly app: string | null;
  readonly readOnly: boolean;
  /** When the token ends, in milliseconds since 1970; null for never. */
  readonly expiresAt: number | null;
}

/** An answer that is JSON text already. */
export class Text {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Part of an answer: text, or the bytes of a text that is so long that to make a text of it first would cost much memory. */
export type Chunk = string | Uint8Array;

/** An answer that is JSON text and may be longer than memory has room for: piece by piece, each made when it is asked for. */
export class Pieces {
  readonly pieces: Iterable<readonly Chunk[]>;

  constructor(pieces: Iterable<readonly Chunk[]>) {
    this.pieces = pieces;
  }
}

/** All of it as one text. */
export const textOfChunks = (chunks: Iterable<Chunk>): string =>
  Array.from(chunks, (chunk) => (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())).join("");

/** An answer under another of the row's statuses, or with headers. */
export class Reply {
  readonly body: unknown;
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    body: unknown,
    { status, headers = {} }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    this.body = body;
    this.status = status;
    this.headers = headers;
  }
}

/** An answer that takes its time: found after the rule's changes are durable, and outside of any transaction. */
export class Deferred<T> {
  readonly find: () => Promise<T>;

  constructor(find: () => Promise<T>) {
    this.find = find;
  }
}

/** A validated request. */
export interface Input<Row extends Omit<Operation, "id"> = Operation> {
  readonly context: Context;
  readonly caller: Caller;
  readonly params: z.infer<Row["params"]>;
  readonly query: Row extends { readonly query: infer Q extends z.ZodType }
    ? z.infer<Q>
    : Readonly<Record<string, unknown>>;
  readonly body: Row extends { readonly body: infer B extends z.ZodType } ? z.infer<B> : unknown;
  /** What came in the lease header. */
  readonly nonce: string | undefined;
  /** Calls back once the client has gone, or has its answer. */
  readonly onGone: (leave: () => void) => void;
}

type Body<Row> = Row extends { readonly answer: infer A extends z.ZodType }
  ? z.infer<A> | Text | Pieces | Reply | Deferred<z.infer<A>>
  : void | Reply;

/** Refuses, or changes the store and answers. A rule that does not read runs in a transaction. */
export type Rule<Row extends Omit<Operation, "id">> = (input: Input<Row>) => Body<Row>;

/** A rule for every operation of a group; leaving one out does not compile. */
export type Rules<Group extends Readonly<Record<string, Omit<Operation, "id">>>> = {
  readonly [K in keyof Group]: Rule<Group[K]>;
};
