// The trace of `pulumi up --otel-traces`: one span for each call of the engine, below the engine's own.
import type grpc from "@grpc/grpc-js";
import { inSpan, recordWith, type Attributes } from "../../api/tracing.ts";

/** Ends the recording after it sent all spans. */
export type StopTracing = () => Promise<void>;

/** Records spans if the engine has named an address for them. The libraries are loaded only then. */
export async function startTracing(
  version: () => string,
  address = process.env["PULUMI_OTEL_EXPORTER_OTLP_ENDPOINT"],
): Promise<StopTracing> {
  if (address === undefined || address === "") return () => Promise.resolve();
  const { engineRecorder } = await import("./exporter.ts");
  const recorder = engineRecorder(address, version());
  recordWith(recorder);
  return () => recorder.close();
}

/** The calls that have a span; the others send nothing and take no time. */
const traced: ReadonlySet<string> = new Set([
  ...["check", "diff", "create", "read", "update", "delete", "invoke", "list"],
  ...["construct", "call"],
]);

/** The parts of the calls' requests that say what they are about. */
export interface Asked {
  getUrn?(): string;
  getTok?(): string;
  getToken?(): string;
  getType?(): string;
  getPreview?(): boolean;
  getDryrun?(): boolean;
}

/** Answers a call of the engine in a span of its own. */
export function inCall<T>(name: string, request: unknown, metadata: grpc.Metadata, work: () => Promise<T>): Promise<T> {
  if (!traced.has(name)) return work();
  const [parent] = metadata.get("traceparent");
  const { type, ...attributes } = about(request as Asked);
  return inSpan(
    `${name} ${type}`,
    {
      traceparent: parent?.toString(),
      attributes: { "machines.operation": name, "machines.type": type, ...attributes },
    },
    work,
  );
}

/** The resource that a call is about, by its URN, or the type or function, by its token. Empty if it is about none. */
export const askerOf = (request: Asked): string =>
  request.getUrn?.() || (request.getTok?.() ?? request.getToken?.() ?? "");

function about(request: Asked): Attributes & { readonly type: string } {
  // A URN ends in the type, after those of its parents, and the name.
  const [, , types = request.getType?.() ?? "", ...name] = request.getUrn?.().split("::") ?? [];
  const token = request.getTok?.() ?? request.getToken?.() ?? types.slice(types.lastIndexOf("$") + 1);
  return {
    type: token.slice(token.lastIndexOf(":") + 1),
    "machines.name": name.length > 0 ? name.join("::") : undefined,
    "machines.preview": request.getPreview?.() ?? request.getDryrun?.(),
  };
}
