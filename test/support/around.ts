// Objects that resources require, created through the API.
import type { TestService } from "./startService.ts";

/** Sends a request with the service's token and returns the parsed body. @throws when it fails. */
export async function send<T = Record<string, unknown>>(
  service: Pick<TestService, "url" | "token">,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  const response = await fetch(service.url + path, {
    method,
    headers: {
      authorization: `Bearer ${service.token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Creates an App and returns its name. */
export async function makeApp(service: TestService, name: string): Promise<string> {
  await send(service, "POST", "/v1/apps", { name, org_slug: "personal" });
  return name;
}

/** Creates a volume and returns its id. */
export async function makeVolume(service: TestService, app: string, region: string): Promise<string> {
  const { id } = await send<{ id: string }>(service, "POST", `/v1/apps/${app}/volumes`, {
    name: "data",
    region,
    size_gb: 1,
  });
  return id;
}

/** Creates a Machine and returns its id. */
export async function makeMachine(service: TestService, app: string, body: Record<string, unknown>): Promise<string> {
  const { id } = await send<{ id: string }>(service, "POST", `/v1/apps/${app}/machines`, body);
  return id;
}

/** Creates a cluster and returns its id. */
export async function makeCluster(
  service: Pick<TestService, "url" | "token">,
  name: string,
  body: Record<string, unknown> = {},
): Promise<string> {
  const wanted = { name, org_slug: "personal", region: "fra", plan: "basic", ...body };
  const { data } = await send<{ data: { id: string } }>(service, "POST", "/v1/postgres", wanted);
  return data.id;
}

/** Creates a backup of a cluster and returns its id. */
export async function makeBackup(service: Pick<TestService, "url" | "token">, cluster: string): Promise<string> {
  const path = `/v1/postgres/${cluster}/backups`;
  return (await send<{ data: { id: string } }>(service, "POST", path, { type: "full" })).data.id;
}

/** Creates an object at most once per service. */
export function once<T>(make: (service: TestService) => Promise<T>): (service: TestService) => Promise<T> {
  const made = new WeakMap<TestService, Promise<T>>();
  return (service) => {
    const known = made.get(service) ?? make(service);
    made.set(service, known);
    return known;
  };
}
