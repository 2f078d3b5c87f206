// The description of the service: valid by the rules of OpenAPI, and true of what the service takes and answers.
import SwaggerParser from "@apidevtools/swagger-parser";
import { describe, expect, test } from "vitest";
import type { Operation } from "../../api/operation.ts";
import { docsPage } from "../../service/openapi/docsPage.ts";
import { ManualClock } from "../../service/index.ts";
import { openapi } from "../../service/openapi/openapi.ts";
import { makeCertificate } from "../support/certificates.ts";
import { withApp } from "./client.ts";
import { answerOf, at, bodyOf, document, operationOf, rows, schemasOf, validator } from "./description.ts";

test.each([false, true])("it is valid OpenAPI 3.1 (strict: %s)", async (strict) => {
  const described = structuredClone(openapi({ strict }));
  await expect(SwaggerParser.validate(described as never)).resolves.toMatchObject({ openapi: "3.1.0" });
});

test("every operation is described once, with a unique name, all its parameters and every answer", () => {
  const all = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const ids = all.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !id.startsWith("service."))).toEqual(expect.arrayContaining(rows.map(({ id }) => id)));
  expect(ids).toHaveLength(rows.length + 3);
  for (const row of rows) {
    const { parameters = [], requestBody, responses, tags } = operationOf(row);
    const inPath = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => `{${name}}`);
    expect(inPath, row.id).toEqual(row.path.match(/\{\w+\}/g) ?? []);
    expect(requestBody !== undefined, row.id).toBe(row.body !== undefined);
    const statuses = [
      row.status,
      ...Object.keys(row.otherSuccesses ?? {}),
      ...Object.keys(row.failures),
      401,
      403,
      429,
    ];
    expect(Object.keys(responses), row.id).toEqual(expect.arrayContaining(statuses.map(String)));
    expect(tags, row.id).toEqual([row.id.split(".")[0]]);
  }
});

test("errors have the body of their family", () => {
  const errorOf = (row: Operation, status: string) =>
    operationOf(row).responses[status]?.content?.["application/json"]?.schema["$ref"];
  for (const row of rows) {
    const family = row.id.startsWith("postgres.") ? "PostgresError" : "Error";
    for (const status of Object.keys(row.failures)) {
      const expected = row.id === "machines.acquireLease" && status === "409" ? "LeaseConflict" : family;
      expect(errorOf(row, status), `${row.id} ${status}`).toBe(`#/components/schemas/${expected}`);
    }
  }
});

test("links lead from a created object to its operations, and name all their parameters", () => {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const linked = rows.flatMap((row) =>
    Object.values(operationOf(row).responses).flatMap(({ links }) =>
      Object.values(links ?? {}).map((link) => ({ from: row.id, link })),
    ),
  );
  for (const { from, link } of linked) {
    const target = byId.get(link.operationId);
    expect(Object.keys(link.parameters), `${from} to ${link.operationId}`).toEqual(
      (target?.path.match(/\{\w+\}/g) ?? []).map((name) => name.slice(1, -1)),
    );
  }
  const from = (id: string) => linked.filter((one) => one.from === id).map(({ link }) => link.operationId);
  expect(from("machines.create")).toEqual(
    expect.arrayContaining(["machines.get", "machines.update", "machines.destroy"]),
  );
  expect(from("volumes.create")).toEqual(expect.arrayContaining(["volumes.get", "volumes.update", "volumes.delete"]));
  expect(from("apps.create")).toEqual(
    expect.arrayContaining(["apps.get", "apps.delete", "machines.create", "volumes.create"]),
  );
  expect(from("postgres.create")).toEqual(
    expect.arrayContaining(["postgres.get", "postgres.delete", "postgres.createUser"]),
  );
});

describe("every example is valid", () => {
  const withBody = rows.filter(({ body }) => body !== undefined);
  test.each(withBody.map((row) => [row.id, row] as const))("of the body of %s", (_, row) => {
    const example = operationOf(row).requestBody?.content["application/json"]?.example;
    expect(example).toBeDefined();
    const valid = bodyOf(row);
    expect(valid(example), JSON.stringify(valid.errors)).toBe(true);
  });

  const components = Object.entries(document.components.schemas).filter(([, schema]) => "examples" in schema);
  test.each(components)("of %s", (name, schema) => {
    const valid = validator(`/components/schemas/${name}`);
    for (const example of schema["examples"] as unknown[])
      expect(valid(example), JSON.stringify(valid.errors)).toBe(true);
  });

  test("and everything that can be answered by name has one", () => {
    const without = Object.entries(document.components.schemas)
      .filter(([name, schema]) => !("examples" in schema) && !name.endsWith("Request"))
      .map(([name]) => name);
    expect(without).toEqual([
      "DnsRecords",
      "DnsRequirements",
      "EnvFrom",
      "HttpHeader",
      "MachineFile",
      "MachineGuest",
      "MachineRestart",
      "MachineStopConfig",
      "ProcessSecret",
    ]);
  });
});

