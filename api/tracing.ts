// Spans of a trace: the places where time goes. Client and service share them. Nothing is recorded, and no library is
// loaded, until a process asks for a recorder (recorder.ts).
import { AsyncLocalStorage } from "node:async_hooks";

/** Facts about a span. None may be a secret: a trace is given to others. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A part of a trace. */
export interface Span {
  /** The header that continues the trace in another process. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  /** Marks it as failed. The type of an error is no secret, but its message may quote one. */
  fail(type: string): void;
  end(): void;
}

/** The side of a call that a span shows; most spans show neither. */
export type SpanKind = "client" | "server" | "internal";

/** A span to begin. */
export interface SpanOptions {
  readonly kind?: SpanKind;
  /** The header of the process that requested the work. By default, the span belongs to the one around it. */
  readonly traceparent?: string | undefined;
  readonly attributes?: Attributes;
}

/** Where spans go. */
export interface Recorder {
  /** Starts a span below the one with this header, or a new trace without one. */
  start(name: string, kind: SpanKind, attributes: Attributes, parent: string | undefined): Span;
  /** Sends all that is recorded, and ends. */
  close(): Promise<void>;
}

const active = new AsyncLocalStorage<Span>();
let recorder: Recorder | undefined;

/** Records the spans of this process from now on, or stops it. */
export function recordWith(chosen: Recorder | undefined): void {
  recorder = chosen;
}

/** Whether spans are recorded. What only describes a span is not calculated otherwise. */
export const isRecording = (): boolean => recorder !== undefined;

/** Begins a span that its caller ends; undefined if nothing is recorded. */
export const startSpan = (
  name: string,
  { kind = "internal", traceparent, attributes = {} }: SpanOptions = {},
): Span | undefined => recorder?.start(name, kind, attributes, traceparent ?? active.getStore()?.traceparent);

/** Does work whose spans are below this one. */
export const below = <T>(span: Span | undefined, work: () => T): T => (span ? active.run(span, work) : work());

/** Does work in a span of its own, which fails and ends with it. */
export async function inSpan<T>(
  name: string,
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  const span = startSpan(name, options);
  if (!span) return work(undefined);
  try {
    return await below(span, () => work(span));
  } catch (error) {
    span.fail(typeOf(error));
    throw error;
  } finally {
    span.end();
  }
}

/** The code of an error of ours, and the class of others. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

/** The id of the trace in a `traceparent` header; undefined if it is none. */
export function traceIdOf(traceparent: unknown): string | undefined {
  if (typeof traceparent !== "string") return undefined;
  const [, id] = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent) ?? [];
  return id;
}
