// The connection to a container engine: Docker, or another one with its API.
import http from "node:http";
import https from "node:https";
import Dockerode from "dockerode";
import { Refusal } from "../../refusal.ts";
import { allowingBy } from "../allowing.ts";
import type { Unsure } from "../fence.ts";
import type { Failures } from "../reconciler/driver.ts";
import type { Log } from "../runtime.ts";
import { fileLimits, mayLimitDisk, type EngineLimits, type StorageInfo } from "./confinement.ts";

/** What requests that change something have to wait for. */
export interface Fence {
  unsure: Unsure;
}

/** A connected engine, and what it has. */
export interface Engine extends EngineLimits {
  readonly docker: Dockerode;
  readonly fence: Fence;
  readonly cpus: number;
  readonly memoryMb: number;
  /** Whether it can run an init process in a container, which forwards signals and ends orphans; true until it refuses one. */
  hasInit: boolean;
  /** The computer that it runs on, as far as it says. */
  readonly computer: Computer;
  /** Fails the requests that wait for an answer: the engine was killed, and their answers will never end. */
  failWaiting(): void;
}

/** An engine that cannot be used; the message says why and what to do. */
export class EngineError extends Error {
  override readonly name = "EngineError";
}

/** What an engine says about its computer. */
export interface Computer {
  readonly Name?: string;
  readonly KernelVersion?: string;
  readonly SecurityOptions?: readonly string[] | null;
}

interface Info extends Computer, StorageInfo {
  readonly NCPU?: number;
  readonly MemTotal?: number;
}

/**
 * Connects to the engine of `DOCKER_HOST` (also `DOCKER_CERT_PATH` and `DOCKER_TLS_VERIFY`), or to `/var/run/docker.sock`.
 * @throws EngineError if none answers.
 */
export async function connectEngine(): Promise<Engine> {
  const docker = new Dockerode();
  connectAnew(docker);
  const fence: Fence = { unsure: () => undefined };
  const failWaiting = watchRequests(docker, fence);
  try {
    const info = (await docker.info()) as Info;
    return {
      docker,
      fence,
      cpus: info.NCPU ?? 1,
      memoryMb: Math.floor((info.MemTotal ?? 0) / 2 ** 20),
      hasInit: true,
      hasDiskLimit: mayLimitDisk(info),
      mostFiles: fileLimits[0],
      computer: info,
      failWaiting,
    };
  } catch (error) {
    const at = process.env["DOCKER_HOST"] || "/var/run/docker.sock";
    throw new EngineError(
      `no container engine answers at ${at} (${reasonOf(error)}). Start Docker, set DOCKER_HOST, or use --runtime simulated.`,
    );
  }
}

/**
 * Sends each request by a new connection. An engine that stops takes no new one before it ends its containers, but still answers on
 * those that it has. What it says there of an end that it caused looks as if the program had ended by itself.
 */
function connectAnew({ modem }: Dockerode): void {
  const settings = modem as { readonly protocol?: string; agent?: http.Agent };
  settings.agent = settings.protocol === "https" ? new https.Agent() : new http.Agent();
}

/**
 * When the engine was started, in its own time; undefined if it does not say. Docker creates its usual network again at each start,
 * except while containers run that it has left alone meanwhile. Networks of Podman do not have this option.
 */
export async function startOf({ docker }: Engine): Promise<Date | undefined> {
  const usual = (await allowing([404], docker.getNetwork("bridge").inspect())) as UsualNetwork | undefined;
  const isDocker = usual?.Options?.["com.docker.network.bridge.default_bridge"] === "true";
  return isDocker ? new Date(usual.Created) : undefined;
}

interface UsualNetwork {
  readonly Created: string;
  readonly Options?: Readonly<Record<string, string>> | null;
}

/** The failure of a request that gets no answer. */
export const ended = (reason: string): Error => Object.assign(new Error(reason), { code: "ECONNRESET" });

type Dial = (options: DialOptions, callback: (error: unknown, answer?: unknown) => void) => void;

interface DialOptions {
  readonly method: string;
  readonly isStream?: boolean;
  readonly hijack?: boolean;
  readonly openStdin?: boolean;
  readonly file?: unknown;
}

