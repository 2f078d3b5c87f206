// The client of the service's tests: plain requests, without the provider's client.
import { ManualClock, type Clock, type ServiceOptions } from "../../service/index.ts";
import { addToken, type Grant } from "../../service/store/tokens.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { startService, type TestService } from "../support/startService.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON of the body; undefined without one. */
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests access answers freely
}

export type Call = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/** Sends requests below `/v1` of a service. */
export function caller(url: string, token: string): Call {
  return async (method, path, body, headers = {}) => {
    const init = {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    };
    const response = await fetch(`${url}/v1${path}`, init);
    const text = await response.text();
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      parsed = undefined;
    }
    return { status: response.status, headers: response.headers, text, body: parsed };
  };
}

/** A service with an App `web`; closed after the test. */
export async function withApp<C extends Clock | undefined = undefined>(options: ServiceOptions & { clock?: C } = {}) {
  const service = await startService(options);
  afterThisTest(() => service.close());
  const call = caller(service.url, service.token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  return { ...service, ...requestsOfWeb(call) };
}

/** The requests to the App `web` of a service. */
export function requestsOfWeb(call: Call) {
  const machines = "/apps/web/machines";
  return {
    call,
    machines,
    /** Creates a Machine and returns its answer. */
    async machine(config: object = {}, more: object = {}) {
      const made = await call("POST", machines, { config: { image: "nginx", ...config }, ...more });
      if (made.status !== 200) throw new Error(`creating a Machine gave ${made.status} ${made.text}`);
      return made.body;
    },
    async state(id: string): Promise<string> {
      return (await call("GET", `${machines}/${id}`)).body.state;
    },
    async volume(more: object = {}) {
      const made = await call("POST", "/apps/web/volumes", { name: "data", ...more });
      if (made.status !== 200) throw new Error(`creating a volume gave ${made.status} ${made.text}`);
      return made.body;
    },
  };
}

/** An App on a service whose clock stands still and whose operations take realistic times. */
export const withStillClock = (options: Omit<ServiceOptions, "clock"> = {}) =>
  withApp({ delays: "believable", ...options, clock: new ManualClock() });

/** Sends requests with a new token, by default of the organization `personal`. */
export function callerWith(
  { url, service }: Pick<TestService, "url" | "service">,
  token: string,
  grant: Partial<Grant> = {},
): Call {
  const { store, clock } = service.context;
  void store.write(() => addToken(store, token, { slug: "personal", expiresAt: null, ...grant }, clock.now()));
  return caller(url, token);
}

interface Page {
  readonly items: readonly any[]; // oxlint-disable-line typescript/no-explicit-any -- like answers
  readonly next: string | null | undefined;
}

/** All pages of a list. */
export async function pages(page: (cursor: string | undefined) => Promise<Page>): Promise<Page["items"][]> {
  const found: Page["items"][] = [];
  let cursor: string | undefined;
  do {
    const { items, next } = await page(cursor);
    found.push(items);
    cursor = next || undefined;
  } while (cursor !== undefined && found.length < 50);
  return found;
}
