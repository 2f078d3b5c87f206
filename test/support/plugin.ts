// The built plugin as the engine runs it: a process of its own, called over gRPC, with an engine to report to.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTo, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import any from "google-protobuf/google/protobuf/any_pb.js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";
import engineGrpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import type { LogRequest } from "@pulumi/pulumi/proto/engine_pb.js";
import providerGrpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import status from "@pulumi/pulumi/proto/status_pb.js";
import { fromStruct, type Properties } from "./properties.ts";
import { hang } from "./patience.mts";

/** The standalone executable, in the tests that run on it (vitest.config.mts). */
export const standalone = process.env["PULUMI_MACHINES_STANDALONE"];

/** The tested executable: the one in the repository's root, or the standalone one. */
export const executable = standalone ?? join(__dirname, "../../pulumi-resource-machines");

type Service = typeof providerGrpc.ResourceProviderService;

/** The protocol's methods, each as a promise; a stream is collected. */
export type Client = {
  readonly [
    Method in keyof Service as string extends Method ? never : Method
  ]: Service[Method] extends grpc.MethodDefinition<infer Request, infer Response>
    ? (request: Request) => Promise<Method extends "list" ? Response[] : Response>
    : never;
};

/** A running plugin. */
export interface Plugin {
  readonly client: Client;
  readonly pid: number;
  readonly port: number;
  /** Its home and working directory. */
  readonly home: string;
  /** Its output so far. */
  readonly written: { readonly stdout: string; readonly stderr: string };
  /** How it exited. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  signal(name: NodeJS.Signals): void;
  /** Stops it as the engine does: cancels, then kills. */
  close(): Promise<void>;
}

/** Options for starting a plugin. */
export interface PluginOptions {
  /** The command with its first arguments; the executable if omitted. */
  readonly command?: readonly [string, ...string[]];
  /** The engine's arguments, with its address last. A plugin that got one exits when its parent process does. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The project file of its working directory: the engine starts it in the project's. */
  readonly project?: string;
}

