// The tools `list` and `show`: the objects of a service.
import { z } from "zod";
import { bareId } from "../../api/names.ts";
import type { Api } from "../../provider/client/api.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { certificatePages, everyApp, orgMachinePages, orgVolumePages } from "../../provider/client/pages.ts";
import { secretVariables, type KnownSecrets } from "./known.ts";
import { addTool, place, type Session } from "./tool.ts";
import { certificateView, fleetsOf, hostnameView, ipView, machineView, orgMachineView, volumeView } from "./views.ts";
import type { Workspace } from "./workspace.ts";

const kinds = ["app", "machine", "fleet", "volume", "cluster", "certificate", "ip_address"] as const;

/** A kind of objects. */
type Kind = (typeof kinds)[number];

const kind = z
  .enum(kinds)
  .describe(
    "`fleet`: equal Machines that a program declares together; `cluster`: of Postgres; `certificate`: of a hostname.",
  );

const item = z.looseObject({
  id: z.string().describe("Identifies it for `show`: a name, an id, a hostname or an address."),
  app: z.string().optional().describe("App that it belongs to."),
  name: z.string().optional(),
  region: z.string().optional(),
  state: z.string().optional(),
});

/** The result of `list`. */
interface Listed {
  readonly items: z.output<typeof item>[];
  readonly notes: string[];
  /** Whether the service was not read to its end. */
  readonly isPart: boolean;
}

const filters = {
  app: z.string().min(1).max(100).optional().describe("Only objects of this App."),
  region: z.string().min(1).max(20).optional().describe("Only objects in this region."),
  state: z.string().min(1).max(40).optional().describe("Only objects in this state, such as `started` or `failed`."),
  name: z.string().min(1).max(100).optional().describe("Only objects whose name or id contains this text."),
};
type Filters = { readonly [Name in keyof typeof filters]?: string | undefined };

// ASSUMED: an assistant that needs more than 5,000 Machines or 100 Apps at a time is better off with the client for scripts.
const [mostRead, mostApps] = [5000, 100];

/** Adds the tools. */
export function addReadingTools(session: Session, workspace: Workspace): void {
  addTool(session, {
    name: "list",
    title: "List objects",
    description:
      "Lists the apps, Machines, fleets, volumes, Postgres clusters, certificates or IP addresses of the service, with state, region and size. " +
      "Use `show` for one of them, and `problems` for what is wrong.",
    input: z.strictObject({
      ...{ kind, ...filters },
      limit: z.int().min(1).max(200).default(50).describe("Objects in the answer, 1 to 200."),
      ...place,
    }),
    output: z.object({
      kind,
      items: z.array(item),
      more: z.boolean().describe("Whether there are more objects than in this answer."),
      notes: z.array(z.string()).describe("What the answer leaves out, and why."),
    }),
    narrow: "set a smaller limit, or filter by app, region, state or name",
    async run({ kind: of, limit, stack, folder, ...wanted }) {
      const api = await workspace.service({ stack, folder });
      const { items, notes, isPart } = await listed[of](api, wanted);
      const { app, region, state, name } = wanted;
      const found = items.filter(
        (one) =>
          (app === undefined || of === "cluster" || one.app === app || (of === "app" && one.id === app)) &&
          (region === undefined || one.region === region || isIn(one["regions"], region)) &&
          (state === undefined || one.state === state || isIn(one["states"], state)) &&
          (name === undefined || `${one.name ?? ""} ${one.id}`.includes(name)),
      );
      return { kind: of, items: found.slice(0, limit), more: isPart || found.length > limit, notes };
    },
  });
  addTool(session, {
    name: "show",
    title: "Show one object",
    description:
      "Shows one object with its details: of a Machine its image, checks, services, mounts and latest events with exit codes. " +
      "Values of variables and contents of files are never shown, only their names.",
    input: z.strictObject({
      kind,
      id: z
        .string()
        .min(1)
        .max(300)
        .describe("As `list` has it; of a Machine, a volume or a fleet also `app/id`; of a Machine also its name."),
      app: filters.app.describe("App of a Machine, volume, certificate or IP address, unless `id` names it."),
      ...place,
    }),
    output: z.object({ kind, object: z.record(z.string(), z.unknown()).describe("Its fields.") }),
    narrow: "list the parts of it instead",
    async run({ kind: of, id, app, stack, folder }) {
      const api = await workspace.service({ stack, folder });
      return { kind: of, object: plain(await shown[of](api, id, app, session.secrets)) };
    },
  });
}

