// Changes that commands of a member's computer make, such as tokens: the leader makes them in its store.
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Context } from "../context.ts";
import { decode, makeChanges } from "../replication/changes.ts";
import { refuse } from "../refusal.ts";
import type { MemberKey } from "./memberKey.ts";

/** Path of the route. */
export const changesPath = "/-/changes";

const header = "machines-changes";
// A command and the leader may be on different computers, whose clocks differ.
const validMs = 60_000;

/** The headers of a request with changes. */
export function changesHeaders(key: MemberKey, changes: Uint8Array, now: number): Record<string, string> {
  return { [header]: `${now} ${key.sign(`changes ${now}`, changes)}` };
}

function isSigned(key: MemberKey, request: FastifyRequest, changes: Uint8Array, now: number): boolean {
  const [at = "", signature = ""] = String(request.headers[header] ?? "").split(" ");
  return key.isValid(`changes ${at}`, changes, signature) && Math.abs(now - Number(at)) < validMs;
}

/** The body of a request with changes. */
export const changesBody = (changes: Uint8Array): string =>
  JSON.stringify({ changes: Buffer.from(changes).toString("base64") });

function changesIn(body: unknown): Buffer {
  const { changes } = (body ?? {}) as { readonly changes?: unknown };
  return Buffer.from(typeof changes === "string" ? changes : "", "base64");
}

/** Adds the route. */
export function addChangesRoute(app: FastifyInstance, { store }: Context, key: MemberKey): void {
  app.post(changesPath, { config: { open: true } }, async (request, reply) => {
    const changes = changesIn(request.body);
    if (!isSigned(key, request, changes, Date.now()))
      throw refuse(401, "the request is not signed with the key of the members");
    const recorded = await decode(changes);
    // A token that is being revoked may have been used since; what a command says holds.
    const fits = await store.write(() => makeChanges(store.db, recorded, true));
    if (!fits) throw refuse(409, "the store has changed meanwhile; try again");
    return reply.status(204).send();
  });
}
