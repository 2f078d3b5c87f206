// Fills a service from a seed file. Existing objects, found by name, stay as they are, so seeding can be repeated.
import { isLeaving, type VolumeState } from "../states/volumeStates.ts";
import { listImage } from "../rules/images.ts";
import { setDns, type DnsAnswer } from "../runtime/dns.ts";
import { ensureOrg, findOrg } from "../store/tokens.ts";
import { reachOrCreate, type Reached, type Request } from "./client.ts";
import { withTokens, type SendFor } from "./orgRequests.ts";
import { Problem } from "./problem.ts";
import { readSeed, type Seed, type SeedApp } from "./seedFile.ts";

const kinds = ["organizations", "images", "hostnames", "apps", "secrets", "volumes", "machines"] as const;

/** For every kind, the numbers of created objects (images and hostnames: set) and of existing ones. */
export type Tallies = Readonly<Record<(typeof kinds)[number], { created: number; existing: number }>>;

interface Volume {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly state: VolumeState;
  readonly attached_machine_id: string | null;
}

type NewMachine = NonNullable<SeedApp["machines"]>[number];

/** Sends a request for a place in the file. A refusal ends the seeding, except for 404 and 403 of a GET. */
type Ask = (where: string, request: Request) => Promise<{ readonly status: number; readonly body: unknown }>;

// Longer than any seeding takes. The token is revoked at its end.
const tokenMs = 3600_000;

function count(tally: Tallies[keyof Tallies], there: boolean): boolean {
  tally[there ? "existing" : "created"]++;
  return there;
}

/** Fills the running service of a data folder, or a new one in a folder without any. Throws a Problem at the first refusal. */
export async function seed(folder: string, file: string): Promise<Tallies> {
  const plan = readSeed(file);
  const tallies = Object.fromEntries(kinds.map((kind) => [kind, { created: 0, existing: 0 }])) as Tallies;
  const service = await reachOrCreate(folder);
  const { store } = service;
  try {
    await store.write(() => fillStore(store, file, plan, tallies));
    await withTokens(service, { name: "seed", role: "own", lifetimeMs: tokenMs }, async (send) => {
      for (const [i, app] of (plan.apps ?? []).entries()) {
        const org = app.org ?? "personal";
        await fillApp(`apps[${i}]`, { ...app, org }, asker(send, org, file), tallies);
      }
    });
    return tallies;
  } finally {
    await service.close();
  }
}

function fillStore(store: Reached["store"], file: string, plan: Seed, tallies: Tallies): void {
  for (const { slug, name } of plan.orgs ?? []) {
    count(tallies.organizations, findOrg(store, slug) !== undefined);
    ensureOrg(store, slug, name);
  }
  for (const { labels = {}, ...image } of plan.images ?? []) {
    listImage(store, { ...image, labels });
    count(tallies.images, false);
  }
  for (const { hostname, records } of plan.dns ?? []) {
    setDns(store, hostname, records as DnsAnswer);
    count(tallies.hostnames, false);
  }
  for (const [i, { org = "personal" }] of (plan.apps ?? []).entries()) {
    if (findOrg(store, org)) continue;
    throw new Problem(
      `seed: ${file}: invalid apps[${i}].org, got ${JSON.stringify(org)}, must be an organization in orgs or an existing one`,
    );
  }
}

const asker =
  (send: SendFor, org: string, file: string): Ask =>
  async (where, request) => {
    const answer = await send(org, request);
    if (answer.status < 300 || (request.method === "GET" && (answer.status === 404 || answer.status === 403)))
      return answer;
    const { error } = (answer.body ?? {}) as { readonly error?: string };
    throw new Problem(`seed: ${file}: ${where} was refused with ${answer.status}: ${error ?? "no reason was given"}`);
  };