/** Whether an object of counts has a name. */
const isIn = (counts: unknown, name: string): boolean =>
  typeof counts === "object" && counts !== null && Object.hasOwn(counts, name);

/** As JSON has it: without what is undefined. */
const plain = (value: object): Record<string, unknown> => JSON.parse(JSON.stringify(value)) as Record<string, unknown>;

const items = (all: readonly object[]): z.output<typeof item>[] => all.map(plain) as z.output<typeof item>[];

const orgOf = ({ config }: Api) => ({ orgSlug: config.organization });

/** Reads pages up to the largest number that is read. */
async function upTo<Page, One>(
  pages: AsyncGenerator<Page>,
  of: (page: Page) => readonly One[],
): Promise<{ readonly found: One[]; readonly isPart: boolean }> {
  const found: One[] = [];
  for await (const page of pages) {
    found.push(...of(page));
    if (found.length >= mostRead) return { found, isPart: true };
  }
  return { found, isPart: false };
}

const partNote = (what: string, isPart: boolean): string[] =>
  isPart ? [`Only the ${what} that changed longest ago were read, ${mostRead} of them: filter by region.`] : [];

async function machinesOf(api: Api, { region }: Filters) {
  const { found, isPart } = await upTo(orgMachinePages(api, { ...orgOf(api), region }), ({ machines }) => machines);
  return { found, isPart, notes: partNote("Machines", isPart) };
}

/** The Apps to look into: the one that is named, or the first ones. */
async function appsOf(api: Api, { app }: Filters): Promise<{ readonly names: string[]; readonly notes: string[] }> {
  if (app !== undefined) return { names: [(await api.apps.get({ appName: app })).name], notes: [] };
  const all = (await everyApp(api, orgOf(api))).map(({ name }) => name);
  const notes =
    all.length > mostApps ? [`Only the first ${mostApps} of ${all.length} Apps were read: name an app.`] : [];
  return { names: all.slice(0, mostApps), notes };
}

const perApp =
  (read: (api: Api, app: string) => Promise<readonly object[]>) =>
  async (api: Api, wanted: Filters): Promise<Listed> => {
    const { names, notes } = await appsOf(api, wanted);
    const all: object[] = [];
    for (const name of names) all.push(...(await read(api, name)));
    return { items: items(all), notes, isPart: notes.length > 0 };
  };

const listed: Readonly<Record<Kind, (api: Api, wanted: Filters) => Promise<Listed>>> = {
  async app(api) {
    const all = await everyApp(api, orgOf(api));
    const found = all.map(({ name, status, machineCount, volumeCount, network, httpUrl, httpsUrl }) => ({
      ...{ id: name, name, state: status, machines: machineCount, volumes: volumeCount, network, httpUrl, httpsUrl },
    }));
    return { items: items(found), notes: [], isPart: false };
  },
  async machine(api, wanted) {
    const { found, isPart, notes } = await machinesOf(api, wanted);
    return { items: items(found.map(orgMachineView)), notes, isPart };
  },
  async fleet(api, wanted) {
    const { found, isPart, notes } = await machinesOf(api, {});
    return {
      items: items(fleetsOf(found.filter(({ appName }) => wanted.app === undefined || appName === wanted.app))),
      notes,
      isPart,
    };
  },
  async volume(api, { region }) {
    const pages = orgVolumePages(api, { ...orgOf(api), region });
    const { found, isPart } = await upTo(pages, ({ volumes }) => volumes);
    return {
      items: items(found.map((one) => volumeView(one.appName, one))),
      notes: partNote("volumes", isPart),
      isPart,
    };
  },
  async cluster(api, { app }) {
    const { data } = await api.postgres.list(orgOf(api));
    const found = data
      .map(({ id, name, region, plan, status, attachedApps = [], createdAt }) => ({
        ...{ id, name, region, plan, state: status, createdAt },
        apps: attachedApps.flatMap(({ name: one }) => one ?? []),
      }))
      .filter(({ apps }) => app === undefined || apps.includes(app));
    return { items: items(found), notes: [], isPart: false };
  },
  certificate: perApp(async (api, app) => {
    const { found } = await upTo(certificatePages(api, { appName: app }), ({ certificates }) => certificates);
    return found.map((one) => hostnameView(app, one));
  }),
  ip_address: perApp(async (api, app) =>
    (await api.ipAssignments.list({ appName: app })).ips.map((one) => ipView(app, one)),
  ),
};

