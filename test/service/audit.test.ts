// The audit log: what was asked and what became of it.
import { expect, test } from "vitest";
import { Audit } from "../../service/audit.ts";
import { ManualClock } from "../../service/index.ts";
import { caller, withApp } from "./client.ts";

test("every answered request is in it, with who asked and what became of it", async () => {
  const clock = new ManualClock();
  const { call, url, service, machines, machine } = await withApp({ clock });
  const from = service.audit.last;
  const { id } = await machine();
  clock.advance(5000);
  const shown = await call("GET", `${machines}/none?include_leases=true`);
  await caller(url, "wrong")("GET", machines);
  const entries = service.audit.after(from);
  expect(entries).toEqual([
    {
      seq: from + 1,
      at: clock.now() - 5000,
      id: expect.any(String),
      operation: "machines.create",
      method: "POST",
      path: "/v1/apps/web/machines",
      status: 200,
      org: "personal",
      owner: expect.stringMatching(/@tokens\.personal$/),
      nonce: false,
      lease: null,
      faults: [],
    },
    expect.objectContaining({
      seq: from + 2,
      at: clock.now(),
      id: shown.headers.get("svc-request-id"),
      operation: "machines.get",
      path: `/v1${machines}/none`,
      status: 404,
    }),
    expect.objectContaining({ seq: from + 3, operation: "machines.list", status: 401, org: null, owner: null }),
  ]);
  expect(JSON.stringify(entries)).not.toContain("wrong");
  expect(id).not.toBe("none");
});

test("a guarded request tells how it stood to the lease, and never its nonce", async () => {
  const { call, service, machine, machines } = await withApp();
  const { id } = await machine();
  const path = `${machines}/${id}`;
  const from = service.audit.last;
  await call("POST", `${path}/cordon`);
  const { nonce } = (await call("POST", `${path}/lease`, {})).body.data;
  await call("POST", `${path}/cordon`);
  await call("POST", `${path}/cordon`, undefined, { "svc-machine-lease-nonce": nonce });
  await call("POST", `${path}/cordon`, undefined, { "fly-machine-lease-nonce": "another" });
  const entries = service.audit.after(from);
  expect(entries.map(({ operation, status, nonce: sent, lease }) => [operation, status, sent, lease])).toEqual([
    ["machines.cordon", 200, false, "none"],
    ["machines.acquireLease", 201, false, null],
    ["machines.cordon", 409, false, "other"],
    ["machines.cordon", 200, true, "own"],
    ["machines.cordon", 409, true, "other"],
  ]);
  expect(JSON.stringify(entries)).not.toContain(nonce);
});

test("a path that is none of the interface has no operation", async () => {
  const { call, service } = await withApp();
  await call("GET", "/nowhere?secret=hunter2");
  expect(service.audit.after(0).at(-1)).toMatchObject({ operation: null, path: "/v1/nowhere", status: 404 });
});

test("the newest entries are kept, and their numbers never skip", () => {
  const audit = new Audit(3);
  const entry = { at: 0, id: "", operation: null, method: "GET", status: 200, org: null, owner: null } as const;
  const add = (path: string) => audit.add({ ...entry, path, nonce: false, lease: null, faults: [] });
  expect([audit.first, audit.last, audit.after(0)]).toEqual([1, 0, []]);
  for (const path of ["a", "b", "c", "d", "e"]) add(path);
  const paths = (after: number, limit?: number) => audit.after(after, limit).map(({ seq, path }) => `${seq}${path}`);
  expect([audit.first, audit.last]).toEqual([3, 5]);
  expect(paths(0)).toEqual(["3c", "4d", "5e"]);
  expect(paths(3)).toEqual(["4d", "5e"]);
  expect(paths(0, 2)).toEqual(["3c", "4d"]);
  expect(paths(5)).toEqual([]);
});
