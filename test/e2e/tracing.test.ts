// `pulumi up --otel-traces` with the real CLI: the spans of the plugin are below those of the engine.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { leaks } from "../support/canaries.ts";
import { Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes?: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

/** The spans of one process. */
interface Part {
  readonly process: string;
  readonly text: string;
  readonly spans: readonly Span[];
}

const canaries = { env: "canary-of-the-env", secret: "canary-of-the-secret", query: "canary-of-the-query" };

let service: TestService;
let stack: Stack;

beforeAll(async () => {
  service = await startService();
  stack = new Stack(inject("installed"), "traced", "pulumi-machines-plugin");
  stack.program(`import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "traced-shop" });
new machines.AppSecrets("secrets", { app: app.name, values: { KEY: "${canaries.secret}" } });
new machines.Machine("web", {
  app: app.name,
  region: "ams",
  config: { image: "registry.example.com/web:1", env: { A: "${canaries.env}" }, metadata: { role: "${canaries.query}" } },
});
machines.getMachinesOutput({ app: app.name, metadata: { role: "${canaries.query}" } });
`);
  await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
});
afterAll(() => service.close());

const attribute = ({ attributes = [] }: Span, name: string): unknown =>
  Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0];

/** The parts of a file of the engine, which has one batch on each line. */
function partsOf(file: string): Part[] {
  const batches = readFileSync(file, "utf8").trim().split("\n");
  return batches.flatMap((line) => {
    const { resourceSpans } = JSON.parse(line) as {
      resourceSpans: { resource: Pick<Span, "attributes">; scopeSpans: { spans: Span[] }[] }[];
    };
    return resourceSpans.map((part) => ({
      process: String(attribute(part.resource as Span, "service.name")),
      text: JSON.stringify(part),
      spans: part.scopeSpans.flatMap(({ spans }) => spans),
    }));
  });
}

test("a trace has every request of a create below the engine's span, with its retry, and no secret", async () => {
  service.fail({ operation: "machines.create", when: "before", status: 500, times: 1 });
  const file = join(stack.dir, "trace.json");
  await stack.ok("up", "--yes", "--skip-preview", "--otel-traces", `file://${file}`);
  const parts = partsOf(file);
  const ours = parts.filter(({ process }) => process === "pulumi-resource-machines");
  const spans = parts.flatMap((part) => part.spans);
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const above = (span: Span): Span[] => {
    const parent = byId.get(span.parentSpanId ?? "");
    return parent ? [parent, ...above(parent)] : [];
  };

  const create = spans.find(({ name }) => name === "create Machine");
  expect(create && above(create).map(({ name }) => name)).toContain("pulumirpc.ResourceProvider/Create");
  expect(create && attribute(create, "machines.name")).toBe("web");
  const below = spans.filter((span) => create && above(span).includes(create));
  const requests = below.filter((span) => attribute(span, "machines.request.id") !== undefined);
  const sent = requests.map((span) => attribute(span, "machines.request.id"));
  // All that the service has received for this Machine, in whatever run of the engine's steps.
  const received = service.requests.filter(({ path }) => /\/machines(\/|$)/.test(path));
  expect(received.filter(({ id }) => sent.includes(id)).length).toBe(requests.length);
  const attempts = requests
    .filter((span) => attribute(span, "machines.request") === "machines.create")
    .map((span) => [
      span.name,
      attribute(span, "http.request.resend_count"),
      attribute(span, "http.response.status_code"),
    ]);
  expect(attempts).toEqual([
    ["POST /v1/apps/{app_name}/machines", "0", "500"],
    ["POST /v1/apps/{app_name}/machines", "0", "200"],
  ]);
  expect(below.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["wait for Machine", "pause before the next read"]),
  );
  expect(spans.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["check App", "create App", "create AppSecrets", "invoke getMachines"]),
  );

  // The service's log has the trace of each request.
  const [trace] = new Set(ours.flatMap((part) => part.spans.map(({ traceId }) => traceId)));
  expect(new Set(service.requests.map((request) => request.trace))).toEqual(new Set([trace]));
  // The engine's own spans quote what it sends to plugins, unless it is told not to.
  expect(
    leaks(
      { ...canaries, token: service.token },
      ours.map(({ text }) => ({ what: "a span", text })),
    ),
  ).toEqual([]);
}, 120_000);
