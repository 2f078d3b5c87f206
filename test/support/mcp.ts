// A client of `pulumi-machines mcp`, as assistants have it: the official one, over the standard streams of the built command.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { cliMain } from "./built.ts";
import { hang } from "./patience.mts";

/** The answer of a tool. */
export interface ToolAnswer<T = Record<string, unknown>> {
  /** Everything that the client got, as text. */
  readonly text: string;
  readonly isError: boolean;
  readonly found: T;
}

/** A connected client. */
export interface Assistant {
  readonly client: Client;
  /** The process of the server. */
  readonly pid: number;
  /** What the server wrote to its standard error. */
  readonly said: () => string;
  /** Calls a tool. */
  readonly ask: <T = Record<string, unknown>>(name: string, args?: Record<string, unknown>) => Promise<ToolAnswer<T>>;
  /** The same. @throws if the tool answers an error */
  readonly get: <T = Record<string, unknown>>(name: string, args?: Record<string, unknown>) => Promise<T>;
  readonly close: () => Promise<void>;
}

/** Options of the server. */
export interface AssistantOptions {
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The command; that of the clone when left out. */
  readonly main?: string;
}

/** Starts the server and connects to it. */
export async function assistant({ args = [], env, cwd, main = cliMain }: AssistantOptions): Promise<Assistant> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const given = Object.entries({ ...process.env, ...env }).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [main, "mcp", ...args],
    env: Object.fromEntries(given),
    cwd,
    stderr: "pipe",
  });
  let said = "";
  transport.stderr?.on("data", (text: Buffer) => (said += text.toString()));
  await client.connect(transport);
  const ask = async <T>(name: string, given: Record<string, unknown> = {}): Promise<ToolAnswer<T>> => {
    const answer = await client.callTool({ name, arguments: given }, { timeout: hang });
    return { text: JSON.stringify(answer), isError: answer.isError === true, found: answer.structuredContent as T };
  };
  return {
    client,
    pid: transport.pid ?? 0,
    said: () => said,
    ask,
    async get<T>(name: string, given?: Record<string, unknown>): Promise<T> {
      const { text, isError, found } = await ask<T>(name, given);
      if (isError) throw new Error(text);
      return found;
    },
    close: () => client.close(),
  };
}
