// Requests of commands to the service of a data folder: the running one, or a new one inside this process while the command lasts.
import { existsSync } from "node:fs";
import { get as httpGet, type IncomingMessage } from "node:http";
import { get as httpsGet } from "node:https";
import { createInterface } from "node:readline";
import { ownCommand } from "../ownCommand.ts";
import { storeFile, type Store } from "../store/database.ts";
import type { Running } from "../store/lock.ts";
import { commandStore } from "./commandStore.ts";
import { findRunning } from "./daemon.ts";
import { Problem } from "./problem.ts";
import { sendTo, trust } from "./send.ts";

/** An answer. */
export interface Answer {
  readonly status: number;
  /** Seconds to wait before a retry, from the answer; 0 without any. */
  readonly retryAfter: number;
  /** The JSON of the body; undefined without one. */
  readonly body: unknown;
}

/** A request below `/v1`. */
export interface Request {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
}

/** A reachable service and its store. */
export interface Reached {
  readonly store: Store;
  send(token: string, request: Request): Promise<Answer>;
  close(): Promise<void>;
}

const parsed = (text: string): unknown => (text === "" ? undefined : JSON.parse(text));
const headersOf = (token: string) => ({ authorization: `Bearer ${token}`, host: "localhost" });

async function ask(running: Running, token: string, { method, path, body }: Request): Promise<Answer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await sendTo(running, { method, path: `/v1${path}`, headers: headersOf(token), body: text });
  return { status: answer.status, retryAfter: Number(answer.headers["retry-after"] ?? 0), body: parsed(answer.text) };
}

/**
 * The lines of an answer outside of the interface, as they come. Throws a Problem if the service is not running, or refuses.
 */
export async function* streamFrom(folder: string, token: string, path: string): AsyncGenerator<string> {
  const running = findRunning(folder);
  if (!running) throw new Problem(`machines-service is not running (data ${folder})`);
  const { url, certificate } = running;
  const options = { headers: headersOf(token), ...(certificate === undefined ? {} : trust(certificate)) };
  const response = await new Promise<IncomingMessage>((done, fail) => {
    const get = certificate === undefined ? httpGet : httpsGet;
    get(`${url}${path}`, options, done).once("error", fail);
  });
  const lines = createInterface({ input: response, crlfDelay: Infinity });
  if (response.statusCode === 200) return yield* lines;
  let text = "";
  for await (const line of lines) text += line;
  const { error } = JSON.parse(text) as { readonly error?: string };
  throw new Problem(error ?? `the service answered ${response.statusCode}`);
}

const toStart = (folder: string): string => `start it first: ${ownCommand("start --detach", folder)}`;

/** Reaches the running service of a data folder until it is closed. Throws a Problem if it does not run. */
export function reach(folder: string): Reached {
  const running = findRunning(folder);
  if (!running) throw new Problem(`no service is running for ${folder}; ${toStart(folder)}`);
  const store = commandStore(folder);
  return {
    store,
    send: (token, request) => ask(running, token, request),
    close: () => Promise.resolve(store.close()),
  };
}

/**
 * Reaches the running service of a data folder, or a new one in a folder without a service, while the command lasts. Throws a Problem if
 * there is one that is stopped: only its start has the options that say what runs its Machines, and which regions and images there are.
 */
export async function reachOrCreate(folder: string): Promise<Reached> {
  if (findRunning(folder)) return reach(folder);
  if (existsSync(storeFile(folder))) throw new Problem(`the service of ${folder} is stopped; ${toStart(folder)}`);
  const { createService } = await import("../service.ts");
  const service = createService({ data: folder });
  return {
    store: service.context.store,
    async send(token, { method, path, body }) {
      const headers = headersOf(token);
      const url = `/v1${path}`;
      const answer = await service.app.inject({ method, url, headers, ...(body ? { payload: body } : {}) });
      return { status: answer.statusCode, retryAfter: 0, body: parsed(answer.body) };
    },
    close: () => service.close(),
  };
}
