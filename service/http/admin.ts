// The admin listener: faults, the audit log, images, the DNS and the clock, for tests of programs in other processes.
// It has a separate address that only this computer can reach and a separate token. It is off by default.
import { hash } from "node:crypto";
import { rmSync } from "node:fs";
import { isIP, type AddressInfo } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { imageReference } from "../../api/image.ts";
import { hostname } from "../../api/names.ts";
import { createServer, sendError } from "./app.ts";
import { connectionLimits, listenOnLocalhost } from "./connections.ts";
import { isSame } from "../crypto/isSame.ts";
import { declaredFault, type Faults, type PlannedFault } from "../faults/faults.ts";
import { authenticate } from "./authenticate.ts";
import { refuse } from "../refusal.ts";
import { listImage } from "../rules/images.ts";
import { setDns } from "../runtime/dns.ts";
import type { Audit } from "./audit.ts";
import type { Context } from "../context.ts";
import { writePrivately } from "../store/privateFile.ts";
import type { Bearer } from "../store/tokens.ts";
import { read } from "../validation/read.ts";

// ASSUMED: the admin listener has 100 connections at once. They come from the files that the service keeps for itself.
const mostConnections = 100;

/** The parts of a service that its administrator works on. */
interface Administered {
  readonly context: Context;
  readonly faults: Faults;
  readonly audit: Audit;
  /** Folder of the data; undefined in memory. */
  readonly folder: string | undefined;
}

/** Options of an admin listener. */
export interface AdminOptions {
  readonly service: Administered;
  /** Address to listen at; it must belong to this computer. Port 0 picks a free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Generated if omitted. */
  readonly token?: string;
}

/** A running admin listener. */
export interface Admin {
  readonly url: string;
  readonly token: string;
  /** Stops listening and removes the token's file. The service continues. */
  close(): Promise<void>;
}

/** Path of the admin token of a running service. */
export const adminTokenFile = (folder: string): string => join(folder, "admin-token");

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));

const administrator: Bearer = {
  id: "admin",
  name: null,
  org: 0,
  slug: "admin",
  owner: "admin",
  ...{ apps: null, network: null, role: "own" },
  expiresAt: null,
};

const sameToken = (one: string, other: string): boolean => isSame(hash("sha256", one), hash("sha256", other));

const image = z.strictObject({
  reference: imageReference,
  digest: z.string(),
  labels: z.record(z.string(), z.string()).optional(),
});

const addresses = z.array(z.string()).optional();
const dnsAnswer = z.strictObject({
  a: addresses,
  aaaa: addresses,
  cname: addresses,
  acme_challenge_cname: z.string().optional(),
  ownership_txt: z.string().optional(),
  soa: z.string().optional(),
});

const month = 31 * 24 * 3600_000;
const clockMove = z.strictObject({ advanceMs: z.int().min(0).max(month) });
const number = z.coerce.number<string>().int().min(0);
const auditQuery = z.strictObject({ after: number.default(0), limit: number.min(1).max(10_000).default(1000) });

const shown = ({ id, fault, seen }: PlannedFault) => ({ id, seen, ...fault });

/** Starts an admin listener. Throws when other computers can reach the address, or when it is in use. */
export async function startAdmin({ service, listen, token: given }: AdminOptions): Promise<Admin> {
  const { host, port } = listen;
  if (!isLoopback(host))
    throw new Error(
      `the admin listener needs an address that only this computer can reach, got ${JSON.stringify(host)}`,
    );
  const { context, faults, audit, folder } = service;
  const { store, clock } = context;
  audit.keep();
  const token = given ?? context.ids.accessToken();
  let count = 0;
  const limits = connectionLimits({ most: mostConnections });
  const app = createServer({ requestId: () => `admin-${(++count).toString(36).padStart(6, "0")}`, limits });
  app.decorateRequest("caller", null as never);
  const check = authenticate({
    context,
    tokens: { find: (sent) => (sameToken(sent, token) ? administrator : undefined) },
    allowedHosts: new Set(),
  });
  app.addHook("onRequest", (request, reply, done) => done(check(request, reply)));
  app.setErrorHandler(sendError);
  app.setNotFoundHandler((_request, reply) => reply.status(404).send({ error: "no such route" }));

  app.get("/faults", () => ({ faults: faults.planned.map(shown) }));
  app.post("/faults", (request, reply) => {
    const [id] = faults.add(read(declaredFault, request.body));
    return reply.status(201).send({ id });
  });
  app.delete("/faults", (_request, reply) => {
    faults.clear();
    return reply.status(204).send();
  });
  app.delete<{ Params: { id: string } }>("/faults/:id", (request, reply) => {
    if (!faults.remove(request.params.id)) throw refuse(404, "no such fault");
    return reply.status(204).send();
  });

  app.get("/audit", (request) => {
    const { after, limit } = read(auditQuery, request.query);
    return { first: audit.first, last: audit.last, entries: audit.after(after, limit) };
  });

  app.get("/images", () => {
    const rows = store.all<{ reference: string; digest: string; labels: string }>(
      "SELECT * FROM images ORDER BY reference",
    );
    return { images: rows.map(({ labels, ...row }) => ({ ...row, labels: JSON.parse(labels) as object })) };
  });
  app.put("/images", async (request, reply) => {
    const { labels = {}, ...listed } = read(image, request.body);
    await store.write(() => listImage(store, { ...listed, labels }));
    return reply.status(204).send();
  });

  app.put<{ Params: { hostname: string } }>("/dns/:hostname", async (request, reply) => {
    const { hostname: name } = read(z.object({ hostname }), request.params);
    const answer = read(dnsAnswer, request.body);
    await store.write(() => setDns(store, name, answer as Parameters<typeof setDns>[2]));
    return reply.status(204).send();
  });
  app.delete<{ Params: { hostname: string } }>("/dns/:hostname", async (request, reply) => {
    await store.write(() => setDns(store, request.params.hostname, undefined));
    return reply.status(204).send();
  });

  app.post("/clock", (request) => {
    clock.advance(read(clockMove, request.body).advanceMs);
    return { now: clock.now() };
  });

  await app.listen({ host, port });
  if (host === "localhost") await listenOnLocalhost(app.server);
  faults.isOpen = true;
  const file = folder === undefined ? undefined : adminTokenFile(folder);
  if (file !== undefined) writePrivately(file, `${token}\n`);
  const bound = app.server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound.port}`,
    token,
    async close() {
      faults.isOpen = false;
      if (file !== undefined) rmSync(file, { force: true });
      await app.close();
    },
  };
}
