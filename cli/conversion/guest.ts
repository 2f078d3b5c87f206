// The size of a Machine in a deployment file.
import type { Deployment, Table } from "./deployment.ts";
import type { DeploymentFile } from "./schema.ts";
import type { Inputs } from "./services.ts";
import { mebibytes } from "./units.ts";

type Vm = NonNullable<DeploymentFile["vm"]>[number];

/** GPUs by the name of their size. */
const gpuKinds: Readonly<Record<string, string>> = {
  a10: "a10",
  l40s: "l40s",
  "a100-40gb": "a100-pcie-40gb",
  "a100-80gb": "a100-sxm4-80gb",
};

/** CPU and memory of a Machine. */
export function guestOf(deployment: Deployment, vm: Table<Vm> | undefined): Inputs | undefined {
  const dedication = deployment.root.take("host_dedication_id");
  if (!vm) return dedication === undefined ? undefined : { hostDedicationId: dedication };
  vm.take("processes");
  const size = sizeOf(deployment, vm);
  const memory = vm.take("memory");
  const given = memory === undefined ? vm.take("memory_mb") : mebibytes(memory, "m");
  if (memory !== undefined && given === undefined)
    throw deployment.refused([...vm.path, "memory"], `${JSON.stringify(memory)} is not a size, such as 512mb or 1gb`);
  const cpuKind = vm.take("cpu_kind") ?? size.cpuKind;
  const cpus = vm.take("cpus") ?? size.cpus;
  const perCpu = cpuKind === "performance" ? 2048 : 256;
  const isNamed = cpuKind !== undefined || cpus !== undefined;
  return {
    cpuKind,
    cpus,
    // The smallest size of these CPUs, as the file's own tool chooses.
    memoryMb: given ?? (isNamed ? perCpu * (cpus ?? 1) : undefined),
    gpus: vm.take("gpus") ?? (size.gpuKind === undefined ? undefined : 1),
    gpuKind: vm.take("gpu_kind") ?? size.gpuKind,
    hostDedicationId: vm.take("host_dedication_id") ?? dedication,
    kernelArgs: vm.take("kernel_args"),
    persistRootfs: vm.take("persist_rootfs"),
  };
}

interface Size {
  readonly cpuKind?: "shared" | "performance";
  readonly cpus?: number;
  readonly gpuKind?: string;
}

function sizeOf(deployment: Deployment, vm: Table<Vm>): Size {
  const size = vm.take("size");
  if (size === undefined) return {};
  const gpuKind = gpuKinds[size];
  if (gpuKind !== undefined) return { gpuKind, cpuKind: "performance", cpus: 8 };
  const [, kind, cpus] = /^(shared-cpu|performance)-(\d+)x$/.exec(size) ?? [];
  if (kind === undefined)
    throw deployment.refused(
      [...vm.path, "size"],
      `${JSON.stringify(size)} is not a size, such as shared-cpu-1x or performance-2x`,
    );
  return { cpuKind: kind === "performance" ? "performance" : "shared", cpus: Number(cpus) };
}
