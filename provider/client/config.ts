// Provider configuration: stack configuration first, then MACHINES_* variables. Checked before anything is sent.
import { MachinesError } from "./errors.ts";
import { identityIn, type IdentitySource } from "./identity.ts";

/** How many Machines of an App a run may interrupt at a time: a number, or a share of all in percent. */
export type MaxUnavailable = { readonly machines: number } | { readonly percent: number };

/** How the provider reaches the service. */
export interface Config {
  /** Base URL without a trailing slash or `/v1`, or `local`: the embedded service. */
  readonly endpoint: string;
  /** Access token; undefined with the embedded service, which has its own. */
  readonly token: string | undefined;
  /** The source of the token, for messages. */
  readonly tokenSource: string;
  /** Where the run of CI has its identity token, which takes the place of an access token; undefined if it needs none. */
  readonly identity: IdentitySource | undefined;
  /** Slug of the organization in which Apps are created. */
  readonly organization: string;
  /** Name of the header with a lease's nonce. */
  readonly leaseHeader: string;
  /** The number of retries after a failure that allows them. */
  readonly retries: number;
  /** Milliseconds until an answer must arrive. */
  readonly requestTimeout: number;
  /** Whether objects whose App is gone are forgotten even when no App of the run is found (R8). */
  readonly allowMissingApps: boolean;
  /** Whether a preview fails when the service does not answer; otherwise it warns. */
  readonly previewRequiresService: boolean;
  /** Whether the state keeps the Machines and volumes of fleets as views. */
  readonly fleetViews: boolean;
  /** How many Machines of an App an update may interrupt at a time. */
  readonly maxUnavailable: MaxUnavailable;
  /** Seconds that a Machine without checks has to keep running after its start. */
  readonly minHealthySeconds: number;
}

/** One configuration key, with its names in programs and in the environment. */
export interface ConfigKey {
  readonly description: string;
  readonly environment: string;
  readonly secret?: boolean;
  readonly type: "string" | "integer" | "boolean";
  readonly default?: string | number | boolean;
}

/** Every configuration key; the schema and the docs are generated from it. */
export const configKeys = {
  endpoint: {
    description:
      "Base URL of the Machines Control Service, or `local` for the embedded one, whose data is in the folder that `MACHINES_SERVICE_DATA` names.",
    environment: "MACHINES_ENDPOINT",
    type: "string",
  },
  token: {
    description: "Access token. Not needed with `local`.",
    environment: "MACHINES_TOKEN",
    secret: true,
    type: "string",
  },
  identity: {
    description:
      "How a run without an access token signs in. `auto`: with the identity token of its workflow or environment, of GitHub Actions or in `MACHINES_ID_TOKEN` (GitLab, Pulumi ESC), which the service exchanges for a token of 15 minutes. `off`: never.",
    environment: "MACHINES_IDENTITY",
    type: "string",
    default: "auto",
  },
  organization: {
    description:
      "Slug of the organization in which Apps are created. `personal` is the token's own organization, whatever its slug is.",
    environment: "MACHINES_ORGANIZATION",
    type: "string",
    default: "personal",
  },
  leaseHeader: {
    description: "Name of the header that carries a lease's nonce. Some platforms use another name.",
    environment: "MACHINES_LEASE_HEADER",
    type: "string",
    default: "svc-machine-lease-nonce",
  },
  retries: {
    description: "How often a request is repeated after a failure that allows it, 0 to 20.",
    environment: "MACHINES_RETRIES",
    type: "integer",
    default: 5,
  },
  requestTimeoutSeconds: {
    description: "Seconds that a request may take, 1 to 600.",
    environment: "MACHINES_REQUEST_TIMEOUT_SECONDS",
    type: "integer",
    default: 30,
  },
  allowMissingApps: {
    description:
      "Forgets objects whose App is gone, even if no App of the run is found. Set it for one run only, after you have checked the endpoint and the organization.",
    environment: "MACHINES_ALLOW_MISSING_APPS",
    type: "boolean",
    default: false,
  },
  previewRequiresService: {
    description:
      "Makes a preview fail when the service does not answer. Otherwise the preview warns that it has not checked names, regions, capacity and organization. Set it in CI.",
    environment: "MACHINES_PREVIEW_REQUIRES_SERVICE",
    type: "boolean",
    default: false,
  },
  fleetViews: {
    description:
      "Lists each Machine and each volume of a Fleet as a resource below it, in previews, updates and the state. The plugin alone can. Set it to false and run `pulumi up` before you rename a Fleet with an alias, or set `retainOnDelete`.",
    environment: "MACHINES_FLEET_VIEWS",
    type: "boolean",
    default: false,
  },
  maxUnavailable: {
    description:
      "How many Machines of an App an `up` may interrupt at a time: a number, or a percentage such as `25%`; at least one. A third when left out. `100%` updates all at once.",
    environment: "MACHINES_MAX_UNAVAILABLE",
    type: "string",
  },
  minHealthySeconds: {
    description:
      "Seconds that a Machine must keep running after its start if `up` does not wait for its checks, 0 to 3600. A Machine's own `minHealthySeconds` takes precedence.",
    environment: "MACHINES_MIN_HEALTHY_SECONDS",
    type: "integer",
    default: 3,
  },
} as const satisfies Record<string, ConfigKey>;

const wrong = (message: string): never => {
  throw new MachinesError("configuration", message);
};

