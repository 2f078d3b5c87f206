// Routes that a machines-service has besides the interface. The platform has none of them.
import { MachinesError } from "./errors.ts";
import { bearer, type ClientParts } from "./handler.ts";

/** An answer as it came. */
export interface OwnAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Reads from such a route, once.
 * @param path with its query, as `/local/rollouts?limit=5`
 * @throws MachinesError `network` if the service does not answer, `configuration` if it refuses the token
 */
export async function readOwn({ connect, transport }: ClientParts, path: string): Promise<OwnAnswer> {
  const { url, token } = await connect();
  const outcome = await transport({
    method: "GET",
    url: `${url}${path}`,
    headers: { accept: "application/json", authorization: bearer(token), "user-agent": "pulumi-machines" },
    body: undefined,
    timeout: 30_000,
    held: false,
    signal: undefined,
  });
  if (outcome.kind !== "answer") throw new MachinesError("network", `${url} does not answer: ${outcome.cause.message}`);
  const { status, text } = outcome;
  if (status === 401 || status === 403)
    throw new MachinesError(
      "configuration",
      `${url} refuses the token: its answer to ${path.replace(/\?.*$/, "")} is ${status}`,
    );
  return { status, text };
}