async function fillApp(where: string, app: SeedApp & { org: string }, ask: Ask, tallies: Tallies): Promise<void> {
  const { org, name, network, secrets = {}, volumes = [], machines = [] } = app;
  const path = `/apps/${name}`;
  const found = await ask(where, { method: "GET", path });
  if (found.status === 403)
    throw new Problem(`seed: ${where}.name, got ${JSON.stringify(name)}, is an App of another organization`);
  if (!count(tallies.apps, found.status === 200)) {
    const body = { name, org_slug: org, ...(network === undefined ? {} : { network }) };
    await ask(where, { method: "POST", path: "/apps", body });
  }
  const fresh = (await ask(where, { method: "GET", path: `${path}/secrets` })).body as {
    readonly secrets: readonly { readonly name: string }[];
  };
  const there = new Set(fresh.secrets.map((secret) => secret.name));
  const values = Object.entries(secrets).filter(([secret]) => !count(tallies.secrets, there.has(secret)));
  if (values.length > 0)
    await ask(`${where}.secrets`, {
      method: "POST",
      path: `${path}/secrets`,
      body: { values: Object.fromEntries(values) },
    });
  await fillVolumes(where, path, volumes, ask, tallies);
  await fillMachines(where, path, machines, new Set(volumes.map((volume) => volume.name)), ask, tallies);
}

async function listVolumes(where: string, path: string, ask: Ask): Promise<Volume[]> {
  const all = (await ask(where, { method: "GET", path: `${path}/volumes` })).body as readonly Volume[];
  return all.filter(({ state }) => !isLeaving(state));
}

async function fillVolumes(
  where: string,
  path: string,
  volumes: NonNullable<SeedApp["volumes"]>,
  ask: Ask,
  tallies: Tallies,
): Promise<void> {
  if (volumes.length === 0) return;
  // Several volumes may share a name: each existing one counts for one in the file.
  const there = await listVolumes(where, path, ask);
  for (const [i, body] of volumes.entries()) {
    const { name, region } = body;
    const at = there.findIndex((volume) => volume.name === name && (region ?? volume.region) === volume.region);
    if (count(tallies.volumes, at >= 0)) there.splice(at, 1);
    else await ask(`${where}.volumes[${i}]`, { method: "POST", path: `${path}/volumes`, body });
  }
}

async function fillMachines(
  where: string,
  path: string,
  machines: readonly NewMachine[],
  named: ReadonlySet<string>,
  ask: Ask,
  tallies: Tallies,
): Promise<void> {
  if (machines.length === 0) return;
  const listed = (await ask(where, { method: "GET", path: `${path}/machines?summary=true` })).body;
  const there = new Set((listed as readonly { readonly name: string }[]).map(({ name }) => name));
  const volumes = await listVolumes(where, path, ask);
  const free = volumes.filter((volume) => volume.attached_machine_id === null);
  for (const [i, machine] of machines.entries()) {
    if (count(tallies.machines, there.has(machine.name))) continue;
    const place = `${where}.machines[${i}]`;
    const body = { ...machine, config: mounting(place, machine, named, free) };
    await ask(place, { method: "POST", path: `${path}/machines`, body });
  }
}

/** The configuration with ids instead of names of volumes, which are then taken. */
function mounting(
  where: string,
  { region, config }: NewMachine,
  named: ReadonlySet<string>,
  free: Volume[],
): NewMachine["config"] {
  if (!config.mounts) return config;
  const mounts = config.mounts.map((mount, i) => {
    if (!named.has(mount.volume)) return mount;
    const at = free.findIndex(({ name, region: its }) => name === mount.volume && (region ?? its) === its);
    const [volume] = at < 0 ? [] : free.splice(at, 1);
    if (volume) return { ...mount, volume: volume.id };
    throw new Problem(
      `seed: invalid ${where}.config.mounts[${i}].volume, got ${JSON.stringify(mount.volume)}, no volume of that name is free${region === undefined ? "" : ` in ${region}`}`,
    );
  });
  return { ...config, mounts };
}
