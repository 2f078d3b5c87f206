// A Machine's version as a Pod, and the secrets that the Pod reads.
import type { V1Container, V1Pod, V1Secret } from "@kubernetes/client-node";
import { sizeOf, type MachineConfig } from "../../../api/machineConfig.ts";
import { portsOf } from "../checks.ts";
import { environmentOf } from "../environment.ts";
import { stopRequest } from "../stopRequest.ts";
import type { StopRequest, Subject } from "../runtime.ts";
import { annotations, fleetLabel, labels, machineLabels, regionLabel, volumeName } from "./names.ts";

/** The name of the container of a Pod. */
export const containerName = "machine";

/** ASSUMED: a shared CPU is a sixteenth of a CPU for certain, and a whole one while others leave it. */
const sharedCpu = 1 / 16;

/** Seconds of grace for a stop. With none, the cluster would forget a Pod that may still run. */
export const graceOf = ({ signal, timeoutMs }: StopRequest): number =>
  signal === "SIGKILL" ? 1 : Math.max(1, Math.ceil(timeoutMs / 1000));

/** CPUs and memory in MB that a Machine needs of a node. */
export const needsOf = (config: MachineConfig): { readonly cpus: number; readonly memoryMb: number } => {
  const { cpus, kind, memoryMb } = sizeOf(config);
  return { cpus: kind === "shared" ? cpus * sharedCpu : cpus, memoryMb };
};

/** What a container of the Machine asks for, and its limits. */
export const resourcesOf = ({ config, memoryLimitMb }: Subject) => {
  const needs = needsOf(config);
  const memory = `${memoryLimitMb ?? needs.memoryMb}Mi`;
  const milli = (count: number): string => `${Math.max(1, Math.round(count * 1000))}m`;
  return {
    requests: { cpu: milli(needs.cpus), memory },
    limits: { cpu: milli(sizeOf(config).cpus), memory },
  };
};

/** A cluster replaces `$(NAME)` in words, which the platform does not. */
const literal = (words: readonly string[]): string[] => words.map((word) => word.replaceAll("$(", "$$("));

function commandOf({ init = {} }: MachineConfig): Pick<V1Container, "command" | "args"> {
  const entrypoint = init.exec ?? init.entrypoint;
  return {
    ...(entrypoint === undefined ? {} : { command: literal(entrypoint) }),
    ...(init.cmd !== undefined && !init.exec ? { args: literal(init.cmd) } : {}),
  };
}

/** The environment of a Machine, and its files. They may be secret, so a Pod only refers to them. */
export function secretOf(machine: Subject, dataId: string, namespace: string): V1Secret {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: machine.id, namespace, labels: machineLabels(dataId, machine) },
    type: "Opaque",
    data: Object.fromEntries(Object.entries(environmentOf(machine)).map(([name, value]) => [name, base64(value)])),
  };
}

const filesName = ({ id }: Subject): string => `${id}-files`;
const fileKey = (index: number): string => `file-${index}`;

/** The files of a Machine; undefined if it has none. */
export function filesOf(machine: Subject, dataId: string, namespace: string): V1Secret | undefined {
  const { files } = machine.config;
  if (!files?.length) return undefined;
  const values = new Map(Object.entries(machine.secrets()));
  const contents = files.map(({ raw_value, secret_name }, i) => [
    fileKey(i),
    raw_value ?? (secret_name === undefined ? "" : (values.get(secret_name) ?? "")),
  ]);
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: filesName(machine), namespace, labels: machineLabels(dataId, machine) },
    type: "Opaque",
    data: Object.fromEntries(contents),
  };
}

/** The image: by its digest once it is known, so that all starts of a version run the same program. */
const imageOf = ({ repository, digest, config }: Subject): string =>
  digest === "" ? config.image : `${repository}@${digest}`;

/** The Pod of one start of a Machine. It may run on all nodes of a cluster that has one region only. */
export function podOf(machine: Subject, dataId: string, namespace: string, onlyRegion?: string): V1Pod {
  const { id, app, region, config, start } = machine;
  const { dns = {}, init = {}, mounts = [], files = [] } = config;
  const stop = stopRequest(config.stop_config);
  const fleet = fleetLabel(machine);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: id,
      namespace,
      labels: { ...machineLabels(dataId, machine), ...(fleet === undefined ? {} : { [labels.fleet]: fleet }) },
      annotations: { [annotations.start]: start },
    },
    spec: {
      // The service decides about restarts.
      restartPolicy: "Never",
      // A Machine has nothing to do with the API of the cluster.
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // As on the platform, the main process is not the first one. So signals that it does not handle end it, and the processes that
      // it leaves behind are cleaned up.
      shareProcessNamespace: true,
      terminationGracePeriodSeconds: graceOf(stop),
      hostname: dns.hostname ?? id,
      // The signal of a stop needs it.
      os: { name: "linux" },
      ...(region === onlyRegion ? {} : { nodeSelector: { [regionLabel]: region } }),
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: "kubernetes.io/hostname",
          whenUnsatisfiable: "ScheduleAnyway",
          labelSelector: { matchLabels: { [labels.data]: dataId, [labels.app]: app } },
        },
      ],
      ...(dns.nameservers ? { dnsPolicy: "None" } : {}),
      ...(dns.nameservers || dns.searches || dns.options
        ? {
            dnsConfig: {
              ...(dns.nameservers ? { nameservers: [...dns.nameservers] } : {}),
              ...(dns.searches ? { searches: [...dns.searches] } : {}),
              ...(dns.options
                ? {
                    options: dns.options.map(({ name = "", value }) =>
                      value === undefined ? { name } : { name, value },
                    ),
                  }
                : {}),
            },
          }
        : {}),
      containers: [
        {
          name: containerName,
          image: imageOf(machine),
          ...commandOf(config),
          tty: init.tty ?? false,
          envFrom: [{ secretRef: { name: id } }],
          // The address in the cluster, not the one that the service has written down.
          env: [{ name: "FLY_PRIVATE_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
          resources: resourcesOf(machine),
          ports: portsOf(config).map(({ port, protocol }) => ({
            containerPort: port,
            protocol: protocol.toUpperCase(),
          })),
          lifecycle: { stopSignal: stop.signal },
          volumeMounts: [
            ...mounts.map(({ path }, i) => ({ name: `volume-${i}`, mountPath: path })),
            ...files.map(({ guest_path }, i) => ({
              name: "files",
              mountPath: guest_path,
              subPath: fileKey(i),
              readOnly: true,
            })),
          ],
        },
      ],
      volumes: [
        ...mounts.map(({ volume }, i) => ({
          name: `volume-${i}`,
          persistentVolumeClaim: { claimName: volumeName({ id: volume }) },
        })),
        ...(files.length === 0
          ? []
          : [
              {
                name: "files",
                secret: {
                  secretName: filesName(machine),
                  items: files.map(({ mode }, i) => ({ key: fileKey(i), path: fileKey(i), mode: mode ?? 0o644 })),
                },
              },
            ]),
      ],
    },
  };
}
