// How a tool answers: with an object of its schema and of bounded size, without secrets, or with an error that says what to do.
import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { MachinesError, messageForUser, messageOf } from "../../provider/client/errors.ts";
import { printable } from "../../api/printable.ts";
import type { KnownSecrets } from "./known.ts";

/** The stack that a tool is about. */
export const place = {
  stack: z.string().min(1).max(200).optional().describe("Stack of the project; the selected one when left out."),
  folder: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe("Folder of the Pulumi project, within the folder of this server; that one when left out."),
};

/** A call of a tool. */
export interface Call {
  /** Tells the client how far a long call is. */
  readonly progress: (message: string) => void;
  /** The client waits no longer. */
  readonly signal: AbortSignal;
}

/** A tool. */
export interface Tool<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: I;
  readonly output: O;
  /** How to get a smaller answer. */
  readonly narrow: string;
  /** What it changes; undefined for one that only reads. */
  readonly changes?: { readonly destructive: boolean };
  readonly run: (input: z.output<I>, call: Call) => Promise<z.output<O>>;
}

/** The parts of a session that each tool needs. */
export interface Session {
  readonly server: McpServer;
  readonly secrets: KnownSecrets;
  readonly err: (text: string) => void;
}

// ASSUMED: 60,000 characters are about 20,000 tokens, which fit into the context of any assistant.
const mostCharacters = 60_000;

/** Adds a tool to the server. */
export function addTool<I extends z.ZodObject, O extends z.ZodObject>(session: Session, tool: Tool<I, O>): void {
  const { name, title, description, input, output, narrow, changes, run } = tool;
  const annotations = changes
    ? { readOnlyHint: false, destructiveHint: changes.destructive, idempotentHint: false, openWorldHint: true }
    : { readOnlyHint: true, openWorldHint: true };
  const config = { title, description, inputSchema: input, outputSchema: output, annotations };
  session.server.registerTool<z.ZodObject, z.ZodObject>(name, config, async (given, { mcpReq }) => {
    const token = mcpReq._meta?.progressToken;
    let steps = 0;
    const progress = (message: string): void => {
      if (token === undefined) return;
      const shown = session.secrets.without(printable(message));
      const params = { progressToken: token, progress: ++steps, message: shown };
      // A client that has gone needs no progress.
      mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
    };
    try {
      const found = session.secrets.without(await run(given as z.output<I>, { progress, signal: mcpReq.signal }));
      const text = JSON.stringify(found);
      if (text.length > mostCharacters)
        throw new MachinesError(
          "invalid-input",
          `the answer has ${text.length} characters, and at most ${mostCharacters} are sent; ${narrow}`,
        );
      return { content: [{ type: "text", text }], structuredContent: found };
    } catch (error) {
      // Any other error is a bug of ours: its stack is for people, not for the assistant.
      if (!(error instanceof MachinesError) && error instanceof Error) session.err(error.stack ?? error.message);
      const message = error instanceof MachinesError ? messageForUser(error) : messageOf(error);
      const text = session.secrets.without(printable(message)).slice(0, mostCharacters);
      return { isError: true, content: [{ type: "text", text }] };
    }
  });
}

/** A text of others: without what could imitate a terminal, and not longer than allowed. */
export function bounded(text: string, most: number): string {
  const shown = printable(text);
  return shown.length > most ? `${shown.slice(0, most)}… (${shown.length} characters)` : shown;
}