/** The App and the rest of an id. @throws MachinesError `invalid-input` if no App is named */
function within(id: string, app: string | undefined, what: string): { readonly appName: string; readonly own: string } {
  const [first = "", ...rest] = id.split("/");
  if (rest.length > 0) return { appName: first, own: rest.join("/") };
  if (app !== undefined) return { appName: bareId(app), own: id };
  throw new MachinesError(
    "invalid-input",
    `app: is missing; name the App of the ${what}, or write the id as app/${id}`,
  );
}

/** A Machine by its id or its name. */
export async function findMachine(api: Api, id: string, app: string | undefined) {
  const { appName, own } = within(id, app, "Machine");
  if (/^[0-9a-f]{14}$/.test(own)) return { appName, machine: await api.machines.get({ appName, machineId: own }) };
  const all = await api.machines.list({ appName, summary: true });
  const found = all.find(({ name }) => name === own);
  if (found) return { appName, machine: await api.machines.get({ appName, machineId: found.id }) };
  const names = all.slice(0, 10).map(({ name, id: other }) => name ?? other);
  throw new MachinesError(
    "invalid-input",
    `id: got ${JSON.stringify(own)}, and App ${appName} has no such Machine; it has ${names.join(", ") || "none"}${all.length > 10 ? ", …" : ""}`,
  );
}

type Show = (api: Api, id: string, app: string | undefined, secrets: KnownSecrets) => Promise<object>;

const shown: Readonly<Record<Kind, Show>> = {
  async app(api, id) {
    const app = await api.apps.get({ appName: id });
    const [machines, { ips }, { certificates }] = await Promise.all([
      api.machines.list({ appName: id, summary: true }),
      api.ipAssignments.list({ appName: id }),
      api.certificates.list({ appName: id, limit: 50 }),
    ]);
    const states = new Map<string, number>();
    for (const { state } of machines) states.set(state, (states.get(state) ?? 0) + 1);
    return {
      ...{
        id: app.name,
        name: app.name,
        state: app.status,
        network: app.network,
        httpUrl: app.httpUrl,
        httpsUrl: app.httpsUrl,
      },
      ...{ machines: machines.length, machinesByState: Object.fromEntries(states), volumes: app.volumeCount },
      addresses: ips.map(({ ip }) => ip),
      hostnames: certificates.map(({ hostname, status }) => ({ hostname, state: status })),
    };
  },
  async machine(api, id, app, secrets) {
    const { appName, machine } = await findMachine(api, id, app);
    secrets.add(secretVariables(machine.config));
    return machineView(appName, machine);
  },
  async fleet(api, id, app) {
    const { appName, own } = within(id, app, "fleet");
    const { found } = await machinesOf(api, {});
    const members = found.filter((one) => one.appName === appName);
    const fleets = fleetsOf(members);
    const fleet = fleets.find(({ name }) => name === own);
    if (!fleet)
      throw new MachinesError(
        "invalid-input",
        `id: got ${JSON.stringify(own)}, and App ${appName} has no such fleet; it has ${fleets.map(({ name }) => name).join(", ") || "none"}`,
      );
    const views = members.map(orgMachineView).filter((one) => one.fleet === own);
    return {
      ...fleet,
      members: views.slice(0, 100).map(({ id: member, name, region, state }) => ({ id: member, name, region, state })),
    };
  },
  async volume(api, id, app) {
    const { appName, own } = within(id, app, "volume");
    return volumeView(appName, await api.volumes.get({ appName, volumeId: own }));
  },
  async cluster(api, id) {
    const { data } = await api.postgres.get({ postgresClusterId: bareId(id) });
    const {
      name,
      status,
      region,
      plan,
      pgMajorVersion: version,
      attachedApps = [],
      createdAt,
      storageUsedBytes,
    } = data;
    return {
      ...{
        id: data.id,
        name,
        state: status,
        region,
        plan,
        version,
        diskSizeGb: data.diskSizeGb,
        replicas: data.replicas,
      },
      ...{ storageUsedBytes, createdAt, apps: attachedApps.flatMap(({ name: one }) => one ?? []) },
    };
  },
  async certificate(api, id, app) {
    const { appName, own } = within(id, app, "certificate");
    return certificateView(appName, await api.certificates.get({ appName, hostname: own }));
  },
  async ip_address(api, id, app) {
    const { appName, own } = within(id, app, "IP address");
    const { ips } = await api.ipAssignments.list({ appName });
    const found = ips.find(({ ip }) => ip === own);
    if (found) return ipView(appName, found);
    throw new MachinesError("invalid-input", `id: got ${JSON.stringify(own)}, and App ${appName} has no such address`);
  },
};
