// What a row of the wire contract is. One row per operation; the client's methods and the service's routes are derived.
import type { z } from "zod";

/**
 * What may be done when no answer came, or one that does not tell whether the request took effect.
 * - `read`: changes nothing; repeat freely.
 * - `repeatable`: the second request leaves what one would have left (PUT, DELETE, set by key).
 * - `once`: a second request could make a second thing or undo somebody's work; never repeated blindly.
 */
export type Repeat = "read" | "repeatable" | "once";

/** How an operation treats the Machine's lease (docs/interface.md#leases). */
export type LeaseRule =
  /** Refused with 409 while another client holds the lease; the holder sends its nonce. */
  | "guarded"
  /** The nonce is what the operation is about: refresh or release. */
  | "own";

/** One operation of the interface. */
export interface Operation {
  /** `group.method`, as the client calls it. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below the base URL, with `{parameters}`. */
  readonly path: string;
  /** Where the rules behind the row are: sections of docs/interface.md. */
  readonly source: string;
  readonly summary: string;
  /** Path parameters. */
  readonly params: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly lease?: LeaseRule;
  readonly body?: z.ZodType;
  /** True when a request without a body is valid. */
  readonly bodyOptional?: boolean;
  /** Successful status and the body that comes with it. */
  readonly status: number;
  /** Further successful statuses with the same body, and what they say. */
  readonly otherSuccesses?: Readonly<Record<number, string>>;
  readonly answer?: z.ZodType;
  /** Documented failures by status. */
  readonly failures: Readonly<Record<number, string>>;
  readonly repeat: Repeat;
  /** The request is held until something happens, up to 60 s (docs/interface.md#waits). */
  readonly held?: boolean;
}

/** Declares a group of operations; `id`s are made from the group's name. */
export function operations<const Rows extends Readonly<Record<string, Omit<Operation, "id">>>>(
  group: string,
  rows: Rows,
): { readonly [K in keyof Rows]: Rows[K] & { readonly id: string } } {
  const named = Object.entries(rows).map(([name, row]) => [name, { id: `${group}.${name}`, ...row }]);
  return Object.fromEntries(named) as { readonly [K in keyof Rows]: Rows[K] & { readonly id: string } };
}
