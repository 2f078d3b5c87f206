// What the status of a Pod says about its Machine.
import type { V1ContainerStatus, V1Pod } from "@kubernetes/client-node";
import type { Instance } from "../reconciler/driver.ts";
import type { Exit, Subject } from "../runtime.ts";
import { annotations, labels } from "./names.ts";

const containerOf = ({ status }: V1Pod): V1ContainerStatus | undefined => status?.containerStatuses?.[0];

/** Whether the container of a Pod runs. */
export const isRunning = (pod: V1Pod): boolean => containerOf(pod)?.state?.running !== undefined;

/** Whether nothing of a Pod runs any more. */
export const hasEnded = ({ status }: V1Pod): boolean => status?.phase === "Succeeded" || status?.phase === "Failed";

/** Whether the container of an ended Pod did run. */
export const hasRun = (pod: V1Pod): boolean => {
  const ended = containerOf(pod)?.state?.terminated;
  // Of a container that could not be started, clusters say that it began in 1970.
  return ended?.startedAt !== undefined && new Date(ended.startedAt).getTime() > 0 && ended.reason !== "StartError";
};

/** Reasons why a container cannot be started. A cluster would try again; the restart policy of the Machine decides instead. */
const hopeless = new Set([
  "CreateContainerConfigError",
  "CreateContainerError",
  "ErrImageNeverPull",
  "ErrImagePull",
  "ImageInspectError",
  "ImagePullBackOff",
  "InvalidImageName",
  "RegistryUnavailable",
  "RunContainerError",
]);

/** Why a container cannot be started, as a sentence; undefined if it may still start. */
export function obstacleOf(pod: V1Pod): string | undefined {
  const { reason = "", message } = containerOf(pod)?.state?.waiting ?? {};
  return hopeless.has(reason) ? `${reason}: ${message ?? "the cluster gives no reason"}` : undefined;
}

/** Why no node takes a Pod, and since when; undefined if one does, or may. */
export function unplacedOf({ status }: V1Pod): { readonly reason: string; readonly since: number } | undefined {
  const placed = status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (placed?.status !== "False" || placed.reason !== "Unschedulable") return undefined;
  const since = placed.lastTransitionTime === undefined ? NaN : new Date(placed.lastTransitionTime).getTime();
  return { reason: placed.message ?? "no node is available", since };
}

/**
 * Whether the cluster ends a Pod for reasons of its own: an eviction, a lost node, or a Pod of others that is more important.
 * ASSUMED: a node that evicts a Pod because it is short of memory or disk may be so because of its program. The restart policy decides,
 * so that it does not fill one node after the other.
 */
const isDisrupted = ({ status }: V1Pod): boolean =>
  status?.reason !== "Evicted" &&
  status?.conditions?.some(({ type, status: is }) => type === "DisruptionTarget" && is === "True") === true;

/** How the process of a Pod ended; `isLost` if its node is lost. */
export function exitOf(pod: V1Pod | undefined, isLost = false): Exit {
  const exit = exitOfProcess(pod);
  if (!pod || !(isLost || isDisrupted(pod))) return exit;
  const { message = "it was evicted" } = pod.status?.conditions?.find(({ type }) => type === "DisruptionTarget") ?? {};
  return {
    ...exit,
    error: exit.error ?? (isLost ? `its node ${pod.spec?.nodeName} is lost` : message),
    interrupted: true,
  };
}

function exitOfProcess(pod: V1Pod | undefined): Exit {
  const ended = pod && containerOf(pod)?.state?.terminated;
  const { reason, message } = pod?.status ?? {};
  const why = reason === undefined ? {} : { error: `${reason}: ${message ?? "the cluster gives no reason"}` };
  // How it ended is unknown: the Pod is gone, or its node was lost.
  if (!ended) return { code: 137, signal: 9, oom: false, requested: false, ...why };
  const { exitCode: code, signal } = ended;
  const failure = ended.reason === "StartError" || ended.reason === "ContainerCannotRun" ? ended.message : undefined;
  return {
    code: failure === undefined ? code : 127,
    signal: signal ?? (code > 128 && code < 160 ? code - 128 : 0),
    oom: ended.reason === "OOMKilled",
    requested: false,
    ...(failure === undefined ? why : { error: failure }),
  };
}

/**
 * The digest by which a registry knows the image that a Pod runs; undefined if the cluster does not say. An image that only the node
 * has is known by its id, by which no other node can fetch it.
 */
const digestOf = (pod: V1Pod): string | undefined =>
  /@(sha256:[0-9a-f]{64})$/.exec(containerOf(pod)?.imageID ?? "")?.[1];

/** A Pod of a Machine. */
export interface PodOf extends Instance {
  readonly pod: V1Pod;
}

/** A Pod as the reconciler sees it. */
export function instanceOf(pod: V1Pod, machine: Subject | undefined): PodOf {
  const uid = pod.metadata?.uid ?? "";
  return {
    pod,
    id: uid,
    isCurrent: pod.metadata?.labels?.[labels.version] === machine?.version,
    isAlive: !hasEnded(pod),
    isPaused: false,
    canStart: machine !== undefined && isOf(pod, machine),
    run: isRunning(pod) || hasEnded(pod) ? uid : undefined,
    digest: digestOf(pod),
  };
}

/** Whether a Pod is that of the latest start of a Machine. */
export const isOf = ({ metadata }: V1Pod, { version, start }: Subject): boolean =>
  metadata?.labels?.[labels.version] === version && metadata.annotations?.[annotations.start] === start;
