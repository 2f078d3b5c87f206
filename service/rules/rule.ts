// A rule implements the operation of one row of the contract. Types, routes and validation come from the row.
import type { z } from "zod";
import type { Operation } from "../../api/operation.ts";
import type { Context } from "../context.ts";
import type { Found } from "../runtime/lookup.ts";
import type { Bearer } from "../store/tokens.ts";

/** The sender of a request: the owner and rights of its token. */
export type Caller = Bearer;

/** An answer as JSON text. */
export class Text {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A part of an answer: text, or bytes if converting a long text would need much memory. */
export type Chunk = string | Uint8Array;

/** An answer as JSON text that may exceed the memory: each piece is built when it is sent. */
export class Pieces {
  readonly pieces: Iterable<readonly Chunk[]>;

  constructor(pieces: Iterable<readonly Chunk[]>) {
    this.pieces = pieces;
  }
}

/** All chunks as one text. */
export const textOfChunks = (chunks: Iterable<Chunk>): string =>
  Array.from(chunks, (chunk) => (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())).join("");

/** An answer with another status of the row, or with headers. */
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

/** A deferred answer: computed after the rule's changes are durable, outside of any transaction. */
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
  /** The nonce in the lease header. */
  readonly nonce: string | undefined;
  readonly found: Found;
  /** Calls back when the client disconnects or has its answer. */
  readonly onGone: (leave: () => void) => void;
  /** Says in the records what the request has changed, if its path does not. */
  readonly note: (about: string) => void;
}

type Body<Row> = Row extends { readonly answer: infer A extends z.ZodType }
  ? z.infer<A> | Text | Pieces | Reply | Deferred<z.infer<A>>
  : void | Reply | Deferred<undefined>;

/** Refuses, or changes the store and answers. Rules of all methods except GET run in a transaction. */
export type Rule<Row extends Omit<Operation, "id">> = (input: Input<Row>) => Body<Row>;

/** The rules of all operations of a group; a missing one does not compile. */
export type Rules<Group extends Readonly<Record<string, Omit<Operation, "id">>>> = {
  readonly [K in keyof Group]: Rule<Group[K]>;
};
