// The service's part of a trace: the log, the spans that it sends, and the libraries that it loads.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { leaks } from "../support/canaries.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { command, folder, foreground } from "./command.ts";

const trace = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${trace}-b7ad6b7169203331-01`;
const canaries = { body: "canary-of-the-body", query: "canary-of-the-query", header: "canary-of-the-header" };

/** A collector of spans, which keeps what it gets. */
async function collector(): Promise<{ url: string; received: { path: string; body: Buffer }[] }> {
  const received: { path: string; body: Buffer }[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      received.push({ path: request.url ?? "", body: Buffer.concat(parts) });
      response.setHeader("content-type", "application/x-protobuf").end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterThisTest(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

/** Sends requests with secrets in all their parts, and returns the log. */
async function traced(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { url, pid, token, end } = await foreground(folder(), args, env);
  const send = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${url}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, traceparent, "x-other": canaries.header },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const config = { image: "registry.example.com/web:1", env: { A: canaries.body } };
  await send("POST", "/apps", { app_name: "traced", org_slug: "personal" });
  const created = await send("POST", "/apps/traced/machines", { region: "ams", config });
  const { id } = (await created.json()) as { id: string };
  await send("GET", `/apps/traced/machines/${id}/wait?state=started&timeout=60`);
  await send("GET", `/apps/traced/machines?metadata.role=${canaries.query}`);
  await send("GET", `/apps/${canaries.query}/no-such-route`);
  process.kill(pid, "SIGINT");
  const { err } = await end;
  return { err, token, id };
}

const requestsIn = (log: string): { trace?: string }[] =>
  log
    .split("\n")
    .filter((line) => /^\{.*"msg":"request"\}$/.test(line)) // other output may share a line
    .map((line) => JSON.parse(line) as { trace?: string });

test("with a collector it sends spans of requests, waits and changes, without a secret", async () => {
  const { url, received } = await collector();
  const { err, token } = await traced([], { OTEL_EXPORTER_OTLP_ENDPOINT: url });
  expect(new Set(received.map(({ path }) => path))).toEqual(new Set(["/v1/traces"]));
  const sent = Buffer.concat(received.map(({ body }) => body));
  const text = sent.toString("latin1");
  for (const name of ["POST /v1/apps/{app_name}/machines", "hold", "write store"]) expect(text).toContain(name);
  expect(sent.includes(Buffer.from(trace, "hex"))).toBe(true);
  expect(leaks({ ...canaries, token }, [{ what: "the spans", text }])).toEqual([]);
  expect(new Set(requestsIn(err).map((request) => request.trace))).toEqual(new Set([trace]));
});

test("without a collector it logs the trace, and loads no library for it", async () => {
  const { err } = await traced([], { NODE_DEBUG: "module,esm" });
  const requests = requestsIn(err);
  expect(requests).not.toEqual([]);
  expect(new Set(requests.map((request) => request.trace))).toEqual(new Set([trace]));
  expect(err).not.toContain("node_modules/@opentelemetry");
});

test("spans that cannot be sent are reported once, and the service continues", async () => {
  const { err } = await traced(["--otlp-endpoint", "http://127.0.0.1:1"]);
  expect(err.split("spans could not be sent").length).toBe(2);
});

test.each(["localhost", "ftp://localhost", "http://user:canary-password@localhost:4318"])(
  "%s is refused, and not quoted",
  async (endpoint) => {
    const { code, err } = await command(["start", "--data", folder(), "--otlp-endpoint", endpoint]);
    expect(code).not.toBe(0);
    expect(err).toContain("--otlp-endpoint takes");
    expect(err).not.toContain("canary-password");
  },
);