/** Reads and checks the configuration. `get` returns a key of the stack configuration, without its namespace. */
export function readConfig(
  get: (key: string) => string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Config {
  const text = (name: keyof typeof configKeys): { value: string | undefined; source: string } => {
    const stacked = get(name);
    if (stacked !== undefined && stacked !== "") return { value: stacked, source: `machines:${name}` };
    const { environment } = configKeys[name];
    return { value: env[environment] || undefined, source: environment };
  };
  const integer = (
    name: "retries" | "requestTimeoutSeconds" | "minHealthySeconds",
    least: number,
    most: number,
  ): number => {
    const { value, source } = text(name);
    if (value === undefined) return configKeys[name].default;
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    return number >= least && number <= most
      ? number
      : wrong(`${source}: got ${JSON.stringify(value)}; must be a whole number from ${least} to ${most}`);
  };
  const boolean = (name: "allowMissingApps" | "previewRequiresService" | "fleetViews"): boolean => {
    const { value, source } = text(name);
    if (!["true", "false", undefined].includes(value))
      wrong(`${source}: got ${JSON.stringify(value)}; must be true or false`);
    return value === "true";
  };
  const maxUnavailable = (): MaxUnavailable => {
    const { value, source } = text("maxUnavailable");
    if (value === undefined) return { percent: 100 / 3 };
    const [, digits, percent] = /^(\d+)(%?)$/.exec(value) ?? [];
    const number = Number(digits);
    if (digits === undefined || number < 1 || (percent === "%" && number > 100))
      wrong(`${source}: got ${JSON.stringify(value)}; must be a whole number from 1, or a percentage from 1% to 100%`);
    return percent === "%" ? { percent: number } : { machines: number };
  };
  const endpoint = readEndpoint(text("endpoint"));
  const token = text("token");
  const signsIn = text("identity");
  if (!["auto", "off", undefined].includes(signsIn.value))
    wrong(`${signsIn.source}: got ${JSON.stringify(signsIn.value)}; must be auto or off`);
  const isNeeded = token.value === undefined && endpoint !== "local";
  const identity = isNeeded && signsIn.value !== "off" ? identityIn(env) : undefined;
  if (isNeeded && identity === undefined) {
    wrong(
      "no access token: set it with `pulumi config set --secret machines:token` or in MACHINES_TOKEN; in GitHub Actions, `permissions: id-token: write` needs no stored one",
    );
  }
  if (token.value !== undefined && !/^[\u0021-\u007e]+( [\u0021-\u007e]+)*$/.test(token.value)) {
    wrong(
      `${token.source}: the token contains a line break or another character that no token has; copy the whole token, and nothing else`,
    );
  }
  const header = text("leaseHeader").value ?? configKeys.leaseHeader.default;
  if (!/^[A-Za-z0-9-]{1,80}$/.test(header))
    wrong(`machines:leaseHeader: got ${JSON.stringify(header)}; must be the name of an HTTP header`);
  const organization = text("organization").value ?? configKeys.organization.default;
  if (!/^[A-Za-z0-9_-]{1,80}$/.test(organization))
    wrong(`machines:organization: got ${JSON.stringify(organization)}; must be the slug of an organization`);
  return {
    endpoint,
    token: token.value,
    tokenSource:
      token.value !== undefined ? token.source : identity ? "this workflow's identity" : "the embedded service",
    identity,
    organization,
    leaseHeader: header,
    retries: integer("retries", 0, 20),
    requestTimeout: integer("requestTimeoutSeconds", 1, 600) * 1000,
    allowMissingApps: boolean("allowMissingApps"),
    previewRequiresService: boolean("previewRequiresService"),
    fleetViews: boolean("fleetViews"),
    maxUnavailable: maxUnavailable(),
    minHealthySeconds: integer("minHealthySeconds", 0, 3600),
  };
}

/** The canonical spelling of an endpoint, or `local`. @throws MachinesError `configuration` if it is none */
export function readEndpoint({ value, source }: { value: string | undefined; source: string }): string {
  if (value === undefined) {
    return wrong(
      "no endpoint: set the service's base URL with `pulumi config set machines:endpoint https://…` (or in MACHINES_ENDPOINT), " +
        "or use the embedded service with `pulumi config set machines:endpoint local`",
    );
  }
  if (value === "local") return value;
  if (!/^https?:\/\//i.test(value)) {
    return wrong(`${source}: got ${JSON.stringify(value)}; must begin with http:// or https://, or be "local"`);
  }
  const url = URL.canParse(value) ? new URL(value) : wrong(`${source}: got ${JSON.stringify(value)}, which is no URL`);
  if (url.username || url.password)
    return wrong(`${source}: must not contain a user or password; set the token as machines:token`);
  if (url.search || url.hash) return wrong(`${source}: got ${JSON.stringify(value)}; must not hold "?" or "#"`);
  return baseOf(url);
}

const baseOf = (url: URL): string => (url.origin + url.pathname).replace(/\/+$/, "").replace(/\/v1$/, "");

// Names of this computer in a URL; a service that listens at all of its addresses can be reached by these too.
const ownHost =
  /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\])$/;

/** The warning if the token would be sent unencrypted to another computer. */
export function exposureOf({ endpoint, token, identity, tokenSource }: Config): string | undefined {
  if (
    (token === undefined && identity === undefined) ||
    !endpoint.startsWith("http://") ||
    ownHost.test(new URL(endpoint).hostname)
  )
    return undefined;
  return `the token from ${tokenSource} goes to ${endpoint} unencrypted: everyone on the network path can read and use it. Set an endpoint that begins with https://`;
}

/** The canonical spelling of an endpoint; undefined if it is not one. */
export const normalEndpoint = (value: string): string | undefined =>
  value === "local" ? value : URL.canParse(value) ? baseOf(new URL(value)) : undefined;
