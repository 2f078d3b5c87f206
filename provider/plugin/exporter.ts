// Sends spans to the engine. Only a traced run loads this file, with the libraries.
import grpc from "@grpc/grpc-js";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { openTelemetry } from "../../api/recorder.ts";
import type { Recorder } from "../../api/tracing.ts";

/** Milliseconds that sending spans may take. The engine may have ended before it received them. */
const exportTimeout = 2000;

/** The recorder that sends to an address of the engine. */
export function engineRecorder(address: string, version: string): Recorder {
  const exporter = new OTLPTraceExporter({
    url: `http://${address}`,
    credentials: grpc.credentials.createInsecure(),
    timeoutMillis: exportTimeout,
  });
  return openTelemetry({ name: "pulumi-resource-machines", version, exporter });
}
