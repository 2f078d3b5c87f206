// The OpenAPI description of the service: valid, and consistent with what the service accepts and answers.
import SwaggerParser from "@apidevtools/swagger-parser";
import { describe, expect, test } from "vitest";
import type { Operation } from "../../api/operation.ts";
import { ManualClock } from "../../service/index.ts";
import { openapi } from "../../service/openapi/openapi.ts";
import { makeCertificate } from "../support/certificates.ts";
import { withApp } from "./client.ts";
import {
  answerOf,
  answerProblem,
  at,
  bodyOf,
  document,
  operationOf,
  rows,
  schemasOf,
  validator,
} from "./description.ts";

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

test("errors have the body of their operation's family", () => {
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

test("every operation is summed up in one sentence", () => {
  const all = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  for (const { operationId, summary } of all) expect(summary, operationId).toMatch(/^[A-Z][a-z]+s [^\n]+[^.]\.$/);
  for (const row of rows) expect(operationOf(row).summary).toBe(row.summary);
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
  test.each(withBody.map((row) => [row.id, row] as const))("the example of the body of %s is valid", (_, row) => {
    const example = operationOf(row).requestBody?.content["application/json"]?.example;
    expect(example).toBeDefined();
    const valid = bodyOf(row);
    expect(valid(example), JSON.stringify(valid.errors)).toBe(true);
  });

  const components = Object.entries(document.components.schemas).filter(([, schema]) => "examples" in schema);
  test.each(components)("the example of %s is valid", (name, schema) => {
    const valid = validator(`/components/schemas/${name}`);
    for (const example of schema["examples"] as unknown[])
      expect(valid(example), JSON.stringify(valid.errors)).toBe(true);
  });

  test("every answer with a name has an example", () => {
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
])("other spellings that %s accepts are described: %j", async (id, body) => {
  const row = rows.find((one) => one.id === id);
  const valid = row && bodyOf(row);
  expect(valid?.(body), JSON.stringify(valid?.errors)).toBe(true);
});

test.each([
  ["machines.create", { config: {} }],
  ["machines.create", { config: { image: null } }],
  ["machines.create", { config: { image: "nginx", stop_config: { timeout: -1 } } }],
  ["machines.create", { config: { image: "nginx" }, name: "No Good" }],
  ["machines.create", { config: { image: "hello world" } }],
  ["machines.create", { config: { image: "nginx", containers: [{ name: "side", image: "Side" }] } }],
  ["volumes.create", { name: "data", size_gb: 501 }],
  ["secrets.update", { values: { "not a name": "x" } }],
  ["machines.signal", { signal: 64 }],
  ["machines.signal", {}],
])("the description excludes what %s refuses: %j", async (id, body) => {
  const row = rows.find((one) => one.id === id);
  expect(row && bodyOf(row)(body)).toBe(false);
});

test("a strict service describes that it accepts no other fields", () => {
  const strict = schemasOf(openapi({ strict: true }));
  const create = rows.find(({ id }) => id === "apps.create");
  if (!create) throw new Error("apps.create is no operation");
  const pointer = at(create, "requestBody/content/application~1json/schema");
  expect(strict(pointer)({ name: "web", colour: "red" })).toBe(false);
  expect(validator(pointer)({ name: "web", colour: "red" })).toBe(true);
});

test("answers have the described fields and no others", () => {
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

// test/client/operations.test.ts has every operation; here are the examples, and as many kinds of answers as possible.
test("successes and refusals are answered as described", async () => {
  const { service, call, machine, volume } = await withApp({ clock: new ManualClock() });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const checkedCall = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await call(method, path, body, headers);
    const id = service.audit.after(service.audit.last - 1)[0]?.operation ?? "none";
    expect(answerProblem(id, answer.status, answer.text), `${method} ${path}`).toBeUndefined();
    return answer.body;
  };
  const example = (id: string) =>
    operationOf(byId.get(id) as Operation).requestBody?.content["application/json"]?.example;

  await checkedCall("POST", "/apps", { name: "side", org_slug: "personal" });
  for (const path of ["/apps?org_slug=personal", "/apps/side", "/apps/none", "/platform/regions", "/tokens/current"])
    await checkedCall("GET", path);
  await checkedCall("POST", "/apps/side/deploy_token", example("apps.createDeployToken"));
  await checkedCall("POST", "/platform/placements", example("platform.placements"));
  for (const type of ["v4", "v6", "shared_v4", "private_v6", "egress_v4", "egress_v6", "egress_pair"])
    await checkedCall("POST", "/apps/side/ip_assignments", { type });
  const { ips } = await checkedCall("GET", "/apps/side/ip_assignments");
  for (const one of [ips[0].ip, "192.0.2.1"]) await checkedCall("DELETE", `/apps/side/ip_assignments/${one}`);

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
    await checkedCall("GET", `/apps/web/machines${query}`);
  await checkedCall("POST", "/apps/web/machines", {
    config: { image: "nginx:simulate-exit-1", restart: { policy: "no" } },
  });
  await checkedCall("POST", "/apps/web/machines", { config: {} });
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
    await checkedCall("GET", `${path}${more}`);
  await checkedCall("POST", `${path}/cordon`);
  await checkedCall("POST", `${path}/lease`, { ttl: 60 });
  service.context.clock.advance(30_000);
  const lease = (await checkedCall("POST", `${path}/lease`, example("machines.acquireLease"))).data.nonce;
  const holder = { "svc-machine-lease-nonce": lease };
  await checkedCall("POST", `${path}/stop`);
  for (const [verb, body] of [["cordon"], ["uncordon"], ["restart"], ["suspend"], ["start"], ["stop", {}]] as const)
    await checkedCall("POST", `${path}/${verb}`, body, holder);
  await checkedCall("POST", `${path}/exec`, example("machines.exec"));
  await checkedCall(
    "POST",
    path,
    { config: { image: "nginx:2", mounts: [{ volume: disk, path: "/data" }], metadata: { a: "1" } } },
    holder,
  );
  await checkedCall("DELETE", `${path}/lease`, undefined, holder);
  await checkedCall("DELETE", `${path}/lease`, undefined, holder);
  await checkedCall("POST", `${path}/start`);
  for (const verb of ["exec", "signal"] as const)
    await checkedCall("POST", `${path}/${verb}`, example(`machines.${verb}`));
  await checkedCall("PUT", `${path}/memory`, { limit_mb: 128 });
  await checkedCall("POST", `${path}/memory/reclaim`, example("machines.reclaimMemory"));
  await checkedCall("PATCH", `${path}/metadata`, example("machines.patchMetadata"));
  await checkedCall("PUT", `${path}/metadata`, { metadata: {}, machine_version: "stale" });
  await checkedCall("PUT", `${path}/metadata`, example("machines.putMetadata"));
  await checkedCall("POST", `${path}/metadata/role`, example("machines.setMetadataKey"));
  for (const method of ["GET", "DELETE", "GET"]) await checkedCall(method, `${path}/metadata/role`);
  for (const list of ["machines", "volumes"]) await checkedCall("GET", `/orgs/personal/${list}`);
  for (const list of ["machines", "volumes"]) await checkedCall("GET", `/orgs/personal/${list}?summary=true&limit=1`);

  const volumes = "/apps/web/volumes";
  await checkedCall("POST", volumes, example("volumes.create"));
  await checkedCall("POST", `${volumes}/${disk}/snapshots`);
  for (const more of ["", `/${disk}`, `/${disk}/snapshots`, "/none", "?summary=true"])
    await checkedCall("GET", `${volumes}${more}`);
  await checkedCall("PUT", `${volumes}/${disk}`, example("volumes.update"));
  await checkedCall("PUT", `${volumes}/${disk}/extend`, example("volumes.extend"));
  await checkedCall("DELETE", `${volumes}/${disk}`);
  await checkedCall("DELETE", path);
  await checkedCall("DELETE", `${path}?force=true`);
  await checkedCall("GET", path);
  service.context.clock.advance(1000);
  await checkedCall("DELETE", `${volumes}/${disk}`);

  const certificates = "/apps/web/certificates";
  await checkedCall("POST", `${certificates}/acme`, example("certificates.createAcme"));
  await checkedCall("POST", `${certificates}/acme`, { hostname: "nothing.invalid" });
  await checkedCall("POST", `${certificates}/custom`, example("certificates.createCustom"));
  service.context.clock.advance(60_000);
  await checkedCall("POST", `${certificates}/custom`, {
    ...makeCertificate({ hosts: ["up.example.com"] }),
    hostname: "up.example.com",
  });
  await checkedCall("GET", certificates);
  for (const name of ["www.example.com", "nothing.invalid", "up.example.com", "none.example.com"]) {
    await checkedCall("GET", `${certificates}/${name}`);
    await checkedCall("POST", `${certificates}/${name}/check`);
    for (const more of ["/acme", "/custom", ""]) await checkedCall("DELETE", `${certificates}/${name}${more}`);
  }

  await checkedCall("POST", "/apps/web/secrets", { values: { A: "1" } });
  await checkedCall("POST", "/apps/web/secrets/B", example("secrets.set"));
  for (const more of ["", "?show_secrets=true", "/A", "/A?show_secrets=true", "/NONE"])
    await checkedCall("GET", `/apps/web/secrets${more}`);
  await checkedCall("DELETE", "/apps/web/secrets/A");
  const keys = "/apps/web/secretkeys";
  await checkedCall("POST", `${keys}/S`, example("secretKeys.set"));
  await checkedCall("POST", `${keys}/E/generate`, example("secretKeys.generate"));
  await checkedCall("POST", `${keys}/N/generate`, { type: "nacl_sign" });
  for (const more of ["", "/S", "/N", "/NONE"]) await checkedCall("GET", `${keys}${more}`);
  const { plaintext } = example("secretKeys.sign") as { plaintext: string };
  const { signature } = await checkedCall("POST", `${keys}/S/sign`, { plaintext });
  await checkedCall("POST", `${keys}/S/verify`, { plaintext, signature });
  await checkedCall("POST", `${keys}/S/verify`, example("secretKeys.verify"));
  const { ciphertext } = await checkedCall("POST", `${keys}/E/encrypt`, { plaintext });
  await checkedCall("POST", `${keys}/E/decrypt`, { ciphertext });
  await checkedCall("DELETE", `${keys}/S`);

  const cluster = (await checkedCall("POST", "/postgres", example("postgres.create"))).data.id;
  await checkedCall("POST", "/postgres", { org_slug: "personal" });
  const one = `/postgres/${cluster}`;
  await checkedCall("GET", "/postgres?org_slug=personal");
  await checkedCall("GET", "/postgres?org_slug=personal&include_deleted=perhaps");
  await checkedCall("GET", one);
  for (const _ of ["created", "there already"])
    await checkedCall("POST", `${one}/attachments`, example("postgres.attach"));
  for (const more of ["active", "active?database=none", "slow", "slow?range=1h", "slow?range=long"])
    await checkedCall("GET", `${one}/queries/${more}`);
  await checkedCall("POST", `${one}/databases`, example("postgres.createDatabase"));
  await checkedCall("POST", `${one}/databases/orders/extensions`, example("postgres.installExtension"));
  await checkedCall("POST", `${one}/users`, example("postgres.createUser"));
  await checkedCall("PATCH", `${one}/users/reporting`, example("postgres.updateUser"));
  await checkedCall("POST", `${one}/users/reporting/rotate_password`, example("postgres.rotatePassword"));
  const { id: saved } = (await checkedCall("POST", `${one}/backups`, example("postgres.createBackup"))).data;
  for (const more of [
    "/databases",
    "/databases/orders/extensions",
    "/users",
    "/users/reporting/credentials",
    "/backups",
    "",
  ])
    await checkedCall("GET", `${one}${more}`);
  service.context.clock.advance(60_000);
  await checkedCall("GET", `${one}/backups`);
  await checkedCall("POST", `${one}/restore`, { backup_id: saved, name: "restored" });
  await checkedCall("POST", `${one}/fork`, example("postgres.fork"));
  for (const more of [
    "/databases/orders/extensions/hstore",
    "/databases/orders",
    "/users/reporting",
    "/attachments/web",
    "",
    "",
    "/users/x",
  ])
    await checkedCall("DELETE", `${one}${more}`);
  await checkedCall("GET", "/postgres?org_slug=personal&include_deleted=true");
  await checkedCall("DELETE", "/apps/side");
});

test("it is served without a token, as one document", async () => {
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
