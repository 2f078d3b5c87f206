// Sends the spans of the service to an OpenTelemetry collector.
import { recordWith, type Recorder } from "../../api/tracing.ts";
import { version } from "../version.ts";
import { Problem } from "./problem.ts";

/** Milliseconds that sending spans may take; the service waits for it when it ends. */
const exportTimeout = 2000;

/**
 * Records the spans of this process if there is a collector. The libraries are loaded only then. The first failure to
 * send spans is reported; more would fill the log.
 */
export async function startTracing(
  endpoint: string | undefined,
  report: (error: Error) => void,
): Promise<Recorder | undefined> {
  if (endpoint === undefined) return undefined;
  const url = urlOf(endpoint);
  const [{ openTelemetry }, { OTLPTraceExporter }] = await Promise.all([
    import("../../api/recorder.ts"),
    import("@opentelemetry/exporter-trace-otlp-proto"),
  ]);
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: exportTimeout });
  let isReported = false;
  const failed = (error: Error): void => {
    if (!isReported) report(error);
    isReported = true;
  };
  const recorder = openTelemetry({ name: "machines-service", version, exporter, failed });
  recordWith(recorder);
  return recorder;
}

/** The URL that gets spans. No message quotes the given one, which may contain a password. */
function urlOf(endpoint: string): string {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new Problem("--otlp-endpoint takes the URL of an OpenTelemetry collector, such as http://localhost:4318");
  if (url.username !== "" || url.password !== "")
    throw new Problem("--otlp-endpoint takes a URL without a password; put it into OTEL_EXPORTER_OTLP_HEADERS");
  return `${url.href.replace(/\/$/, "")}/v1/traces`;
}
