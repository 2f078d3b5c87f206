// What a configuration asks for and no runtime that starts one container for each Machine can do.
import type { MachineConfig } from "../../api/machineConfig.ts";

/** Something that a runtime cannot do. */
export interface Unsupported {
  readonly field: string;
  /** Whether a configuration asks for it. */
  readonly asked: (config: MachineConfig) => unknown;
  /** What the runtime does instead, after its name. */
  readonly why: string;
}

/** What is refused wherever a Machine is one container. */
export const inContainers: readonly Unsupported[] = [
  { field: "config.containers", asked: ({ containers }) => containers?.length, why: "runs one container per Machine" },
  { field: "config.processes", asked: ({ processes }) => processes?.length, why: "runs one process per Machine" },
  { field: "config.volumes", asked: ({ volumes }) => volumes?.length, why: "mounts only volumes of the App" },
  { field: "config.guest.gpus", asked: ({ guest }) => guest?.gpus, why: "has no GPUs" },
  { field: "config.guest.gpu_kind", asked: ({ guest }) => guest?.gpu_kind, why: "has no GPUs" },
  {
    field: "config.guest.host_dedication_id",
    asked: ({ guest }) => guest?.host_dedication_id,
    why: "has no dedicated hosts",
  },
  {
    field: "config.guest.required_host_features",
    asked: ({ guest }) => guest?.required_host_features?.length,
    why: "does not know the features of hosts",
  },
  {
    field: "config.guest.kernel_args",
    asked: ({ guest }) => guest?.kernel_args?.length,
    why: "shares the kernel of the host",
  },
  {
    field: "config.init.kernel_args",
    asked: ({ init }) => init?.kernel_args?.length,
    why: "shares the kernel of the host",
  },
  {
    field: "config.files",
    asked: ({ files }) => files?.some(({ image_config }) => image_config !== undefined),
    why: "cannot write the configuration of an image into a file",
  },
  { field: "config.statics", asked: ({ statics }) => statics?.length, why: "does not serve files by itself" },
  { field: "config.rootfs.size_gb", asked: ({ rootfs }) => rootfs?.size_gb, why: "cannot limit the root file system" },
  { field: "config.cache_drive", asked: ({ cache_drive }) => cache_drive, why: "has no drives for caches" },
  {
    field: "config.mounts[0].extend_threshold_percent",
    asked: ({ mounts }) => mounts?.some(({ extend_threshold_percent: threshold }) => threshold),
    why: "does not see how full a volume is",
  },
  {
    field: "config.dns.dns_forward_rules",
    asked: ({ dns }) => dns?.dns_forward_rules?.length,
    why: "cannot forward single domains",
  },
  {
    field: "config.restart.policy",
    asked: ({ restart }) => restart?.policy === "spot-price",
    why: "has no spot prices",
  },
];
