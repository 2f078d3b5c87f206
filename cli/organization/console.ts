// What the console of the service needs of this command: an object as code. The service loads it as a bundle, and hands over how
// to read in the name of the user; nothing of this computer is read, and no program is run.
import { meantAmong } from "../../api/validated.ts";
import { createApi, type Api } from "../../provider/client/api.ts";
import { systemClock } from "../../provider/client/clock.ts";
import { readConfig } from "../../provider/client/config.ts";
import { ApiError, MachinesError } from "../../provider/client/errors.ts";
import type { Outcome, Sent, Transport } from "../../provider/client/transport.ts";
import type { CodeQuery, ObjectCode } from "../../service/console/code.ts";
import { quoted } from "../orphans/importFile.ts";
import { importableTypes, requestToShow, type ListedType } from "../orphans/listing.ts";
import { codeOfApp, codeOfObject } from "./objectCode.ts";

/** Milliseconds that reading an object may take. */
const longestRead = 30_000;

/** The code of an object. @throws Error with `statusCode` for a query that is not allowed, and for what the user may not read */
export async function codeOf(query: CodeQuery): Promise<ObjectCode> {
  const { type, id, isWhole, endpoint } = query;
  const kind = importableTypes.get(type);
  if (kind === undefined) throw unknownType(type);
  const parts = partsOf(kind, id);
  if (isWhole && type !== "App")
    throw refusal(400, `invalid whole, got "true", must be "false" for type ${JSON.stringify(type)}`);
  try {
    const api = clientOf(query);
    const found = await (isWhole ? codeOfApp(api, id) : codeOfObject(api, kind, id));
    if (found === undefined) throw refusal(404, `not_found: there is no ${type} ${id}`);
    const { settings, ...code } = found;
    return {
      ...code,
      settings: [
        `pulumi config set machines:endpoint ${quoted(endpoint)}`,
        "pulumi config set --secret machines:token",
        ...settings,
      ],
      path: requestToShow(kind, parts).replace(/^GET /, ""),
    };
  } catch (error) {
    throw refusalOf(error, `${type} ${id}`);
  }
}

/** An error that the service answers with this status. */
const refusal = (statusCode: number, message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { statusCode });

function unknownType(type: string): Error {
  const allowed = [...importableTypes.keys()].sort();
  const names = allowed.map((one) => JSON.stringify(one)).join(", ");
  return refusal(400, `invalid type, got ${shown(type)}, allowed are ${names}${meantAmong(type, allowed)}`);
}

function partsOf({ id: format }: ListedType, id: string): Readonly<Record<string, string>> {
  try {
    return format.parse(id);
  } catch (error) {
    throw refusal(400, `invalid id, got ${shown(id)}, must have the form ${format.form}`, error);
  }
}

const shown = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

/** A refused read, as the service refused it. A read that failed or took too long may be repeated. */
function refusalOf(error: unknown, what: string): unknown {
  if (error instanceof ApiError && error.status < 500) return refusal(error.status, error.reason, error);
  return error instanceof MachinesError ? refusal(503, `${what} could not be read; try again`, error) : error;
}

/** The client for one query. Nothing that it learns is kept, because the next query may be another user's. */
function clientOf({ endpoint, send }: CodeQuery): Api {
  const settings: Readonly<Record<string, string>> = { endpoint: "local", retries: "2", requestTimeoutSeconds: "10" };
  const config = { ...readConfig((key) => settings[key], {}), endpoint, tokenSource: "the console" };
  const transport: Transport = Object.assign(
    async ({ method, url, timeout }: Sent): Promise<Outcome> => {
      if (method !== "GET") throw new Error(`${method} ${url} is no read`);
      try {
        return { kind: "answer", ...(await send({ path: url.slice(endpoint.length), timeout })) };
      } catch (error) {
        const cause = error instanceof Error ? error : new Error(String(error));
        return { kind: "lost", cause, lasting: false, proxied: false };
      }
    },
    { close: () => Promise.resolve() },
  );
  // The service knows its user by other headers, and never reads the one of this client.
  const connect = () => Promise.resolve({ url: endpoint, token: "" });
  const api = createApi({ config, connect, transport, clock: systemClock });
  return api.within({ at: systemClock.now() + longestRead, allowed: `${longestRead / 1000}s`, advice: "Try again." });
}