// ASSUMED: an engine answers a request that is no stream within a minute.
const answerMs = 60_000;

/**
 * Holds requests that change something until the fence lets them pass. The library waits for ever for the end of an answer whose
 * connection breaks. The returned function fails such requests.
 */
function watchRequests({ modem }: Dockerode, fence: Fence): () => void {
  const waiting = new Set<() => void>();
  const target = modem as unknown as { dial: Dial };
  const dial = target.dial.bind(modem);
  target.dial = (options, callback) => {
    const unsure = options.method === "GET" ? undefined : fence.unsure();
    if (unsure) return void unsure.then(() => target.dial(options, callback), callback);
    if (options.isStream || options.hijack || options.openStdin) return dial(options, callback);
    const settle = (error: unknown, answer?: unknown): void => {
      if (!waiting.delete(fail)) return;
      clearTimeout(timer);
      callback(error, answer);
    };
    const fail = (): void => settle(ended("the engine ended the connection"));
    // Sending a file takes as long as it takes.
    const timer = options.file === undefined ? setTimeout(fail, answerMs) : undefined;
    waiting.add(fail);
    dial(options, settle);
  };
  return () => {
    for (const fail of waiting) fail();
  };
}

interface EngineAnswer {
  readonly statusCode?: number;
  readonly code?: string;
  readonly json?: { readonly message?: string } | undefined;
}

const answerOf = (error: unknown): EngineAnswer => (typeof error === "object" && error !== null ? error : {});

/** The status of an engine's answer; undefined if it did not answer. */
export const statusOf = (error: unknown): number | undefined => answerOf(error).statusCode;

/** What the engine said, or the code of the connection error. */
export function reasonOf(error: unknown): string {
  const { json, code } = answerOf(error);
  const text = json?.message ?? code ?? (error instanceof Error ? error.message : "unknown error");
  // Errors of requests with a stream have no object, only a text with the status before the reason.
  return text.replace(/^\(HTTP code \d+\) [^-]* - /, "").trim();
}

/** Whether the engine answered; if not, it may be stopped, and the same request may succeed later. */
export const isAnswered = (error: unknown): boolean => statusOf(error) !== undefined;

/** Whether a request did not reach the engine. */
export const isUnreachable = (error: unknown): boolean =>
  !isAnswered(error) && error instanceof Error && "code" in error;

/** How failures of an engine are reported. */
export const ofEngine: Failures = {
  failed: "the container engine refused or did not answer",
  reasonOf,
  isRefusal: (error) => !isUnreachable(error),
};

/** The refusal of a request that needs the engine while it does not answer. */
export const engineGone = (error: unknown): Refusal =>
  new Refusal(
    503,
    { error: `unavailable: the container engine does not answer (${reasonOf(error)}); nothing was changed` },
    { "retry-after": "2" },
  );

/** Runs a request of the engine, and ignores these statuses. */
export const allowing = allowingBy(statusOf);

/** Creates a container; again, without what the engine turns out not to have. */
export async function withoutMissing<T>(engine: Engine, log: Log, create: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await create();
    } catch (error) {
      const reason = reasonOf(error);
      // Podman does not say beforehand that the program for it is not installed.
      if (engine.hasInit && /init binary/.test(reason)) engine.hasInit = false;
      else if (engine.hasDiskLimit && /storage.opt|quota/i.test(reason)) {
        engine.hasDiskLimit = false;
        log.warn({ reason }, noDiskLimit);
      } else throw error;
    }
}

/** Whether a container did not start because the engine's own limit of open files is lower; the next one asks for fewer. */
export function lowersFileLimit(engine: Engine, { Ulimits }: Dockerode.HostConfig, error: unknown): boolean {
  const asked = Ulimits?.find(({ Name }) => Name === "nofile")?.Hard;
  if (asked === undefined || !/setting rlimit/.test(reasonOf(error))) return false;
  if (engine.mostFiles === asked) engine.mostFiles = fileLimits[fileLimits.indexOf(asked) + 1];
  return true;
}

/** What the log says once of an engine that cannot limit the disk of containers. */
export const noDiskLimit = "the engine does not limit what Machines write outside of their volumes";
