// Requests of commands for organizations, with tokens that are revoked when the command has finished.
import { setTimeout as sleep } from "node:timers/promises";
import { createIds, systemRandom } from "../ids.ts";
import type { Role } from "../store/roles.ts";
import { addToken, revokeTokens } from "../store/tokens.ts";
import type { Answer, Reached, Request } from "./client.ts";

/** The tokens of a command. No one else learns their values. */
export interface CommandTokens {
  /** Name in the list of tokens. */
  readonly name: string;
  readonly role: Role;
  /** Milliseconds until a token expires that was not revoked because the command was killed; null for never. */
  readonly lifetimeMs: number | null;
}

/** Sends a request for the organization of a slug. A request beyond a rate limit is retried when the service allows it. */
export type SendFor = ((slug: string, request: Request) => Promise<Answer>) & {
  /** The token of an organization, for an answer that is read as it comes. */
  readonly tokenOf: (slug: string) => Promise<string>;
};

/** Runs the work of a command, which sends requests. */
export async function withTokens<T>(
  service: Reached,
  { name, role, lifetimeMs }: CommandTokens,
  work: (send: SendFor) => Promise<T>,
): Promise<T> {
  const { store } = service;
  const tokens = new Map<string, { readonly token: string; readonly id: string }>();
  const tokenOf = async (slug: string): Promise<string> => {
    let own = tokens.get(slug);
    if (!own) {
      own = await store.write(() => {
        const token = createIds(systemRandom()).accessToken();
        const now = Date.now();
        const expiresAt = lifetimeMs === null ? null : now + lifetimeMs;
        return { token, id: addToken(store, token, { slug, name, role, expiresAt }, now) };
      });
      tokens.set(slug, own);
    }
    return own.token;
  };
  const request = async (slug: string, asked: Request): Promise<Answer> => {
    const answer = await service.send(await tokenOf(slug), asked);
    if (answer.status !== 429) return answer;
    await sleep(Math.max(1, answer.retryAfter) * 1000);
    return request(slug, asked);
  };
  const send = Object.assign(request, { tokenOf });
  try {
    return await work(send);
  } finally {
    await store.write(() => tokens.forEach(({ id }) => revokeTokens(store, id)));
  }
}
