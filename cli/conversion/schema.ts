// What a deployment file can say.
import { z } from "zod";

const whole = z.union(
  [
    z.int(),
    z
      .string()
      .regex(/^\d+$/)
      .transform((text) => Number(text)),
  ],
  { error: "must be a whole number" },
);
const text = z.string({ error: "must be a text" });
const texts = z.array(text, { error: "must be a list of texts" });
const flag = z.boolean({ error: "must be true or false" });
const scalar = z
  .union([text, z.number(), z.boolean()], { error: "must be a text, a number, or true or false" })
  .transform((value) => String(value));
/** With a unit, or a number in the unit of its key. */
const quantity = z.union([text, z.number()], { error: "must be a text with a unit, such as 10s or 1gb, or a number" });
const words = z.union([text, texts], { error: "must be a text or a list of texts" });
const anything = z.unknown();

const headers = z.record(z.string(), z.union([text, texts], { error: "must be a text or a list of texts" }));

const check = {
  interval: quantity.optional(),
  timeout: quantity.optional(),
  grace_period: quantity.optional(),
  restart_limit: whole.optional(),
};

const httpCheck = {
  ...check,
  method: text.optional(),
  path: text.optional(),
  protocol: z.enum(["http", "https"]).optional(),
  tls_server_name: text.optional(),
  tls_skip_verify: flag.optional(),
  headers: headers.optional(),
};

const tlsOptions = z.strictObject({
  alpn: texts.optional(),
  versions: z.array(z.enum(["TLSv1.2", "TLSv1.3"])).optional(),
  default_self_signed: flag.optional(),
});

const httpOptions = z.strictObject({
  compress: flag.optional(),
  h2_backend: flag.optional(),
  idle_timeout: whole.optional(),
  headers_read_timeout: whole.optional(),
  response: z
    .strictObject({
      headers: z.record(z.string(), z.union([text, texts, flag])).optional(),
      pristine: flag.optional(),
    })
    .optional(),
  replay_cache: z
    .array(
      z.strictObject({
        path_prefix: text.optional(),
        ttl_seconds: whole.optional(),
        type: z.enum(["cookie", "header"]).optional(),
        name: text.optional(),
        allow_bypass: flag.optional(),
      }),
    )
    .optional(),
});

const port = z.strictObject({
  port: whole.optional(),
  start_port: whole.optional(),
  end_port: whole.optional(),
  handlers: z.array(z.enum(["http", "tls", "tcp", "pg_tls", "proxy_proto"])).optional(),
  force_https: flag.optional(),
  http_options: httpOptions.optional(),
  tls_options: tlsOptions.optional(),
  proxy_proto_options: z.strictObject({ version: text.optional() }).optional(),
});

const serving = {
  internal_port: whole,
  auto_stop_machines: z
    .union([flag, z.enum(["off", "stop", "suspend"])], { error: 'must be "off", "stop", "suspend", true or false' })
    .optional(),
  auto_start_machines: flag.optional(),
  min_machines_running: whole.optional(),
  concurrency: z
    .strictObject({
      type: z.enum(["connections", "requests"]).optional(),
      soft_limit: whole.optional(),
      hard_limit: whole.optional(),
    })
    .optional(),
  processes: texts.optional(),
  tcp_checks: z.array(z.strictObject(check)).optional(),
  machine_checks: anything.optional(),
};

const httpService = z.strictObject({
  ...serving,
  force_https: flag.optional(),
  checks: z.array(z.strictObject(httpCheck)).optional(),
  http_options: httpOptions.optional(),
  tls_options: tlsOptions.optional(),
});

const service = z.strictObject({
  ...serving,
  protocol: z.enum(["tcp", "udp"]).optional(),
  ports: z.array(port).optional(),
  http_checks: z.array(z.strictObject(httpCheck)).optional(),
  script_checks: anything.optional(),
});

