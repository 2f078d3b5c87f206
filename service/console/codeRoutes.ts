// The route for "copy as code": an object as a program, as an import and as a request.
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { pageKeyHeader } from "../http/authenticate.ts";
import { curlOfObject } from "../openapi/curl.ts";
import { ownCommand } from "../ownCommand.ts";
import { read } from "../validation/read.ts";
import { addressOf, isHere } from "../requestAddress.ts";
import type { FairTurns } from "../time/fairTurns.ts";
import { CodeJobs } from "./codeJobs.ts";
import { ReadTooLong, type SendRead } from "./codeWorker.ts";
import { isOperator } from "../store/tokens.ts";

const query = z.strictObject({
  type: z.string(),
  id: z.string(),
  whole: z.enum(["true", "false"]).default("false"),
});

/** Headers that say who a client is, and where its page comes from. */
const passed = ["host", "authorization", "cookie", pageKeyHeader, "origin", "sec-fetch-site"] as const;

/**
 * Adds the route.
 * @param folder of the data; undefined in memory
 */
export function addCodeRoutes(
  app: FastifyInstance,
  { turns }: { readonly turns: FairTurns },
  folder: string | undefined,
): void {
  const jobs = new CodeJobs();
  app.addHook("onClose", () => jobs.close());
  app.get("/console/api/code", async (request, reply) => {
    const { type, id, whole } = read(query, request.query);
    const { org, id: token } = request.caller;
    const endpoint = addressOf(request);
    const wanted = { type, id, isWhole: whole === "true", endpoint };
    const { json, path } = await jobs.write({ org, token, wanted }, senderFor(app, turns, request));
    const curl = curlOfObject(endpoint, path, tokenCommandOf(request, folder));
    // Requests that share an answer share its bytes; only the end is their own.
    const parts = [json.subarray(0, -1), Buffer.from(`,"curl":${JSON.stringify(curl)}}`)];
    return reply.type("application/json; charset=utf-8").send(Readable.from(parts, { objectMode: false }));
  });
}

/** Sends reads to this service itself, so that they get the answers and refusals that their user would get. */
const senderFor =
  (app: FastifyInstance, turns: FairTurns, { headers }: FastifyRequest): SendRead =>
  async ({ path, timeout }, most) => {
    const own = Object.fromEntries(
      passed.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
    );
    await turns.next();
    const signal = AbortSignal.timeout(timeout);
    const answer = await app.inject({ method: "GET", url: path, headers: own, signal, payloadAsStream: true });
    const known = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of answer.stream() as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > most) {
        // The rest is not even prepared.
        answer.raw.res.destroy();
        throw new ReadTooLong();
      }
      parts.push(part);
    }
    const bytes = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return { status: answer.statusCode, headers: Object.fromEntries(known), bytes };
  };

/** The command that prints a token of the user's; undefined if the user cannot run it, or its token is of another organization. */
const tokenCommandOf = (request: FastifyRequest, folder: string | undefined): string | undefined => {
  const isTokenOfFile = isOperator(request.caller) && request.caller.role === "own";
  return folder !== undefined && isTokenOfFile && isHere(request) ? ownCommand("token", folder) : undefined;
};
