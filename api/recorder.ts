// Records spans with OpenTelemetry. Only a process that records a trace loads this file: the libraries take longer to
// load than the plugin takes to start.
import { ROOT_CONTEXT, SpanKind as Kind, SpanStatusCode, trace, type Context } from "@opentelemetry/api";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider, type SpanExporter } from "@opentelemetry/sdk-trace";
import { traceIdOf, type Recorder, type SpanKind } from "./tracing.ts";

const kinds = { client: Kind.CLIENT, server: Kind.SERVER, internal: Kind.INTERNAL } satisfies Record<SpanKind, Kind>;

/** Options of a recorder. */
export interface RecorderOptions {
  /** The name and version of the program. */
  readonly name: string;
  readonly version: string;
  readonly exporter: SpanExporter;
  /** Called with every failure to send spans. */
  readonly failed?: (error: Error) => void;
}

/** A recorder that sends spans to an exporter. */
export function openTelemetry({ name, version, exporter, failed = () => undefined }: RecorderOptions): Recorder {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": name, "service.version": version }),
    // Often, because a process that is killed loses what it has not sent. A large run fills a short queue between two
    // batches.
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reporting(exporter, failed),
        scheduledDelayMillis: 500,
        maxQueueSize: 20_000,
      }),
    ],
  });
  const tracer = provider.getTracer(name, version);
  return {
    start(spanName, kind, attributes, parent) {
      const span = tracer.startSpan(spanName, { kind: kinds[kind], attributes }, contextOf(parent));
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`,
        set: (more) => {
          for (const [key, value] of Object.entries(more)) if (value !== undefined) span.setAttribute(key, value);
        },
        fail(type) {
          span.setAttribute("error.type", type);
          span.setStatus({ code: SpanStatusCode.ERROR });
        },
        end: () => span.end(),
      };
    },
    // The process that collects the spans may have ended, and then a failure harms no one.
    close: () => provider.shutdown().catch(() => undefined),
  };
}

/** The same exporter, which also reports failures: the libraries keep them to themselves. */
const reporting = (exporter: SpanExporter, failed: (error: Error) => void): SpanExporter => ({
  export: (spans, done) =>
    exporter.export(spans, (result) => {
      if (result.error) failed(result.error);
      done(result);
    }),
  shutdown: () => exporter.shutdown(),
});

/** The context of a `traceparent` header; an invalid one begins a new trace. */
function contextOf(traceparent: string | undefined): Context {
  const traceId = traceIdOf(traceparent);
  if (traceparent === undefined || traceId === undefined) return ROOT_CONTEXT;
  const [, , spanId = "", flags = ""] = traceparent.split("-");
  const traceFlags = Number.parseInt(flags, 16) & 1;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}
