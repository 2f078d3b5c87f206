// The configuration of a Machine (docs/interface.md#machine-configuration), the versioned part of it. Pulumi's
// camelCase types are derived from here.
import { z } from "zod";
import { answerHeaderProblem } from "./answerHeaders.ts";
import { duration, named, optional, required } from "./schema.ts";
import { stopSignal } from "./signals.ts";

// ASSUMED: the service may add values to these. It documents them as plain text, and nothing here depends on which it is.
const open = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values).meta({ open: values });

const text = z.string();
const flag = z.boolean();
const count = z.int().min(0);
const port = z.int().min(1).max(65535);
const texts = z.array(z.string());
const textMap = z.record(z.string(), z.string());
const absolutePath = z.string().regex(/^\//, "must be an absolute path");

const guest = named(
  "MachineGuest",
  z.object({
    cpu_kind: optional(z.enum(["shared", "performance"]), "Kind of CPU: `shared` or `performance`.", {
      wireDefault: "shared",
    }),
    cpus: optional(z.int().min(1), "Number of CPUs: 1, 2, 4, 6 or 8; `performance` also 10, 12, 14 or 16.", {
      wireDefault: 1,
    }),
    memory_mb: optional(
      z.int().min(1),
      "Memory in MiB, a multiple of 256: 256 to 2048 for each shared CPU, 2048 to 8192 for each performance CPU.",
      { wireDefault: 256 },
    ),
    max_memory_mb: optional(z.int().min(1), "Ceiling in MiB for the memory limit operations."),
    gpus: optional(count, "Number of GPUs."),
    gpu_kind: optional(text, "Kind of GPU: `a10`, `l40s`, `a100-pcie-40gb` or `a100-sxm4-80gb`.", {
      open: ["a10", "l40s", "a100-pcie-40gb", "a100-sxm4-80gb"],
    }),
    host_dedication_id: optional(text, "Dedicated host group the Machine is placed in."),
    kernel_args: optional(texts, "Arguments for the guest's kernel."),
    required_host_features: optional(texts, "Features the host must offer."),
    persist_rootfs: optional(
      z.enum(["never", "always", "restart"]),
      "Whether the root file system outlives the Machine's runs.",
      {
        deprecationMessage: "Use `rootfs.persist`.",
      },
    ),
  }),
);

const header = named(
  "HttpHeader",
  z.object({
    name: required(text, "Name of the header."),
    values: required(texts, "Values of the header.", { sensitive: true }),
  }),
);

const checkFields = {
  type: optional(z.enum(["tcp", "http"]), "Kind of check: `tcp` or `http`."),
  port: optional(port, "Port to connect to; a service check uses the service's internal port when left out."),
  interval: optional(duration(), 'Time between two checks, for example `"15s"`.'),
  timeout: optional(duration(), 'Time after which a connection counts as failed, for example `"2s"`.'),
  grace_period: optional(duration(), 'Time after the start before the first check, for example `"5s"`.'),
  method: optional(text, "HTTP method of an `http` check."),
  path: optional(text, "Path an `http` check requests."),
  protocol: optional(z.enum(["http", "https"]), "Protocol of an `http` check."),
  tls_server_name: optional(text, "Host name for the certificate of an `https` check."),
  tls_skip_verify: optional(flag, "Whether an `https` check accepts any certificate."),
  headers: optional(z.array(header), "Headers an `http` check sends."),
};

const serviceCheck = z.object(checkFields);

const check = z.object({
  ...checkFields,
  kind: optional(
    z.enum(["informational", "readiness"]),
    "Whether a failing check keeps traffic away (`readiness`) or only reports.",
    {
      wireDefault: "informational",
    },
  ),
});

const replayCache = z.object({
  path_prefix: optional(text, "Paths the entry is for."),
  ttl_seconds: optional(count, "Lifetime of an entry in seconds."),
  type: optional(z.enum(["cookie", "header"]), "What the entry is keyed on."),
  name: optional(text, "Name of the cookie or header."),
  allow_bypass: optional(flag, "Whether a request may bypass the cache."),
});

const servicePort = z.object({
  port: optional(port, "Public port; set either this or `startPort` with `endPort`."),
  start_port: optional(port, "First port of a range."),
  end_port: optional(port, "Last port of a range."),
  handlers: optional(
    z.array(open(["http", "tls", "tcp", "pg_tls", "proxy_proto"])),
    "What the proxy does with a connection, in order.",
  ),
  force_https: optional(flag, "Whether HTTP is redirected to HTTPS.", { wireDefault: false }),
  http_options: optional(
    z.object({
      compress: optional(flag, "Whether answers are compressed."),
      h2_backend: optional(flag, "Whether the Machine speaks HTTP/2 without TLS."),
      idle_timeout: optional(count, "Seconds after which an idle connection is closed."),
      headers_read_timeout: optional(count, "Seconds in which the headers must have been read."),
      response: optional(
        z.object({
          headers: optional(z.record(z.string(), z.unknown()), "Headers added to every answer; `false` removes one."),
          pristine: optional(flag, "Whether the proxy adds no headers of its own."),
        }),
        "What the proxy does to answers.",
      ),
      replay_cache: optional(z.array(replayCache), "Where replayed requests are remembered."),
    }),
    "Options of the `http` handler.",
  ),
  tls_options: optional(
    z.object({
      alpn: optional(texts, "Protocols offered by ALPN."),
      versions: optional(z.array(z.enum(["TLSv1.2", "TLSv1.3"])), "TLS versions offered."),
      default_self_signed: optional(flag, "Whether a self-signed certificate answers unknown hosts."),
    }),
    "Options of the `tls` handler.",
  ),
  proxy_proto_options: optional(
    z.object({ version: optional(text, "Version of the PROXY protocol.", { wireDefault: "v1" }) }),
    "Options of the `proxy_proto` handler.",
  ),
});

const service = z.object({
  protocol: required(z.enum(["tcp", "udp"]), "Transport protocol: `tcp` or `udp`."),
  internal_port: required(port, "Port the process listens on inside the Machine."),
  ports: optional(z.array(servicePort), "Public ports and their handlers."),
  concurrency: optional(
    z.object({
      type: optional(z.enum(["connections", "requests"]), "What is counted.", { wireDefault: "connections" }),
      soft_limit: optional(count, "Count above which the proxy prefers other Machines.", { wireDefault: 20 }),
      hard_limit: optional(count, "Count at which the proxy sends no more to the Machine."),
    }),
    "How much the proxy sends to one Machine.",
  ),
  autostart: optional(flag, "Whether the proxy starts a stopped Machine for a request."),
  autostop: optional(
    z.union([z.enum(["off", "stop", "suspend"]), z.boolean()]),
    'What happens to an idle Machine: `"off"` (or false), `"stop"` (or true), `"suspend"`.',
    { format: "autostop", wireDefault: "off", open: ["off", "stop", "suspend"] },
  ),
  min_machines_running: optional(count, "Machines of the primary region that autostop leaves running.", {
    wireDefault: 0,
  }),
  checks: optional(z.array(serviceCheck), "Checks of this service."),
  force_instance_key: optional(text, "Key by which requests name this Machine."),
  force_instance_description: optional(text, "Description of the instance key."),
});

const mount = z.object({
  volume: required(
    text,
    "Id of the volume; in a program, the `id` of a Volume resource. Changing it replaces the Machine.",
    {
      format: "reference",
    },
  ),
  path: required(absolutePath, "Absolute path in the Machine."),
  name: optional(text, "Name of the mount; containers refer to it."),
  encrypted: optional(flag, "Whether the volume is encrypted.", { wireDefault: true }),
  size_gb: optional(z.int().min(1), "Size in GB of a volume made for the mount."),
  extend_threshold_percent: optional(
    z.int().min(0).max(100),
    "Use in percent from which the platform extends the volume.",
  ),
  add_size_gb: optional(z.int().min(1), "GB added by an extension."),
  add_size_percent: optional(z.int().min(1), "Percent added by an extension."),
  min_add_size_gb: optional(z.int().min(1), "Smallest extension in GB.", { wireDefault: 1 }),
  size_gb_limit: optional(z.int().min(0), "Size in GB that extensions stop at."),
});

const envFrom = named(
  "EnvFrom",
  z.object({
    env_var: required(text, "Variable that is set."),
    field_ref: required(
      z.enum(["id", "version", "app_name", "private_ip", "region", "image"]),
      "Field of the Machine it is set from.",
    ),
  }),
);

const processSecret = named(
  "ProcessSecret",
  z.object({
    env_var: required(text, "Variable that is set."),
    name: optional(text, "Name of the App secret; the variable's name when left out."),
  }),
);

const commandFields = {
  exec: optional(texts, "Command that replaces entrypoint and cmd."),
  entrypoint: optional(texts, "Entrypoint in place of the image's."),
  cmd: optional(texts, "Arguments in place of the image's."),
};

const processFields = {
  ...commandFields,
  user: optional(text, "User the process runs as."),
  env: optional(textMap, "Environment of the process.", { sensitive: true }),
  env_from: optional(z.array(envFrom), "Variables set from fields of the Machine."),
  secrets: optional(z.array(processSecret), "App secrets the process sees."),
};

const process = z.object({
  ...processFields,
  ignore_app_secrets: optional(flag, "Whether only the secrets listed here are seen.", { wireDefault: false }),
});

const file = named(
  "MachineFile",
  z.object({
    guest_path: required(absolutePath, "Absolute path of the file in the Machine."),
    raw_value: optional(
      text,
      "Contents in base64; mark them as secret in the program if they are. Set one of this, `secretName` and `imageConfig`.",
      { sensitive: true, long: true, presence: true },
    ),
    secret_name: optional(text, "App secret that holds the contents in base64."),
    image_config: optional(text, "Image whose configuration is the contents.", { format: "image" }),
    mode: optional(count, "Permission bits as chmod takes them."),
  }),
);

const restart = named(
  "MachineRestart",
  z.object({
    policy: optional(
      z.enum(["no", "always", "on-failure", "spot-price"]),
      "When the main process is started again after it ended.",
      {
        wireDefault: "on-failure",
      },
    ),
    max_retries: optional(count, "Restarts after failures before the Machine is left stopped."),
    gpu_bid_price: optional(z.number(), "Highest price for a spot GPU."),
  }),
);

const stopConfig = named(
  "MachineStopConfig",
  z.object({
    signal: optional(stopSignal, "Signal that asks the process to stop.", { wireDefault: "SIGINT" }),
    timeout: optional(duration(), "Time until it is killed, up to 300 s.", { wireDefault: "5s" }),
  }),
);

const httpHealthcheck = z.object({
  port: optional(port, "Port to connect to."),
  method: optional(text, "HTTP method."),
  path: optional(text, "Path to request."),
  scheme: optional(z.enum(["http", "https"]), "`http` or `https`."),
  headers: optional(z.array(header), "Headers to send."),
  tls_server_name: optional(text, "Host name for the certificate."),
  tls_skip_verify: optional(flag, "Whether any certificate is accepted."),
});

const healthcheck = z.object({
  name: required(text, "Name, unique in the container."),
  kind: optional(z.enum(["readiness", "liveness"]), "What the check decides."),
  interval: optional(count, "Seconds between two checks."),
  timeout: optional(count, "Seconds a check may take."),
  grace_period: optional(count, "Seconds after the start before the first check."),
  success_threshold: optional(count, "Successes in a row that make the container healthy."),
  failure_threshold: optional(count, "Failures in a row that make it unhealthy."),
  unhealthy: optional(z.enum(["stop"]), "What is done to an unhealthy container."),
  http: optional(httpHealthcheck, "Check by HTTP."),
  tcp: optional(z.object({ port: optional(port, "Port to connect to.") }), "Check by connecting."),
  exec: optional(z.object({ command: optional(texts, "Command that must succeed.") }), "Check by a command."),
});

const container = z.object({
  name: required(text, "Name, unique in the Machine."),
  image: required(text, "Image of the container.", { format: "image" }),
  ...processFields,
  files: optional(z.array(file), "Files written before the container starts."),
  restart: optional(restart, "When the container is started again."),
  stop: optional(stopConfig, "How the container is stopped."),
  depends_on: optional(
    z.array(
      z.object({
        name: required(text, "Container that must come first."),
        condition: optional(z.enum(["exited_successfully", "healthy", "started"]), "What it must have reached."),
      }),
    ),
    "Containers this one waits for.",
  ),
  mounts: optional(
    z.array(
      z.object({
        name: required(text, "Name of a mount of the Machine."),
        path: required(absolutePath, "Path in the container."),
      }),
    ),
    "Mounts of the Machine the container sees.",
  ),
  healthchecks: optional(z.array(healthcheck), "Checks of the container."),
});

const configVolume = z.object({
  name: required(text, "Name mounts refer to."),
  temp_dir: optional(
    z.object({
      storage_type: optional(z.enum(["disk", "memory"]), "Where the directory lives."),
      size_mb: optional(count, "Size in MiB."),
    }),
    "An empty directory.",
  ),
  image: optional(text, "Image whose contents are mounted.", { format: "image" }),
});

/** Configuration of a Machine. An update replaces all of it and creates a new version (docs/interface.md#versions). */
export const machineConfig = z.object({
  image: required(text, "Image reference in a registry.", { format: "image" }),
  env: optional(textMap, "Environment variables. Mark a value as secret in the program to hide it in outputs.", {
    sensitive: true,
  }),
  guest: optional(guest, "CPU and memory."),
  services: optional(z.array(service), "What the platform's proxy makes public."),
  checks: optional(z.record(z.string(), check), "Checks of the Machine by name."),
  mounts: optional(
    z.array(mount).max(1, "a Machine mounts at most one volume"),
    "The volume the Machine mounts; one at most.",
  ),
  processes: optional(z.array(process), "Processes to run in place of the image's."),
  restart: optional(restart, "When the main process is started again after it ended."),
  auto_destroy: optional(flag, "Whether the Machine destroys itself once its main process has ended.", {
    wireDefault: false,
  }),
  metadata: optional(textMap, "Metadata by key. Keys that others set are kept."),
  files: optional(z.array(file), "Files written before the Machine starts."),
  init: optional(
    z.object({
      ...commandFields,
      tty: optional(flag, "Whether the process gets a terminal."),
      swap_size_mb: optional(count, "Swap in MiB."),
      kernel_args: optional(texts, "Arguments for the guest's kernel."),
    }),
    "What runs first in the Machine.",
  ),
  metrics: optional(
    z.object({
      port: required(port, "Port metrics are read from."),
      path: required(text, "Path metrics are read from."),
      https: optional(flag, "Whether they are read by HTTPS."),
    }),
    "Where the platform reads metrics.",
  ),
  statics: optional(
    z.array(
      z.object({
        guest_path: required(text, "Path of the files in the Machine."),
        url_prefix: required(text, "Path they are served under."),
        tigris_bucket: optional(text, "Bucket that holds the files."),
        index_document: optional(text, "File served for a directory."),
      }),
    ),
    "Files the proxy serves itself.",
  ),
  standbys: optional(
    z.array(z.string().meta({ format: "reference" })),
    "Ids of Machines this one stands by for; only without services.",
  ),
  stop_config: optional(stopConfig, "How the Machine is stopped."),
  schedule: optional(open(["hourly", "daily", "weekly", "monthly"]), "How often the Machine is started."),
  dns: optional(
    z.object({
      skip_registration: optional(flag, "Whether the Machine is left out of the internal DNS."),
      nameservers: optional(texts, "Name servers in place of the platform's."),
      searches: optional(texts, "Search domains."),
      options: optional(
        z.array(z.object({ name: optional(text, "Name of the option."), value: optional(text, "Its value.") })),
        "Options of the resolver.",
      ),
      dns_forward_rules: optional(
        z.array(
          z.object({
            basename: optional(text, "Domain that is forwarded."),
            addr: optional(text, "Server it is forwarded to."),
          }),
        ),
        "Domains forwarded to other servers.",
      ),
      hostname: optional(text, "Host name of the Machine."),
      hostname_fqdn: optional(text, "Full host name of the Machine."),
    }),
    "Name resolution in the Machine.",
  ),
  containers: optional(z.array(container), "Containers to run; open to some organizations only."),
  volumes: optional(z.array(configVolume), "Directories and images that containers mount."),
  rootfs: optional(
    z.object({
      persist: optional(z.enum(["never", "restart", "always"]), "When the root file system is kept."),
      size_gb: optional(count, "Size in GB."),
    }),
    "Root file system.",
  ),
  cache_drive: optional(z.object({ size_mb: optional(count, "Size in MiB.") }), "Drive for caches."),
  spot: optional(
    z.object({
      max_price_fraction: optional(z.number().gt(0).max(1), "Highest share of the full price, above 0, up to 1."),
    }),
    "Run on spare capacity.",
    { presence: true },
  ),
  size: optional(text, "Named size such as `shared-cpu-1x`; exclusive with `guest`.", {
    deprecationMessage: "Use `guest`.",
  }),
  disable_machine_autostart: optional(flag, "Whether the proxy never starts the Machine.", {
    deprecationMessage: "Use `services[].autostart`.",
  }),
});

/** Configuration of a Machine in its HTTP form. */
export type MachineConfig = z.infer<typeof machineConfig>;

/** A violation of a rule about several fields (docs/interface.md#limits, docs/interface.md#machine-configuration). */
export interface ConfigProblem {
  /** Path of HTTP names: `["guest", "memory_mb"]`. */
  readonly path: readonly (string | number)[];
  /** A name in the map at the path, which the user has chosen. */
  readonly key?: string;
  readonly message: string;
}

const cpuCounts = { shared: [1, 2, 4, 6, 8], performance: [1, 2, 4, 6, 8, 10, 12, 14, 16] };
const memoryPerCpu = { shared: [256, 2048], performance: [2048, 8192] } as const;
const namedSize = /^(shared-cpu|performance)-(\d+)x$/;

/** The resources of a Machine with a configuration: by its guest, its named size, or the smallest size. */
export function sizeOf({ guest: g, size }: Pick<MachineConfig, "guest" | "size">): {
  readonly kind: "shared" | "performance";
  readonly cpus: number;
  readonly memoryMb: number;
} {
  const [, kindName, count = "1"] = namedSize.exec(size ?? "") ?? [];
  const kind = g?.cpu_kind ?? (kindName === "performance" ? "performance" : "shared");
  const cpus = g?.cpus ?? Number(count);
  return { kind, cpus, memoryMb: g?.memory_mb ?? memoryPerCpu[kind][0] * cpus };
}

/** Problems of a configuration that its types do not show. Values that are unknown at preview are passed as undefined. */
export function configProblems(config: MachineConfig): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const say = (path: ConfigProblem["path"], message: string, key?: string) =>
    problems.push({ path, message, ...(key === undefined ? {} : { key }) });
  const { guest: g, size } = config;
  if (g && size) say(["size"], "is exclusive with guest");
  const sized = size === undefined ? undefined : namedSize.exec(size);
  if (
    size !== undefined &&
    !(sized && cpuCounts[sized[1] === "performance" ? "performance" : "shared"].includes(Number(sized[2])))
  ) {
    say(
      ["size"],
      `${JSON.stringify(size)} is no known size; sizes are shared-cpu-{1,2,4,6,8}x and performance-{1,2,4,6,8,10,12,14,16}x`,
    );
  }
  if (g) {
    const { kind, cpus, memoryMb: memory } = sizeOf({ guest: g });
    const [least, most] = memoryPerCpu[kind];
    if (!cpuCounts[kind].includes(cpus))
      say(["guest", "cpus"], `got ${cpus}; ${kind} CPUs come in ${cpuCounts[kind].join(", ")}`);
    else if (memory < least * cpus) say(["guest", "memory_mb"], `got ${memory}; minimum required ${least * cpus} MiB`);
    else if (memory > most * cpus) say(["guest", "memory_mb"], `got ${memory}; cannot exceed ${most * cpus} MiB`);
    else if (memory % 256 !== 0) say(["guest", "memory_mb"], `got ${memory}; must be a multiple of 256 MiB`);
  }
  for (const [i, mounted] of (config.mounts ?? []).entries()) {
    if (mounted.extend_threshold_percent && !mounted.add_size_gb && !mounted.add_size_percent) {
      say(["mounts", i, "extend_threshold_percent"], "needs add_size_gb or add_size_percent");
    }
  }
  for (const [i, { ports }] of (config.services ?? []).entries()) {
    for (const [k, { port: single, start_port: start, end_port: end, http_options: http }] of (ports ?? []).entries()) {
      const path = ["services", i, "ports", k];
      if (single !== undefined && (start !== undefined || end !== undefined))
        say(path, "takes either port or start_port with end_port");
      else if (start !== undefined && end !== undefined && end < start)
        say([...path, "end_port"], `got ${end}, which lies before start_port ${start}`);
      for (const [name, value] of Object.entries(http?.response?.headers ?? {})) {
        const problem = answerHeaderProblem(name, value);
        if (problem !== undefined) say([...path, "http_options", "response", "headers"], problem, name);
      }
    }
  }
  for (const [i, { raw_value, secret_name, image_config }] of (config.files ?? []).entries()) {
    const given = [raw_value, secret_name, image_config].filter((value) => value !== undefined).length;
    if (given > 1) say(["files", i], "takes one of raw_value, secret_name and image_config");
  }
  if (config.standbys?.length && config.services?.length)
    say(["standbys"], "only Machines without services stand by for others");
  return problems;
}
