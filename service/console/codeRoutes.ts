// The route for "copy as code": an object as a program, as an import and as a request.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { pageKeyHeader } from "../http/authenticate.ts";
import { curlOfObject } from "../openapi/curl.ts";
import { ownCommand } from "../ownCommand.ts";
import { refuse } from "../refusal.ts";
import { read } from "../validation/read.ts";
import { addressOf, isHere } from "../requestAddress.ts";
import type { FairTurns } from "../time/fairTurns.ts";
import { codeBundle, type CodeQuery } from "./code.ts";

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
  app.get("/console/api/code", (request) => answerTo(request, senderFor(app, turns, request), folder));
}

async function answerTo(request: FastifyRequest, send: CodeQuery["send"], folder: string | undefined) {
  const { type, id, whole } = read(query, request.query);
  const address = addressOf(request);
  const wanted = { type, id, isWhole: whole === "true", endpoint: address, send };
  const found = await codeBundle()
    .codeOf(wanted)
    .catch((error: unknown) => {
      const { statusCode, message } = error as Error & { readonly statusCode?: number };
      throw statusCode === undefined ? error : refuse(statusCode, message);
    });
  const { programs, settings, importCommand, path, remarks } = found;
  return {
    ...(programs ?? { typescript: null, python: null, go: null, yaml: null }),
    settings: settings.join("\n"),
    import: importCommand,
    curl: curlOfObject(address, path, tokenCommandOf(request, folder)),
    remarks,
  };
}

/** Sends reads to this service itself, so that they get the answers and refusals that their user would get. */
const senderFor =
  (app: FastifyInstance, turns: FairTurns, { headers }: FastifyRequest): CodeQuery["send"] =>
  async ({ path, timeout }) => {
    const own = Object.fromEntries(
      passed.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
    );
    await turns.next();
    const answer = await app.inject({ method: "GET", url: path, headers: own, signal: AbortSignal.timeout(timeout) });
    const known = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
    return { status: answer.statusCode, headers: Object.fromEntries(known), text: answer.body };
  };

/** The command that prints a token of the user's; undefined if the user cannot run it, or its token is of another organization. */
const tokenCommandOf = (request: FastifyRequest, folder: string | undefined): string | undefined => {
  const isTokenOfFile = request.caller.slug === "personal" && request.caller.app === null && !request.caller.readOnly;
  return folder !== undefined && isTokenOfFile && isHere(request) ? ownCommand("token", folder) : undefined;
};
