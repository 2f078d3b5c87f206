// What a configuration asks for and Pods cannot do. It is refused by name, and not ignored.
import type { MachineConfig } from "../../../api/machineConfig.ts";

/** The largest Secret of a cluster, which holds the environment or the files of a Machine. */
const largestSecret = 2 ** 20;

/** The names of variables that a Secret can hold. */
const variable = /^[-._a-zA-Z0-9]+$/;

const bytesOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);

const reasons: readonly {
  readonly field: string;
  readonly asked: (config: MachineConfig) => unknown;
  readonly why: string;
}[] = [
  { field: "config.containers", asked: ({ containers }) => containers?.length, why: "runs one container per Machine" },
  { field: "config.processes", asked: ({ processes }) => processes?.length, why: "runs one process per Machine" },
  { field: "config.volumes", asked: ({ volumes }) => volumes?.length, why: "mounts only volumes of the App" },
  {
    field: "config.mounts[0].extend_threshold_percent",
    asked: ({ mounts }) => mounts?.some(({ extend_threshold_percent: threshold }) => threshold),
    why: "does not see how full a volume is",
  },
  { field: "config.guest.gpus", asked: ({ guest }) => guest?.gpus, why: "does not place GPUs" },
  { field: "config.guest.gpu_kind", asked: ({ guest }) => guest?.gpu_kind, why: "does not place GPUs" },
  {
    field: "config.guest.host_dedication_id",
    asked: ({ guest }) => guest?.host_dedication_id,
    why: "has no dedicated hosts",
  },
  {
    field: "config.guest.required_host_features",
    asked: ({ guest }) => guest?.required_host_features?.length,
    why: "does not know the features of nodes",
  },
  {
    field: "config.guest.kernel_args",
    asked: ({ guest }) => guest?.kernel_args?.length,
    why: "shares the kernel of the node",
  },
  {
    field: "config.guest.persist_rootfs",
    asked: ({ guest }) => guest?.persist_rootfs !== undefined && guest.persist_rootfs !== "never",
    why: "begins each start with a fresh root file system",
  },
  {
    field: "config.init.kernel_args",
    asked: ({ init }) => init?.kernel_args?.length,
    why: "shares the kernel of the node",
  },
  {
    field: "config.init.swap_size_mb",
    asked: ({ init }) => init?.swap_size_mb,
    why: "gives Pods no swap of their own",
  },
  {
    field: "config.env",
    asked: ({ env }) => Object.keys(env ?? {}).some((name) => !variable.test(name)),
    why: "takes names of letters, digits, `.`, `_` and `-`",
  },
  {
    field: "config.env",
    asked: ({ env }) => bytesOf(Object.entries(env ?? {}).flat()) > largestSecret,
    why: "takes at most 1 MiB of variables",
  },
  {
    field: "config.files",
    asked: ({ files }) => files?.some(({ image_config }) => image_config !== undefined),
    why: "cannot write the configuration of an image into a file",
  },
  {
    field: "config.files",
    asked: ({ files }) => (bytesOf(files?.map(({ raw_value = "" }) => raw_value) ?? []) * 3) / 4 > largestSecret,
    why: "takes at most 1 MiB of files",
  },
  { field: "config.statics", asked: ({ statics }) => statics?.length, why: "does not serve files by itself" },
  { field: "config.rootfs.size_gb", asked: ({ rootfs }) => rootfs?.size_gb, why: "cannot limit the root file system" },
  {
    field: "config.rootfs.persist",
    asked: ({ rootfs }) => rootfs?.persist !== undefined && rootfs.persist !== "never",
    why: "begins each start with a fresh root file system",
  },
  { field: "config.cache_drive", asked: ({ cache_drive }) => cache_drive, why: "has no drives for caches" },
  {
    field: "config.dns.dns_forward_rules",
    asked: ({ dns }) => dns?.dns_forward_rules?.length,
    why: "cannot forward single domains",
  },
  { field: "config.dns.hostname_fqdn", asked: ({ dns }) => dns?.hostname_fqdn, why: "names Pods by itself" },
  {
    field: "config.restart.policy",
    asked: ({ restart }) => restart?.policy === "spot-price",
    why: "has no spot prices",
  },
];

/** The first field that the runtime cannot honour, and why; undefined if there is none. */
export function unsupported(config: MachineConfig): { readonly field: string; readonly message: string } | undefined {
  const found = reasons.find(({ asked }) => asked(config));
  return found && { field: found.field, message: `the kubernetes runtime ${found.why}` };
}