test.each([
  [
    "machines.create",
    { config: { image: "nginx", stop_config: { timeout: 5e9, signal: 15 }, env: null, guest: null } },
  ],
  ["machines.create", { config: { image: "nginx", env: { GONE: null } }, name: null }],
  ["machines.patchMetadata", { metadata: { a: null } }],
  ["secretKeys.sign", { plaintext: [104, 105] }],
  ["machines.signal", { signal: 10 }],
  ["volumes.create", { name: "data", size_gb: null }],
])("what %s takes in other spellings is described: %j", async (id, body) => {
  const row = rows.find((one) => one.id === id);
  const valid = row && bodyOf(row);
  expect(valid?.(body), JSON.stringify(valid?.errors)).toBe(true);
});

test.each([
  ["machines.create", { config: {} }],
  ["machines.create", { config: { image: null } }],
  ["machines.create", { config: { image: "nginx", stop_config: { timeout: -1 } } }],
  ["machines.create", { config: { image: "nginx" }, name: "No Good" }],
  ["volumes.create", { name: "data", size_gb: 501 }],
  ["secrets.update", { values: { "not a name": "x" } }],
  ["machines.signal", { signal: 64 }],
  ["machines.signal", {}],
])("what %s refuses is not described: %j", async (id, body) => {
  const row = rows.find((one) => one.id === id);
  expect(row && bodyOf(row)(body)).toBe(false);
});

test("a strict service describes that it takes no other fields", () => {
  const strict = schemasOf(openapi({ strict: true }));
  const create = rows.find(({ id }) => id === "apps.create");
  if (!create) throw new Error("apps.create is no operation");
  const pointer = at(create, "requestBody/content/application~1json/schema");
  expect(strict(pointer)({ name: "web", colour: "red" })).toBe(false);
  expect(validator(pointer)({ name: "web", colour: "red" })).toBe(true);
});

test("answers hold what is described and nothing else", () => {
  const get = rows.find(({ id }) => id === "machines.get");
  if (!get) throw new Error("machines.get is no operation");
  const valid = answerOf(get, 200);
  const machine = { id: "3d8d413b29d089", state: "started" };
  expect(valid(machine)).toBe(true);
  expect(
    valid({ ...machine, config: { image: "nginx", novelty: true } }),
    "unknown fields of a configuration are kept",
  ).toBe(true);
  expect(valid({ ...machine, novelty: true })).toBe(false);
  expect(valid({ ...machine, name: null })).toBe(false);
  expect(valid({ id: "3d8d413b29d089" })).toBe(false);
});

