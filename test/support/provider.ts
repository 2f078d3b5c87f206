// An OpenID Connect provider at which people sign in: the library oidc-provider, with its forms for development.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { vi } from "vitest";
import { afterThisTest } from "./leftovers.ts";

/** What a person is called, and the groups that it is in. */
export interface Person {
  readonly email?: string;
  readonly groups?: readonly string[];
}

/** A running provider. */
export interface Provider {
  readonly url: string;
  /** By the login. */
  readonly people: Record<string, Person>;
  readonly close: () => Promise<void>;
}

/** Starts a provider that knows one client, which comes back to an address. It ends with the test. */
export async function startProvider(redirect: string): Promise<Provider> {
  const { default: Oidc } = await import("oidc-provider");
  let handle = (_: IncomingMessage, response: ServerResponse): unknown => response.end();
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const people: Record<string, Person> = {};
  // It warns of what is only for development, which this is.
  const quiet = (["warn", "info"] as const).map((name) => vi.spyOn(console, name).mockImplementation(() => {}));
  afterThisTest(() => quiet.forEach((spy) => spy.mockRestore()));
  const provider = new Oidc(url, {
    clients: [{ client_id: "machines", client_secret: "of-the-client", redirect_uris: [redirect] }],
    claims: { openid: ["sub"], email: ["email"], profile: ["groups"] },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, ...people[sub], groups: [...(people[sub]?.groups ?? [])] }),
    }),
    cookies: { keys: ["of-a-test"] },
  });
  handle = provider.callback();
  const close = (): Promise<void> =>
    new Promise((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
  afterThisTest(close);
  return { url, people, close };
}
