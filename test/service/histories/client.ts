// A client of a history, and the objects that it asks about.
import type { Dice } from "../../support/organizations.ts";
import type { Answer, Call } from "../client.ts";
import type { Input, Output } from "./history.ts";

/** A client that draws its requests. */
export interface Client {
  readonly number: number;
  readonly dice: Dice;
  /** A mark that no other operation has. */
  mark(): string;
  /** Sends a request and records it. Undefined if the answer was lost. */
  ask(input: Input, request: Parameters<Call>, outputOf: (answer: Answer) => Output): Promise<Answer | undefined>;
}

/** An object of the service, with the requests that the clients send about it. */
export interface Target {
  /** Name of the model in tools/histories. */
  readonly object: string;
  readonly key: string;
  /** Sends one request. */
  act(client: Client): Promise<void>;
  /** Reads it. */
  read(client: Client): Promise<void>;
}

/** The configuration of a Machine with a mark. */
export const configOf = (mark: string) => ({ image: "nginx", env: { MARK: mark } });

/** An answer that the model does not know. */
export const unexpected = ({ status, text }: Answer): Error => new Error(`unexpected answer ${status} ${text}`);

/** The result that a status means. */
export function resultIn(answer: Answer, results: Readonly<Record<number, string>>): Output {
  const result = results[answer.status];
  if (result === undefined) throw unexpected(answer);
  return { result };
}
