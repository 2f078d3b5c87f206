// The time until a provider can be called, the time until it has answered a program's first calls, and its memory then.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import grpc from "@grpc/grpc-js";
import struct from "google-protobuf/google/protobuf/struct_pb.js";
import type { JavaScriptValue } from "google-protobuf/google/protobuf/struct_pb.js";
import providerGrpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { setup as buildStandalone, standalone } from "../test/support/standalone.mts";
import { median, type Pair, type SideName } from "./measure.ts";
import { processorMs, residentMb } from "./processes.ts";
import type { Workbench } from "./workbench.ts";

/** The state of a provider at a time after its start. */
export interface Reached {
  /** The median and all values. */
  readonly milliseconds: number;
  readonly all: readonly number[];
  /** Milliseconds of processor time until then; undefined if it is unknown. */
  readonly processor: number | undefined;
  /** Resident memory at that time; undefined if it is unknown. */
  readonly mb: number | undefined;
}

/** What is started: a side, or the real plugin as its standalone executable. */
type Started = SideName | "standalone";

/** The costs of a start. */
export interface Startup {
  readonly binding: Pair["binding"]["name"];
  readonly side: Started;
  /** Until it has printed its port. */
  readonly port: Reached;
  /** Until it has checked an App and a Machine; undefined for the dynamic binding, whose host has another interface. */
  readonly checks: Reached | undefined;
}

const times = 9;

interface Moment {
  readonly ms: number;
  readonly processor: number | undefined;
  readonly mb: number | undefined;
}

/** Starts the providers of a binding several times, in turn. */
export async function measureStartups(bench: Workbench, pair: Pair): Promise<Startup[]> {
  const { name } = pair.binding;
  // The floor of the dynamic binding has the same host.
  const sides: Started[] = name === "dynamic" ? ["real"] : ["floor", "real"];
  if (name === "plugin" && standalone !== undefined) {
    buildStandalone();
    sides.push("standalone");
  }
  const found = sides.map((side) => ({ side, ports: [] as Moment[], checks: [] as Moment[] }));
  for (let i = 0; i < times; i++) {
    for (const { side, ports, checks } of found) {
      const { port, checked } = await startOnce(bench, pair, side);
      ports.push(port);
      if (checked) checks.push(checked);
    }
  }
  return found.map(({ side, ports, checks }) => ({
    binding: name,
    side,
    port: reached(ports),
    checks: checks.length > 0 ? reached(checks) : undefined,
  }));
}

function reached(moments: readonly Moment[]): Reached {
  const all = moments.map(({ ms }) => Math.round(ms));
  const known = (values: readonly number[]) => (values.length > 0 ? median(values) : undefined);
  return {
    milliseconds: median(all),
    all,
    processor: known(moments.flatMap(({ processor }) => processor ?? [])),
    mb: known(moments.flatMap(({ mb }) => mb ?? [])),
  };
}

function commandOf(bench: Workbench, { binding }: Pair, side: SideName): string {
  const folder = binding[side].providerFolder(bench);
  return folder === undefined ? binding.executable : join(folder, binding.executable);
}

async function startOnce(bench: Workbench, pair: Pair, started: Started) {
  const { signal } = bench;
  signal.throwIfAborted();
  const side = started === "standalone" ? "real" : started;
  const { cwd, env } = pair.surroundings(side);
  const command = (started === "standalone" ? standalone : undefined) ?? commandOf(bench, pair, side);
  const since = performance.now();
  // The address of an engine that does not exist: nothing is called.
  const child = spawn(command, ["127.0.0.1:1"], { cwd, env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  const now = (): Moment => ({
    ms: performance.now() - since,
    processor: child.pid === undefined ? undefined : processorMs(child.pid),
    mb: child.pid === undefined ? undefined : residentMb(child.pid),
  });
  try {
    const [line] = (await once(createInterface(child.stdout), "line", {
      signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
    })) as [string];
    const port = now();
    if (pair.binding.name === "dynamic") return { port, checked: undefined };
    await check(line, pair);
    return { port, checked: now() };
  } finally {
    child.kill("SIGKILL");
    await ended.catch(() => undefined);
  }
}

/** The engine's first calls: to configure the provider, and to check an App and a Machine. */
async function check(port: string, pair: Pair): Promise<void> {
  const client = new providerGrpc.ResourceProviderClient(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const structOf = (values: object) => struct.Struct.fromJavaScript(values as Record<string, JavaScriptValue>);
  const asked = (send: (answered: (error: Error | null) => void) => unknown): Promise<void> =>
    new Promise((resolve, reject) => {
      send((error) => (error ? reject(error) : resolve()));
    });
  try {
    const args = structOf({ endpoint: "http://127.0.0.1:1", token: "bench" });
    await asked((answered) => client.configure(new proto.ConfigureRequest().setArgs(args), answered));
    for (const [type, { inputs }] of Object.entries(pair.kept())) {
      const request = new proto.CheckRequest();
      request.setUrn(`urn:pulumi:dev::bench::machines:index:${type}::web`);
      request.setNews(structOf(inputs));
      await asked((answered) => client.check(request, answered));
    }
  } finally {
    client.close();
  }
}
