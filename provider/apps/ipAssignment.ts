// IP addresses of an App (docs/interface.md#ip-addresses).
import { isIPv6 } from "node:net";
import { z } from "zod";
import { ipType } from "../../api/ipAssignments.ts";
import { appName, regionCode } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { askIps, listIps, type Ip } from "../client/listCache.ts";
import { releaseKey, createExactlyOnce } from "../core/exactlyOnce.ts";
import { isNotFound, MachinesError } from "../client/errors.ts";
import { namedNetwork } from "./app.ts";
import { pathId } from "../core/ids.ts";
import { computed, defineResource, type Call, type Problem } from "../core/resource.ts";
import { bareId } from "../../api/names.ts";
import { regionProblem } from "../shared/region.ts";

const inputs = z.object({
  app: required(appName, "App the address leads to: the `id` of an App. Changing it replaces the address.", {
    format: "reference",
  }),
  type: required(
    ipType,
    "Kind of address: `v4`, `v6`, `shared_v4` (one for each App, shared with others) or `private_v6` (on a private network). For connections that the App opens: `egress_v4`, `egress_v6`, or `egress_pair` for both. Changing it replaces the address.",
  ),
  region: computed(regionCode).describe(
    "Region the address leads to; `global` when left out. Changing it replaces the address.",
  ),
  network: computed(z.string()).describe(
    "For `private_v6`: the private network; the App's own when left out. Changing it replaces the address.",
  ),
  organization: computed(z.string()).describe(
    "For `private_v6`: slug of the organization that owns the network; your own when left out. Changing it replaces the address.",
  ),
  serviceName: z.string().min(1).optional().describe("Service the address is for. Changing it replaces the address."),
});

const outputs = z.object({
  ip: required(z.string(), "The address; for an `egress_pair`, both as `v4,v6`."),
  v4: optional(z.string(), "The IPv4 address, if it is or has one."),
  v6: optional(z.string(), "The IPv6 address, if it is or has one."),
  region: optional(z.string(), "Region the address leads to, or `global`."),
  network: optional(z.string(), "Private network of a `private_v6`."),
  organization: optional(z.string(), "Organization that owns the network of a `private_v6`."),
  shared: required(z.boolean(), "Whether other Apps share the address."),
  egress: required(z.boolean(), "Whether it is for connections the App opens."),
  createdAt: optional(z.string(), "RFC 3339 time of the assignment."),
});

type Inputs = z.output<typeof inputs>;
type Type = Inputs["type"];

export const ipAssignment = defineResource({
  name: "IpAssignment",
  summary: "An IP address of an App, or a pair of them.",
  inputs,
  outputs,
  id: pathId("app", "ip"),
  list: {
    objects: async ({ api }, appName) =>
      (await askIps(api, appName)).map(({ ip, createdAt }) => ({ parts: { app: appName, ip }, createdAt })),
    shownBy: "ipAssignments.list",
    deletedBy: "ipAssignments.release",
  },
  replaceOn: ["app", "type", "region", "network", "organization", "serviceName"],
  // An App has one shared address: the old one has to be deleted first.
  sharesWith: (old, next) => old["type"] === "shared_v4" && next["type"] === "shared_v4" && old["app"] === next["app"],
  validate,
  previewChecks: [
    { needs: ["region"], ask: ({ region }, api) => (region === "global" ? noProblem : regionProblem(api, region)) },
    { needs: ["type", "app"], ask: ({ type, app }, api) => sharedProblem(api, type, bareId(app)) },
  ],

  async create({ inputs: wanted, owner, ...call }) {
    const assigned = await assign(call, owner, wanted);
    return toLive(wanted.app, assigned, assigned.map(({ ip }) => ip).join(","), wanted.organization);
  },

  async read({ id, state, api }) {
    const wanted = id.ip.toLowerCase().split(",");
    const among = (ips: readonly Ip[]) => ips.filter(({ ip }) => wanted.includes(ip.toLowerCase()));
    let found = among(await listIps(api, id.app));
    // There is no request for a single address. An address that is missing from a list must be missing from a fresh
    // list too.
    if (found.length < wanted.length) found = among(await askIps(api, id.app));
    return found.length === 0 ? undefined : toLive(id.app, found, id.ip, state?.organization);
  },

  // Every input replaces: there is nothing to send.
  async update({ id, old, api }) {
    const found = (await listIps(api, id.app)).filter(({ ip }) => id.ip.split(",").includes(ip));
    return toLive(id.app, found, id.ip, old.organization);
  },

  async delete({ id, api, run }) {
    const gone: unknown[] = [];
    const addresses = id.ip.split(",");
    for (const ip of addresses) {
      try {
        await api.ipAssignments.release({ appName: id.app, ip });
        releaseKey({ api, run }, placeOf(id.app), ip);
      } catch (error) {
        // Half of a pair may be gone already; the other half must still be released.
        if (!isNotFound(error) || addresses.length === 1) throw error;
        gone.push(error);
      }
    }
    if (gone.length === addresses.length) throw gone[0];
  },
});

