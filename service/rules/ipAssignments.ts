// IP addresses of an App (docs/interface.md#ip-addresses).
import type { contract } from "../../api/index.ts";
import { rfc3339 } from "../time/clock.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, IpRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { count } from "./counts.ts";
import { freeIn, sharedIn } from "../runtime/loopback.ts";
import { appOf, openAppOf, ownOrg } from "./find.ts";
import { regionOf } from "./platform.ts";
import type { Input, Rules } from "./rule.ts";

type Group = typeof contract.ipAssignments;

const simulatedSharedV4 = "198.18.0.1";

// ASSUMED: all Apps with a shared address have the same one. Those assigned before the service had loopback addresses stay as they are.
const sharedV4 = ({ loopbackBlock }: Context): string =>
  loopbackBlock === undefined ? simulatedSharedV4 : sharedIn(loopbackBlock);

const mostOfApp = 500;

const isV6 = (type: string): boolean => type.endsWith("v6");
const isEgress = (type: string): boolean => type.startsWith("egress");

function shown({ ip, type, region, service_name, network, network_org, created_at }: IpRow) {
  return {
    ip,
    region,
    shared: type === "shared_v4",
    ...(service_name === null ? {} : { service_name }),
    ...(isEgress(type) ? { egress: true } : {}),
    ...(network === null ? {} : { network: { name: network, org_slug: network_org ?? "" } }),
    created_at: rfc3339(created_at),
  };
}

/**
 * A free address. Where Machines can be reached, a `v4` is a loopback address at which the proxy answers. Others are from ranges
 * reserved for tests and documentation, so they are unreachable.
 */
function freeAddress(context: Context, type: string): string {
  const { ids, loopbackBlock, random, store } = context;
  const isTaken = (ip: string): boolean =>
    store.get("SELECT 1 FROM ips WHERE ip = ? AND type <> 'shared_v4'", ip) !== undefined;
  if (type === "v4" && loopbackBlock !== undefined) {
    const [high = 0, low = 0] = random(2);
    const ip = freeIn(loopbackBlock, high * 256 + low, isTaken);
    if (ip !== undefined) return ip;
  } else
    for (let tries = 0; tries < 1000; tries++) {
      const ip = isV6(type) ? ids.ipv6(type === "private_v6") : ids.ipv4();
      if (ip !== simulatedSharedV4 && !isTaken(ip)) return ip;
    }
  throw refuse(422, "no address is free", "insufficient_capacity");
}

interface Asked {
  readonly type: string;
  readonly region: string;
  readonly service_name: string | null;
  readonly network: string | null;
  readonly network_org: string | null;
}

function give(context: Context, app: AppRow, asked: Asked): IpRow {
  const ip = asked.type === "shared_v4" ? sharedV4(context) : freeAddress(context, asked.type);
  const row = { app: app.id, ip, ...asked, created_at: context.clock.now() };
  context.store.insert("ips", row);
  touch(context, app.id);
  return { number: 0, ...row };
}

function assign(input: Input<Group["assign"]>) {
  const { context, body } = input;
  const app = openAppOf(input);
  const { type } = body;
  // ASSUMED: assigning an IP address without a `type` is 400: every field is optional in the interface, and there is no sensible default.
  if (type === undefined)
    throw refuse(
      400,
      'invalid type, got nothing, allowed are "v4", "v6", "shared_v4", "private_v6", "egress_v4", "egress_v6", "egress_pair"',
    );
  const global = body.region === undefined || body.region === "global";
  const region = global ? "global" : regionOf(context, body.region).code;
  // ASSUMED: an App has at most 500 IP addresses, so that it cannot use up all of them.
  if (count(context, "SELECT count(*) AS n FROM ips WHERE app = ?", app.id) >= mostOfApp)
    throw refuse(422, `Validation failed: an app has at most ${mostOfApp} IP addresses`);
  // ASSUMED: an App has one shared address; a request for a second is 422.
  if (type === "shared_v4" && context.store.get("SELECT 1 FROM ips WHERE app = ? AND type = 'shared_v4'", app.id))
    throw refuse(422, "Validation failed: the app has a shared IPv4 address already");
  const ofNetwork = type === "private_v6";
  const network_org = ofNetwork ? ownOrg(input, body.org_slug ?? "personal").slug : null;
  const asked: Asked = {
    type,
    region,
    service_name: body.service_name ?? null,
    network: ofNetwork ? (body.network ?? app.network) : null,
    network_org,
  };
  if (type !== "egress_pair") return shown(give(context, app, asked));
  const v4 = give(context, app, { ...asked, type: "egress_v4" });
  const v6 = give(context, app, { ...asked, type: "egress_v6" });
  return { ...shown(v4), ip: null, ip_pair: { v4: v4.ip, v6: v6.ip } };
}

/** The rules of the IP address operations. */
export const ipAssignments: Rules<Group> = {
  list(input) {
    const found = input.context.store.all<IpRow>("SELECT * FROM ips WHERE app = ? ORDER BY number", appOf(input).id);
    return { ips: found.map(shown) };
  },

  assign,

  release(input) {
    const { context, params } = input;
    const app = appOf(input);
    const found = context.store.get<IpRow>(
      "SELECT * FROM ips WHERE app = ? AND ip = ?",
      app.id,
      params.ip.toLowerCase(),
    );
    // ASSUMED: releasing an address that the App does not have is 404 (docs/interface.md#ip-addresses).
    if (!found) throw refuse(404, "ip address not found");
    context.store.run("DELETE FROM ips WHERE number = ?", found.number);
    touch(context, app.id);
  },
};