test("every operation answers as described, done or refused", async () => {
  const { service, call, machine, volume } = await withApp({ clock: new ManualClock() });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const done = new Set<string>();
  const told = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await call(method, path, body, headers);
    const id = service.audit.after(service.audit.last - 1)[0]?.operation ?? "none";
    const row = byId.get(id);
    if (!row) throw new Error(`${method} ${path} is no operation`);
    const { content } = operationOf(row).responses[answer.status] ?? { content: null };
    expect(content, `${id} answered ${answer.status} ${answer.text}`).not.toBeNull();
    if (content) {
      const valid = answerOf(row, answer.status);
      expect(valid(answer.body), `${id} ${answer.status} ${answer.text} ${JSON.stringify(valid.errors)}`).toBe(true);
    } else expect(answer.text, id).toBe("");
    if (answer.status < 300) done.add(id);
    return answer.body;
  };
  const example = (id: string) =>
    operationOf(byId.get(id) as Operation).requestBody?.content["application/json"]?.example;

  await told("POST", "/apps", { name: "side", org_slug: "personal" });
  for (const path of ["/apps?org_slug=personal", "/apps/side", "/apps/none", "/platform/regions", "/tokens/current"])
    await told("GET", path);
  await told("POST", "/apps/side/deploy_token", example("apps.createDeployToken"));
  await told("POST", "/platform/placements", example("platform.placements"));
  for (const type of ["v4", "v6", "shared_v4", "private_v6", "egress_v4", "egress_v6", "egress_pair"])
    await told("POST", "/apps/side/ip_assignments", { type });
  const { ips } = await told("GET", "/apps/side/ip_assignments");
  for (const one of [ips[0].ip, "192.0.2.1"]) await told("DELETE", `/apps/side/ip_assignments/${one}`);

  const { id: disk } = await volume({ region: "ams" });
  const { id } = await machine(
    {
      mounts: [{ volume: disk, path: "/data" }],
      services: [{ protocol: "tcp", internal_port: 80, checks: [{ type: "tcp" }] }],
    },
    { region: "ams", lease_ttl: 30 },
  );
  const path = `/apps/web/machines/${id}`;
  const { nonce } = (await call("GET", `${path}?include_leases=true`)).body;
  expect(nonce).toBeUndefined();
  for (const query of ["", "?summary=true", "?include_leases=true", "?metadata.role=x", "?limit=1", "?state=bogus"])
    await told("GET", `/apps/web/machines${query}`);
  await told("POST", "/apps/web/machines", { config: { image: "nginx:simulate-exit-1", restart: { policy: "no" } } });
  await told("POST", "/apps/web/machines", { config: {} });
  for (const more of [
    "",
    "?include_leases=true",
    "/lease",
    "/events",
    "/versions",
    "/ps",
    "/memory",
    "/metadata",
    "/wait",
  ])
    await told("GET", `${path}${more}`);
  await told("POST", `${path}/cordon`);
  await told("POST", `${path}/lease`, { ttl: 60 });
  service.context.clock.advance(30_000);
  const lease = (await told("POST", `${path}/lease`, example("machines.acquireLease"))).data.nonce;
  const holder = { "svc-machine-lease-nonce": lease };
  await told("POST", `${path}/stop`);
  for (const [verb, body] of [["cordon"], ["uncordon"], ["restart"], ["suspend"], ["start"], ["stop", {}]] as const)
    await told("POST", `${path}/${verb}`, body, holder);
  await told("POST", `${path}/exec`, example("machines.exec"));
  await told(
    "POST",
    path,
    { config: { image: "nginx:2", mounts: [{ volume: disk, path: "/data" }], metadata: { a: "1" } } },
    holder,
  );
  await told("DELETE", `${path}/lease`, undefined, holder);
  await told("DELETE", `${path}/lease`, undefined, holder);
  await told("POST", `${path}/start`);
  for (const verb of ["exec", "signal"] as const) await told("POST", `${path}/${verb}`, example(`machines.${verb}`));
  await told("PUT", `${path}/memory`, { limit_mb: 128 });
  await told("POST", `${path}/memory/reclaim`, example("machines.reclaimMemory"));
  await told("PATCH", `${path}/metadata`, example("machines.patchMetadata"));
  await told("PUT", `${path}/metadata`, { metadata: {}, machine_version: "stale" });
  await told("PUT", `${path}/metadata`, example("machines.putMetadata"));
  await told("POST", `${path}/metadata/role`, example("machines.setMetadataKey"));
  for (const method of ["GET", "DELETE", "GET"]) await told(method, `${path}/metadata/role`);
  for (const list of ["machines", "volumes"]) await told("GET", `/orgs/personal/${list}`);
  for (const list of ["machines", "volumes"]) await told("GET", `/orgs/personal/${list}?summary=true&limit=1`);

  const volumes = "/apps/web/volumes";
  await told("POST", volumes, example("volumes.create"));
  await told("POST", `${volumes}/${disk}/snapshots`);
  for (const more of ["", `/${disk}`, `/${disk}/snapshots`, "/none", "?summary=true"])
    await told("GET", `${volumes}${more}`);
  await told("PUT", `${volumes}/${disk}`, example("volumes.update"));
  await told("PUT", `${volumes}/${disk}/extend`, example("volumes.extend"));
  await told("DELETE", `${volumes}/${disk}`);
  await told("DELETE", path);
  await told("DELETE", `${path}?force=true`);
  await told("GET", path);
  service.context.clock.advance(1000);
  await told("DELETE", `${volumes}/${disk}`);

  const certificates = "/apps/web/certificates";
  await told("POST", `${certificates}/acme`, example("certificates.createAcme"));
  await told("POST", `${certificates}/acme`, { hostname: "nothing.invalid" });
  await told("POST", `${certificates}/custom`, example("certificates.createCustom"));
  service.context.clock.advance(60_000);
  await told("POST", `${certificates}/custom`, {
    ...makeCertificate({ hosts: ["up.example.com"] }),
    hostname: "up.example.com",
  });
  await told("GET", certificates);
  for (const name of ["www.example.com", "nothing.invalid", "up.example.com", "none.example.com"]) {
    await told("GET", `${certificates}/${name}`);
    await told("POST", `${certificates}/${name}/check`);
    for (const more of ["/acme", "/custom", ""]) await told("DELETE", `${certificates}/${name}${more}`);
  }

  await told("POST", "/apps/web/secrets", { values: { A: "1" } });
  await told("POST", "/apps/web/secrets/B", example("secrets.set"));
  for (const more of ["", "?show_secrets=true", "/A", "/A?show_secrets=true", "/NONE"])
    await told("GET", `/apps/web/secrets${more}`);
  await told("DELETE", "/apps/web/secrets/A");
  const keys = "/apps/web/secretkeys";
  await told("POST", `${keys}/S`, example("secretKeys.set"));
  await told("POST", `${keys}/E/generate`, example("secretKeys.generate"));
  await told("POST", `${keys}/N/generate`, { type: "nacl_sign" });
  for (const more of ["", "/S", "/N", "/NONE"]) await told("GET", `${keys}${more}`);
  const { plaintext } = example("secretKeys.sign") as { plaintext: string };
  const { signature } = await told("POST", `${keys}/S/sign`, { plaintext });
  await told("POST", `${keys}/S/verify`, { plaintext, signature });
  await told("POST", `${keys}/S/verify`, example("secretKeys.verify"));
  const { ciphertext } = await told("POST", `${keys}/E/encrypt`, { plaintext });
  await told("POST", `${keys}/E/decrypt`, { ciphertext });
  await told("DELETE", `${keys}/S`);

  const cluster = (await told("POST", "/postgres", example("postgres.create"))).data.id;
  await told("POST", "/postgres", { org_slug: "personal" });
  const one = `/postgres/${cluster}`;
  await told("GET", "/postgres?org_slug=personal");
  await told("GET", "/postgres?org_slug=personal&include_deleted=perhaps");
  await told("GET", one);
  for (const _ of ["created", "there already"]) await told("POST", `${one}/attachments`, example("postgres.attach"));
  for (const more of ["active", "active?database=none", "slow", "slow?range=1h", "slow?range=long"])
    await told("GET", `${one}/queries/${more}`);
  await told("POST", `${one}/databases`, example("postgres.createDatabase"));
  await told("POST", `${one}/databases/orders/extensions`, example("postgres.installExtension"));
  await told("POST", `${one}/users`, example("postgres.createUser"));
  await told("PATCH", `${one}/users/reporting`, example("postgres.updateUser"));
  await told("POST", `${one}/users/reporting/rotate_password`, example("postgres.rotatePassword"));
  const { id: saved } = (await told("POST", `${one}/backups`, example("postgres.createBackup"))).data;
  for (const more of [
    "/databases",
    "/databases/orders/extensions",
    "/users",
    "/users/reporting/credentials",
    "/backups",
    "",
  ])
    await told("GET", `${one}${more}`);
  service.context.clock.advance(60_000);
  await told("GET", `${one}/backups`);
  await told("POST", `${one}/restore`, { backup_id: saved, name: "restored" });
  await told("POST", `${one}/fork`, example("postgres.fork"));
  for (const more of [
    "/databases/orders/extensions/hstore",
    "/databases/orders",
    "/users/reporting",
    "/attachments/web",
    "",
    "",
    "/users/x",
  ])
    await told("DELETE", `${one}${more}`);
  await told("GET", "/postgres?org_slug=personal&include_deleted=true");
  await told("DELETE", "/apps/side");
  expect(rows.map((row) => row.id).filter((row) => !done.has(row))).toEqual([]);
});

