// The rows of the HTTP contract, one per operation; the client's methods and the service's routes are derived from them.
import type { z } from "zod";

/**
 * What a client may do without an answer, or with one that does not show whether the request took effect.
 * - `read`: changes nothing; repeat freely.
 * - `repeatable`: a second request has the same result (PUT, DELETE, set by key).
 * - `once`: a second request could create a second object or undo another client's change; never repeated blindly.
 */
export type Repeat = "read" | "repeatable" | "once";

/** How an operation treats the Machine's lease (docs/interface.md#leases). */
export type LeaseRule =
  /** Refused with 409 while another client holds the lease; the holder sends its nonce. */
  | "guarded"
  /** The operation is about the nonce: refresh or release. */
  | "own";

/** One operation of the interface. */
export interface Operation {
  /** `group.method`, as the client calls it. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below the base URL, with `{parameters}`. */
  readonly path: string;
  /** The rules of the row: sections of docs/interface.md. */
  readonly source: string;
  readonly summary: string;
  /** Path parameters. */
  readonly params: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly lease?: LeaseRule;
  readonly body?: z.ZodType;
  /** True when a request without a body is valid. */
  readonly bodyOptional?: boolean;
  /** Successful status with its body. */
  readonly status: number;
  /** Other successful statuses with the same body, and their meaning. */
  readonly otherSuccesses?: Readonly<Record<number, string>>;
  readonly answer?: z.ZodType;
  /** Documented failures by status. */
  readonly failures: Readonly<Record<number, string>>;
  readonly repeat: Repeat;
  /** The service holds the request until something happens, up to 60 s (docs/interface.md#waits). */
  readonly held?: boolean;
}

/** Declares a group of operations; each `id` is derived from the group's name. */
export function operations<const Rows extends Readonly<Record<string, Omit<Operation, "id">>>>(
  group: string,
  rows: Rows,
): { readonly [K in keyof Rows]: Rows[K] & { readonly id: string } } {
  const named = Object.entries(rows).map(([name, row]) => [name, { id: `${group}.${name}`, ...row }]);
  return Object.fromEntries(named) as { readonly [K in keyof Rows]: Rows[K] & { readonly id: string } };
}
