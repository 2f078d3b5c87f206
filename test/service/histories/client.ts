// A client of a history, and what it acts on.
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
}

/** An answer that the model does not know. */
export const unexpected = ({ status, text }: Answer): Error => new Error(`unexpected answer ${status} ${text}`);
