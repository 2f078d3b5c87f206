// The provider's process: one gRPC server on loopback; only its port is printed to standard output.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type * as Sea from "node:sea";
import grpc from "@grpc/grpc-js";
import providerGrpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import { exitAfterWork, tracked, whenEngineEnds } from "../core/engineEnd.ts";
import { onBehalfOf } from "../client/asker.ts";
import { processJournal } from "../core/journal.ts";
import { Runs } from "../core/run/run.ts";
import { engineLog } from "./engine.ts";
import { failureOf } from "./failure.ts";
import { runtimeOf } from "./language.ts";
import type { Provider, Wording } from "./protocol.ts";
import { createProvider, versionIn } from "./provider.ts";
import { withoutSecretsOf, type Telling } from "./redaction.ts";
import { fieldsOf, spelled, type Subject } from "./spelling.ts";
import { askerOf, inCall, type Asked, startTracing, type StopTracing } from "./tracing.ts";
import empty from "google-protobuf/google/protobuf/empty_pb.js";

/** Not imported, because Deno lacks it. */
const sea = process.getBuiltinModule("node:sea") as typeof Sea | undefined;

/** Serves until the engine ends it. `folder` contains the package schema, unless this is the standalone executable. */
export async function serve(args: readonly string[], folder: string): Promise<void> {
  let text: string | undefined;
  const schema = (): string => (text ??= schemaIn(folder));
  // Go's providers accept both.
  if (args.includes("--version") || args.includes("-version")) {
    process.stdout.write(`${versionIn(schema())}\n`);
    return;
  }
  const engine = engineLog();
  // The plugin speaks gRPC only with the engine, on this computer. The library would also send that through the user's proxy.
  process.env["no_grpc_proxy"] = "127.0.0.1,localhost";
  const address = engineAddress(args);
  if (address !== undefined) engine.attach(address);
  // Read while the engine connects.
  let runtime: string | undefined;
  const tracing = startTracing(() => versionIn(schema()));
  const known = Promise.all([runtimeOf(process.cwd()).then((found) => (runtime = found)), tracing]);
  const runs = new Runs(() => processJournal((message) => engine.warn("", message)));
  const wording: Wording = (request, message) => {
    const fields = fieldsOf(request);
    return spelled(runtime, fields, withoutSecretsOf(request, fields, message, runs.current.writeOnlySecrets()));
  };
  const provider = createProvider({ engine, wording, schema, runs });

  const server = new grpc.Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
  const inWords = (request: unknown) => (text: string) => wording(request as Telling & Subject, text);
  const { list, ...unary } = provider;
  const streamList: grpc.handleServerStreamingCall<rpc.ListRequest, rpc.ListResponse> = (call) => {
    const send = async (): Promise<void> => {
      for await (const item of list(call.request)) if (!call.write(item)) await once(call, "drain");
      call.end();
    };
    void tracked(
      known
        .then(() => onBehalfOf(askerOf(call.request), () => inCall("list", call.request, call.metadata, send)))
        .catch((error: unknown) => call.emit("error", failureOf(error, inWords(call.request)))),
    );
  };
  const methods = Object.entries(unary) as [string, (request: unknown) => unknown][];
  const handlers = methods.map(([name, method]): [string, grpc.handleUnaryCall<unknown, unknown>] => [
    name,
    (call, answer) => {
      void tracked(
        known
          .then(() =>
            onBehalfOf(askerOf(call.request as Asked), () =>
              inCall(name, call.request, call.metadata, async () => method(call.request)),
            ),
          )
          .then(
            (response) => answer(null, response ?? new empty.Empty()),
            (error: unknown) => answer(failureOf(error, inWords(call.request))),
          ),
      );
    },
  ]);
  server.addService(providerGrpc.ResourceProviderService, { ...Object.fromEntries(handlers), list: streamList });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  process.stdout.write(`${port}\n`);
  endWithTheEngine(provider, { server, tracing }, address !== undefined);
}

const schemaIn = (folder: string): string =>
  sea?.isSea() ? sea.getAsset("schema.json", "utf8") : readFileSync(join(folder, "schema.json"), "utf8");

/** The engine's arguments: its address, after its own flags. */
function engineAddress(args: readonly string[]): string | undefined {
  const tracing = args.indexOf("--tracing");
  return args.find((arg, i) => !arg.startsWith("-") && (tracing < 0 || i !== tracing + 1));
}

interface Serving {
  readonly server: grpc.Server;
  readonly tracing: Promise<StopTracing>;
}

/** The engine ends this process with a signal, or by exiting itself. Work in progress may finish, as after a cancellation. */
function endWithTheEngine(provider: Provider, { server, tracing }: Serving, hasEngine: boolean): void {
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    void provider.cancel(undefined);
    // The work ends first, which continues even without a listener; then its answers, which are still being sent.
    exitAfterWork(0, async () => {
      const stopTracing = await tracing;
      await stopTracing();
      await new Promise<unknown>((resolve) => server.tryShutdown(resolve));
    });
  };
  process.on("SIGINT", end);
  process.on("SIGTERM", end);
  if (hasEngine) whenEngineEnds(end);
}