/** Starts the plugin and reads its port. It gets none of this computer's configuration. */
export async function startPlugin({
  command: [program, ...first] = [executable],
  args = ["127.0.0.1:1"],
  env = {},
  project,
}: PluginOptions = {}): Promise<Plugin> {
  if (!existsSync(join(__dirname, "../../provider/dist/main.js")))
    throw new Error("the plugin has not been built: run npm run build");
  const home = mkdtempSync(join(tmpdir(), "machines-plugin-"));
  if (project !== undefined) writeFileSync(join(home, "Pulumi.yaml"), project);
  const inherited = Object.entries(process.env).filter(([name]) => !/^(MACHINES|PULUMI)_/.test(name));
  const child = spawn(program, [...first, ...args], {
    cwd: home,
    env: { ...Object.fromEntries(inherited), PULUMI_HOME: home, MACHINES_MIN_HEALTHY_SECONDS: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const written = { stdout: "", stderr: "" };
  child.stderr.setEncoding("utf8").on("data", (text: string) => (written.stderr += text));
  const ended = new Promise<Awaited<Plugin["ended"]>>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      written.stdout += text;
      if (written.stdout.includes("\n")) resolve(Number(/^(\d+)\n/.exec(written.stdout)?.[1]));
    });
    void ended.then(({ code }) => reject(new Error(`the plugin ended with ${code} at once: ${written.stderr}`)));
  });
  const { client, close: hangUp } = connect(port);
  return {
    client,
    pid: child.pid ?? 0,
    port,
    home,
    written,
    ended,
    signal: (name) => void child.kill(name),
    async close() {
      hangUp();
      child.kill("SIGINT");
      const timer = setTimeout(() => child.kill("SIGKILL"), hang);
      await ended;
      clearTimeout(timer);
      rmSync(home, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** A client of a listening plugin. */
export function connect(port: number): { readonly client: Client; readonly close: () => void } {
  const raw = new providerGrpc.ResourceProviderClient(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
  const methods = Object.entries(providerGrpc.ResourceProviderService as unknown as grpc.ServiceDefinition).map(
    ([name, definition]) => [
      name,
      (request: unknown) =>
        new Promise((resolve, reject) => {
          if (definition.responseStream) {
            const { path, requestSerialize, responseDeserialize } = definition;
            return resolve(raw.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request).toArray());
          }
          raw.makeUnaryRequest(
            definition.path,
            definition.requestSerialize,
            definition.responseDeserialize,
            request,
            (error, response) => (error ? reject(error) : resolve(response)),
          );
        }),
    ],
  );
  return { client: Object.fromEntries(methods) as Client, close: () => raw.close() };
}

/** A connection to a plugin that a test can inspect and cut. */
export interface Wire {
  readonly client: Client;
  /** The data that the plugin sent. */
  answered(): Buffer;
  /** Ends the connection like the exit of a process. */
  cut(): void;
  close(): void;
}

/** Connects to a plugin. Its data reaches the client while `passes` returns true. */
export async function wireTo(port: number, passes: (answered: Buffer) => boolean = () => true): Promise<Wire> {
  let answered = Buffer.alloc(0);
  const ends = new Set<Socket>();
  const middle = createServer((client) => {
    const server = connectTo(port, "127.0.0.1");
    client.pipe(server);
    server.on("data", (part) => {
      answered = Buffer.concat([answered, part]);
      if (passes(answered)) client.write(part);
    });
    for (const end of [client, server]) ends.add(end.on("error", () => undefined));
  });
  await new Promise<void>((resolve) => middle.listen(0, "127.0.0.1", resolve));
  const { client, close } = connect((middle.address() as AddressInfo).port);
  const cut = (): void => {
    middle.close();
    for (const end of ends) end.destroy();
  };
  return {
    client,
    answered: () => answered,
    cut,
    close() {
      close();
      cut();
    },
  };
}

/** What the engine reads from an "initialization failed". */
export interface Unfinished {
  readonly id: string;
  readonly state: Properties;
  readonly reasons: readonly string[];
  /** Whether the engine reads it before the next diff. */
  readonly refreshBeforeUpdate: boolean;
}

/** The object in an error's details, if any. */
export function unfinishedIn(error: unknown): Unfinished | undefined {
  const [packed] = (error as grpc.ServiceError).metadata?.get("grpc-status-details-bin") ?? [];
  if (!Buffer.isBuffer(packed)) return undefined;
  const [detail = new any.Any()] = status.Status.deserializeBinary(packed).getDetailsList();
  const found = detail.unpack(
    (bytes) => proto.ErrorResourceInitFailed.deserializeBinary(bytes),
    "pulumirpc.ErrorResourceInitFailed",
  );
  const properties = found?.getProperties();
  if (!found || !properties) return undefined;
  return {
    id: found.getId(),
    state: fromStruct(properties, { unknowns: false }),
    reasons: found.getReasonsList(),
    refreshBeforeUpdate: found.getRefreshBeforeUpdate(),
  };
}

/** A message that the engine would show. */
export interface Logged {
  readonly severity: "debug" | "info" | "warning" | "error";
  readonly urn: string;
  readonly message: string;
  /** Shown only until the resource is done. */
  readonly ephemeral: boolean;
}

/** An engine that receives the messages of plugins. */
export interface FakeEngine {
  readonly address: string;
  readonly logs: Logged[];
  close(): void;
}

/** Starts an engine. */
export async function startEngine(): Promise<FakeEngine> {
  const logs: Logged[] = [];
  const server = new grpc.Server();
  server.addService(engineGrpc.EngineService, {
    log: ({ request }: { request: LogRequest }, answer: grpc.sendUnaryData<unknown>) => {
      logs.push({
        severity: (["debug", "info", "warning", "error"] as const)[request.getSeverity()],
        urn: request.getUrn(),
        message: request.getMessage(),
        ephemeral: request.getEphemeral(),
      });
      answer(null, new empty.Empty());
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { address: `127.0.0.1:${port}`, logs, close: () => server.forceShutdown() };
}