const noProblem = Promise.resolve(undefined);

const placeOf = (appName: string): string => `addresses of App ${appName}`;

/** The kind of an address in a list. One address of a pair is shown as an address of its own. */
function typeOf({ ip, shared, egress, network }: Ip): Type {
  const family = isIPv6(ip) ? "v6" : "v4";
  if (shared) return "shared_v4";
  if (egress) return `egress_${family}`;
  return network || ip.startsWith("fdaa:") ? "private_v6" : family;
}

/** State of an address, or of the remaining part of a pair: then its type is no longer that of a pair. */
function toLive(app: string, found: readonly Ip[], ip: string, organization: string | undefined) {
  const [first] = found;
  const half = (isWanted: boolean) => found.find((one) => isIPv6(one.ip) === isWanted)?.ip;
  return {
    app,
    ip,
    type: found.length > 1 ? "egress_pair" : first && typeOf(first),
    v4: half(false),
    v6: half(true),
    region: first?.region || undefined,
    network: first?.network?.name || undefined,
    // An organization never changes, and the answer may have the real slug for "personal". The written value is kept.
    organization: organization ?? (first?.network?.orgSlug || undefined),
    serviceName: first?.serviceName || undefined,
    shared: first?.shared ?? false,
    egress: first?.egress ?? false,
    createdAt: first?.createdAt,
  };
}

function assign(call: Call, owner: string | undefined, wanted: Inputs): Promise<readonly Ip[]> {
  const { api } = call;
  const { app: appName, organization: orgSlug, ...rest } = wanted;
  const kinds: readonly Type[] = wanted.type === "egress_pair" ? ["egress_v4", "egress_v6"] : [wanted.type];
  const fits = (ip: Ip): boolean =>
    kinds.includes(typeOf(ip)) &&
    (ip.region || "global") === (wanted.region || "global") &&
    (ip.serviceName ?? "") === (wanted.serviceName ?? "") &&
    (wanted.network === undefined || ip.network?.name === wanted.network);
  return createExactlyOnce<Ip, readonly Ip[]>(call, {
    what: `a ${wanted.type} of App ${appName}`,
    owner,
    place: placeOf(appName),
    name: wanted.type,
    unique: false,
    // What an address shows does not say whether its network was named, or whose it is.
    fixedInputs: {
      network: namedNetwork(wanted.network),
      organization: orgSlug ?? api.config.organization,
    },
    list: () => askIps(api, appName),
    keyOf: ({ ip }) => ip,
    keysOf: (assigned) => assigned.map(({ ip }) => ip),
    createdAt: ({ createdAt }) => createdAt,
    send: async () => {
      const { ip, ipPair, ...answer } = await api.ipAssignments.assign({ appName, body: { ...rest, orgSlug } });
      const reported = ipPair ? [ipPair.v4, ipPair.v6] : [ip];
      const found = reported.flatMap((one) => (one ? [{ ...answer, ip: one }] : []));
      // An answer without an address is settled like a lost one.
      return found.length === kinds.length ? found : undefined;
    },
    pick(fresh) {
      const found = fresh.filter(fits);
      if (found.length > kinds.length || (found.length === 2 && new Set(found.map(typeOf)).size === 1))
        throw new MachinesError(
          "ambiguous",
          `the answer to the assignment of a ${wanted.type} to App ${appName} was lost, and others assigned such addresses at the same time: ${found.map(({ ip }) => ip).join(", ")}. It is unknown which of them is ours: release or import the one that no program knows, then run up again.`,
        );
      return found.length === kinds.length ? found : undefined;
    },
  });
}

function validate({ type, network, organization }: Partial<Inputs>): Problem[] {
  if (type === undefined || type === "private_v6") return [];
  const message = `is for private_v6 alone, and this is a ${type}`;
  return [
    ...(network === undefined ? [] : [{ path: ["network"], message }]),
    ...(organization === undefined ? [] : [{ path: ["organization"], message }]),
  ];
}

async function sharedProblem(api: Api, type: Type, appName: string): Promise<string | undefined> {
  if (type !== "shared_v4") return undefined;
  try {
    const existing = (await listIps(api, appName)).find(({ shared }) => shared);
    return (
      existing && `App ${appName} has a shared address already, ${existing.ip}, and no App has two; import that one`
    );
  } catch (error) {
    // An App that does not exist yet has none.
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
