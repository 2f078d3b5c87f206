// The plugin's process with and without a trace: the modules that it loads, and the spans that it sends.
import { expect, test } from "vitest";
import grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterThisTest } from "../support/leftovers.ts";
import { standalone, startPlugin } from "../support/plugin.ts";
import { secret, toStruct } from "../support/properties.ts";
import { startService } from "../support/startService.ts";

const canary = "canary-of-the-query";

/** A collector of spans like the engine's, which keeps the batches. */
async function collector(): Promise<{ address: string; received: Buffer[] }> {
  const received: Buffer[] = [];
  const asIs = (bytes: Buffer): Buffer => bytes;
  const server = new grpc.Server();
  server.addService(
    {
      export: {
        path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        requestStream: false,
        responseStream: false,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    },
    {
      export: (call: { request: Buffer }, answer: (error: null, response: Buffer) => void) => {
        received.push(call.request);
        answer(null, Buffer.alloc(0));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  afterThisTest(() => server.forceShutdown());
  return { address: `127.0.0.1:${port}`, received };
}

/** Calls a function in a plugin whose first request fails; returns the modules that Node.js says it loads. */
async function called(env: Readonly<Record<string, string>>): Promise<{ loaded: string; traces: unknown[] }> {
  const service = await startService();
  afterThisTest(() => service.close());
  const plugin = await startPlugin({ env: { ...env, NODE_DEBUG: "module" } });
  const args = toStruct({ endpoint: service.url, token: secret(service.token) });
  await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
  service.fail({ operation: "orgs.machines", when: "before", status: 503, times: 1 });
  const request = new proto.InvokeRequest().setTok("machines:index:getOrgMachines");
  await plugin.client
    .invoke(request.setArgs(toStruct({ region: canary, organization: "personal" })))
    .catch(() => undefined);
  await plugin.close();
  return { loaded: plugin.written.stderr, traces: service.requests.map(({ trace }) => trace) };
}

test("a run without a trace loads no library for it, and sends no header", async () => {
  const { loaded, traces } = await called({});
  // The standalone executable reads no files.
  if (standalone === undefined) expect(loaded).toContain("server.js");
  expect(loaded).not.toContain("exporter.js");
  expect(new Set(traces)).toEqual(new Set([undefined]));
});

test("a traced run sends each attempt before it ends, and no query", async () => {
  const { address, received } = await collector();
  const { loaded, traces } = await called({ PULUMI_OTEL_EXPORTER_OTLP_ENDPOINT: address });
  if (standalone === undefined) expect(loaded).toContain("exporter.js");
  expect(traces.length).toBeGreaterThan(1);
  expect(traces).not.toContain(undefined);
  const text = Buffer.concat(received).toString("latin1");
  expect(text.split("http.request.resend_count").length - 1).toBe(traces.length);
  expect(text).toContain("pause before the next attempt");
  expect(text).toContain("invoke getOrgMachines");
  expect(text).not.toContain(canary);
});

test("a plugin whose collector is gone ends in time", async () => {
  const { traces } = await called({ PULUMI_OTEL_EXPORTER_OTLP_ENDPOINT: "127.0.0.1:1" });
  expect(traces).not.toContain(undefined);
});