const vm = z.strictObject({
  size: text.optional(),
  memory: quantity.optional(),
  memory_mb: whole.optional(),
  cpus: whole.optional(),
  cpu_kind: z.enum(["shared", "performance"]).optional(),
  gpus: whole.optional(),
  gpu_kind: text.optional(),
  host_dedication_id: text.optional(),
  kernel_args: texts.optional(),
  persist_rootfs: z.enum(["never", "always", "restart"]).optional(),
  processes: texts.optional(),
});

/** The whole file. Tables that may be one or a list are lists. */
export const fileSchema = z.strictObject({
  app: text.optional(),
  primary_region: text.optional(),
  kill_signal: text.optional(),
  kill_timeout: quantity.optional(),
  swap_size_mb: whole.optional(),
  console_command: text.optional(),
  host_dedication_id: text.optional(),
  machine_config: anything.optional(),
  container: anything.optional(),
  machine_checks: anything.optional(),
  build: z
    .strictObject({
      image: text.optional(),
      dockerfile: anything.optional(),
      ignorefile: anything.optional(),
      builder: anything.optional(),
      buildpacks: anything.optional(),
      builtin: anything.optional(),
      settings: anything.optional(),
      args: anything.optional(),
      "build-target": anything.optional(),
    })
    .optional(),
  env: z.record(z.string(), scalar).optional(),
  processes: z.record(z.string(), text).optional(),
  deploy: z
    .strictObject({
      strategy: z.enum(["rolling", "canary", "bluegreen", "immediate"]).optional(),
      max_unavailable: z.number().optional(),
      wait_timeout: quantity.optional(),
      release_command: text.optional(),
      release_command_timeout: anything.optional(),
      release_command_vm: anything.optional(),
      seed_command: anything.optional(),
    })
    .optional(),
  http_service: httpService.optional(),
  services: z.array(service).optional(),
  checks: z
    .record(
      z.string(),
      z.strictObject({
        ...httpCheck,
        type: z.enum(["http", "tcp", "script"]).optional(),
        port: whole.optional(),
        processes: texts.optional(),
        command: anything.optional(),
      }),
    )
    .optional(),
  mounts: z
    .array(
      z.strictObject({
        source: text.optional(),
        destination: text,
        initial_size: quantity.optional(),
        snapshot_retention: whole.optional(),
        scheduled_snapshots: anything.optional(),
        auto_extend_size_threshold: anything.optional(),
        auto_extend_size_increment: anything.optional(),
        auto_extend_size_limit: anything.optional(),
        processes: texts.optional(),
      }),
    )
    .optional(),
  vm: z.array(vm).optional(),
  restart: z
    .array(
      z.strictObject({
        policy: z.enum(["always", "never", "on-failure"]).optional(),
        retries: whole.optional(),
        processes: texts.optional(),
      }),
    )
    .optional(),
  statics: z
    .array(
      z.strictObject({
        guest_path: text,
        url_prefix: text,
        tigris_bucket: text.optional(),
        index_document: text.optional(),
      }),
    )
    .optional(),
  files: z
    .array(
      z.strictObject({
        guest_path: text,
        local_path: text.optional(),
        secret_name: text.optional(),
        raw_value: text.optional(),
        processes: texts.optional(),
      }),
    )
    .optional(),
  metrics: z
    .array(z.strictObject({ port: whole, path: text, https: flag.optional(), processes: texts.optional() }))
    .optional(),
  experimental: z
    .strictObject({
      cmd: words.optional(),
      entrypoint: words.optional(),
      exec: words.optional(),
      auto_rollback: flag.optional(),
      enable_consul: anything.optional(),
      enable_etcd: anything.optional(),
      lazy_load_images: anything.optional(),
      attached: anything.optional(),
      machine_config: anything.optional(),
      use_zstd: anything.optional(),
      private_network: anything.optional(),
      allowed_public_ports: anything.optional(),
    })
    .optional(),
});

/** A deployment file. */
export type DeploymentFile = z.output<typeof fileSchema>;
