// What a configuration asks for and Pods cannot do. It is refused by name, and not ignored.
import type { MachineConfig } from "../../../api/machineConfig.ts";
import { inContainers, type Unsupported } from "../unsupported.ts";

/** The largest Secret of a cluster, which holds the environment or the files of a Machine. */
const largestSecret = 2 ** 20;

/** The names of variables that a Secret can hold. */
const variable = /^[-._a-zA-Z0-9]+$/;

const bytesOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);

const inPods: readonly Unsupported[] = [
  {
    field: "config.guest.persist_rootfs",
    asked: ({ guest }) => guest?.persist_rootfs !== undefined && guest.persist_rootfs !== "never",
    why: "begins each start with a fresh root file system",
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
    asked: ({ files }) => (bytesOf(files?.map(({ raw_value = "" }) => raw_value) ?? []) * 3) / 4 > largestSecret,
    why: "takes at most 1 MiB of files",
  },
  {
    field: "config.rootfs.persist",
    asked: ({ rootfs }) => rootfs?.persist !== undefined && rootfs.persist !== "never",
    why: "begins each start with a fresh root file system",
  },
  { field: "config.dns.hostname_fqdn", asked: ({ dns }) => dns?.hostname_fqdn, why: "names Pods by itself" },
];

/** The first field that the runtime cannot honour, and why; undefined if there is none. */
export function unsupported(config: MachineConfig): { readonly field: string; readonly message: string } | undefined {
  const found = [...inContainers, ...inPods].find(({ asked }) => asked(config));
  return found && { field: found.field, message: `the kubernetes runtime ${found.why}` };
}
