// Three organizations on one service. `acme` has one object of every kind; every name that only some may see has a canary.
import type { PathParameter } from "../../api/index.ts";
import { operationsById } from "../../service/faults/faults.ts";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { ManualClock, startAdmin, type Service } from "../../service/index.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { callerWith, withApp, type Call } from "../service/client.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { makeCertificate } from "../support/certificates.ts";

/** A route as Fastify has it. */
export interface Registered {
  readonly method: string;
  readonly url: string;
  /** The operation of the contract. */
  readonly operation: string | undefined;
}

/** Makes servers, and returns their routes too, in the order in which the servers were made. */
async function withRoutes<T>(make: () => Promise<T>): Promise<{ made: T; routes: readonly (readonly Registered[])[] }> {
  const routes: Registered[][] = [];
  const created = (message: unknown): void => {
    const of: Registered[] = [];
    routes.push(of);
    const { fastify } = message as { readonly fastify: Service["app"] };
    fastify.addHook("onRoute", ({ method, url, config }) => {
      for (const one of [method].flat()) {
        // Some routes of the console have a name in the audit, and are no operation of the contract.
        const operation = config?.operation;
        of.push({ method: one, url, operation: operationsById.has(operation ?? "") ? operation : undefined });
      }
    });
  };
  subscribe("fastify.initialization", created);
  try {
    return { made: await make(), routes };
  } finally {
    unsubscribe("fastify.initialization", created);
  }
}

async function start() {
  const app = await withApp({
    clock: new ManualClock(),
    console: "write",
    runtime: (host) => Object.assign(new SimulatedRuntime(host), { async *logs() {} }),
  });
  const admin = await startAdmin({ service: app.service, listen: { host: "127.0.0.1", port: 0 } });
  afterThisTest(() => admin.close());
  return { ...app, admin };
}

/** Creates everything of `acme`, and returns the parameters that name it. */
async function fill(call: Call): Promise<Readonly<Record<string, string>>> {
  // Each App has a rollout.
  const made = async (path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await call("POST", path, body, headers);
    if (answer.status >= 300) throw new Error(`${path} was answered with ${answer.status} ${answer.text}`);
    return answer.body;
  };
  for (const name of ["shop", "other"]) {
    await made("/apps", { name, org_slug: "acme", network: `of-${name}` });
    await made(
      `/apps/${name}/machines`,
      { config: { image: "nginx", metadata: { canary: `canary-${name}` } } },
      { "pulumi-update": "attack" },
    );
    await made(`/apps/${name}/volumes`, { name: `canary_${name}` });
  }
  const { id: machine } = (await call("GET", "/apps/shop/machines")).body[0];
  const { id: volume } = (await call("GET", "/apps/shop/volumes")).body[0];
  const { ip } = await made("/apps/shop/ip_assignments", { type: "v4" });
  await made("/apps/shop/certificates/acme", { hostname: "canary-shop.example.com" });
  await made("/apps/shop/certificates/custom", {
    hostname: "canary-shop.example.com",
    ...makeCertificate({ hosts: ["canary-shop.example.com"] }),
  });
  await made("/apps/shop/secrets/CANARY", { value: "canary-shop" });
  await made("/apps/shop/secretkeys/CANARY/generate", { type: "nacl_secretbox" });
  await made(`/apps/shop/machines/${machine}/lease`, { ttl: 60 });
  const cluster = await made("/postgres", { org_slug: "acme", region: "ams", plan: "basic", name: "canary-acme" });
  const { id } = cluster.data;
  await made(`/postgres/${id}/attachments`, { app_name: "shop" });
  await made(`/postgres/${id}/users`, { username: "canary-acme", role: "reader" });
  await made(`/postgres/${id}/databases/fly-db/extensions`, { name: "vector" });
  await made(`/postgres/${id}/backups`, { type: "full" });
  const backups = (await call("GET", `/postgres/${id}/backups`)).body.data;
  const params: Readonly<Record<PathParameter | "backup" | "version", string>> = {
    ...{ app_name: "shop", machine_id: machine, volume_id: volume, org_slug: "acme", key: "canary", ip },
    ...{ hostname: "canary-shop.example.com", secret_name: "CANARY" },
    ...{ postgres_cluster_id: id, database: "fly-db", extension: "vector", username: "canary-acme" },
    backup: backups[0].id,
    version: (await call("GET", `/apps/shop/machines/${machine}`)).body.version,
  };
  return params;
}

/** The service with its organizations, and all its routes. */
export async function openShop() {
  const {
    made: app,
    routes: [ofService = [], ofAdmin = []],
  } = await withRoutes(start);
  const call = callerWith(app, "owner", { slug: "acme" });
  const params = await fill(call);
  const stranger = callerWith(app, "of-strangers", { slug: "strangers" });
  await stranger("POST", "/apps", { name: "theirs", org_slug: "strangers" });
  for (const [of, name] of [
    [stranger, "theirs"],
    [app.call, "web"],
  ] as const)
    await of(
      "POST",
      `/apps/${name}/machines`,
      { config: { image: "nginx", metadata: { canary: `canary-${name}` } } },
      { "pulumi-update": "attack" },
    );
  return { ...app, call, params, ofService, ofAdmin };
}

/** What {@link openShop} returns. */
export type Shop = Awaited<ReturnType<typeof openShop>>;