test("it is served without a token, as one text", async () => {
  const { url } = await withApp();
  const ask = async () => {
    const response = await fetch(`${url}/openapi.json`);
    return [response.status, response.headers.get("content-type"), await response.text()];
  };
  const [status, type, text] = await ask();
  expect([status, type]).toEqual([200, "application/json; charset=utf-8"]);
  expect(JSON.parse(String(text))).toEqual(JSON.parse(JSON.stringify(openapi({ strict: true }))));
  expect((await ask())[2]).toBe(text);
});

test("the page for people names every operation, loads nothing and runs nothing", async () => {
  const { url } = await withApp();
  const response = await fetch(`${url}/docs`);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  const page = await response.text();
  for (const { id, path } of rows) {
    expect(page).toContain(`id="${id}"`);
    expect(page).toContain(`<code>${path}</code>`);
  }
  expect(page).not.toMatch(/<script|<link|<img|src=|@import|url\(|https?:\/\//);
  const anchors = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const targets = [...page.matchAll(/href="#([^"]+)"/g)].map(([, target]) => target);
  expect(targets.filter((target) => !anchors.has(target))).toEqual([]);
});

test("what stands in the description is text on the page", () => {
  const page = docsPage({ ...document, tags: [{ name: "apps", description: '<b>"&`<i>`' }] });
  expect(page).toContain("&lt;b&gt;&quot;&amp;<code>&lt;i&gt;</code>");
});
