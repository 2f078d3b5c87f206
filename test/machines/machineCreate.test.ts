// Exactly one Machine is created, even if the answer is lost or the process dies.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { httpTransport, type Sent, type Transport } from "../../provider/client/transport.ts";
import { openJournal, type Journal } from "../../provider/core/journal.ts";
import { createOnce } from "../../provider/machines/create.ts";
import { removeQuotas, setQuotas } from "../../service/store/quotas.ts";
import { ensureOrg } from "../../service/store/tokens.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

interface Written {
  readonly image: string;
  readonly env: Record<string, string>;
  readonly autoDestroy?: boolean;
  readonly metadata?: Record<string, string>;
}

type Args = Parameters<typeof createOnce>;
/** What a create has besides the usual. */
interface More {
  readonly body?: Partial<Args[3]>;
  readonly wanted?: Partial<Args[4]>;
}

const written: Written = { image: "registry.example.com/a:1", env: { A: "1" } };
/** A job that ends, and then destroys itself. */
const job = (code = 0): Written => ({ ...written, autoDestroy: true, env: { MACHINES_SIMULATE: `exit:${code}` } });

describe("creating a Machine exactly once", () => {
  let service: TestService;
  let home: string;
  let said: string[];
  let app = "";
  let count = 0;

  beforeAll(async () => (service = await startService()));
  afterAll(() => service.close());
  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), "intents-"));
    said = [];
    app = await makeApp(service, `once-${++count}`);
  });
  afterEach(() => {
    service.service.faults.clear();
    rmSync(home, { recursive: true });
  });

  /** A new process, which knows only what is on the disk. */
  const restarted = (): Journal => openJournal((message) => said.push(message), home);
  const create = async (
    options: {
      intents?: Journal;
      owner?: string;
      config?: Written;
      name?: string;
      region?: string;
      fallbackRegions?: readonly string[];
      transport?: Transport;
    } & More = {},
  ) => {
    const { intents = restarted(), owner = "owner1", config = written, name, region, fallbackRegions } = options;
    const { body, wanted } = options;
    const client = jumpingClient(service, intents, options.transport && { transport: options.transport });
    const say = (message: string) => void said.push(message);
    const call = { api: client.api, run: client.run, progress: say, warn: say };
    return {
      ...client,
      made: createOnce(call, owner, app, { config, name, region, ...body }, { config, fallbackRegions, ...wanted }),
    };
  };
  const machines = () =>
    send<{ id: string; state: string; config: Written }[]>(service, "GET", `/v1/apps/${app}/machines`);
  /** The states of all Machines, those included that are destroyed. */
  const states = async () =>
    (await send<{ state: string }[]>(service, "GET", `/v1/apps/${app}/machines?include_deleted=true`)).map(
      ({ state }) => state,
    );
  const untilGone = () => expect.poll(states).toContain("destroyed");

  test.each([503, "reset"] as const)(
    "an answer lost after it was applied (%s): the created Machine is found (F01, F03)",
    async (status) => {
      service.fail({ operation: "machines.create", when: "after", status });
      const { made, sent } = await create();
      const { id } = await made;
      expect((await machines()).map((machine) => machine.id)).toEqual([id]);
      expect(sent.filter((one) => one.startsWith("machines.create"))).toHaveLength(1);
    },
  );

  test.each([0, 3])(
    "a job that ended with code %i before its lost answer was looked for runs once (F01)",
    async (code) => {
      service.fail({ operation: "machines.create", when: "after", status: 503 });
      const direct = httpTransport();
      const slow = async (request: Sent) => {
        const outcome = await direct(request);
        if (request.method === "POST" && request.url.endsWith("/machines")) await untilGone();
        return outcome;
      };
      const transport = Object.assign(slow, { close: () => direct.close() });
      const { made } = await create({ config: job(code), transport });
      expect((await made).state).toBe("destroyed");
      expect(await states()).toEqual(["destroyed"]);
    },
  );

  test.each([503, "reset"] as const)(
    "a request lost before it was applied (%s): it is sent again after several reads, and creates one (F02, F03)",
    async (status) => {
      service.fail({ operation: "machines.create", when: "before", status });
      const { made, clock } = await create();
      const { id } = await made;
      expect((await machines()).map((machine) => machine.id)).toEqual([id]);
      expect(clock.slept.reduce((a, b) => a + b, 0)).toBeGreaterThanOrEqual(10_000);
    },
  );

  test("a volume that a Machine lost from the state holds: the error says how to find that Machine", async () => {
    const volume = await makeVolume(service, app, "ams");
    const config = { ...written, mounts: [{ volume, path: "/data" }] };
    const lost = await makeMachine(service, app, { region: "ams", config });
    const { made } = await create({ config, region: "ams" });
    await expect(made).rejects.toThrow(
      new RegExp(
        `claimed by machine ${lost} .*If no program has that Machine any more, \`npx pulumi-machines orphans\``,
      ),
    );
  });

  test("if no request takes effect, it fails after three tries", async () => {
    service.fail({ operation: "machines.create", when: "before", status: 503, times: 10 });
    const { made, sent } = await create();
    await expect(made).rejects.toThrow(/503.*may have taken effect/);
    expect(sent.filter((one) => one.startsWith("machines.create"))).toHaveLength(3);
    expect(await machines()).toEqual([]);
  });

  test("if a repeated request created two, the oldest is kept", async () => {
    // The first is applied, hidden from all reads, and appears after the second.
    let looks = 0;
    service.fail(
      { operation: "machines.create", when: "after", status: 503 },
      { operation: "machines.create", when: "after", nth: 2, status: 503 },
    );
    service.fail({
      operation: "machines.list",
      when: "after",
      times: 1000,
      rewrite: (body) => (++looks <= 11 ? [] : body),
    });
    const { made } = await create();
    const { id } = await made;
    service.service.faults.clear();
    expect((await machines()).map((machine) => machine.id)).toEqual([id]);
    expect(said.join()).toMatch(/created a second Machine, [0-9a-f]+; it is destroyed/);
  });

  test("a definite refusal leaves nothing behind", async () => {
    const { made } = await create({ config: { ...written, image: "" } });
    await expect(made).rejects.toThrow(/400/);
    expect(restarted().find("owner1")).toBeUndefined();
  });

  test("if the second request is refused because the first was applied, the first Machine is found", async () => {
    let looks = 0;
    service.fail({ operation: "machines.create", when: "after", status: 503 });
    service.fail({
      operation: "machines.list",
      when: "after",
      times: 1000,
      rewrite: (body) => (++looks <= 11 ? [] : body),
    });
    const { made, sent } = await create({ name: "named" });
    const { id } = await made;
    service.service.faults.clear();
    expect(sent.filter((one) => one.startsWith("machines.create"))).toEqual([
      "machines.create 503",
      "machines.create 409",
    ]);
    expect((await machines()).map((machine) => machine.id)).toEqual([id]);
  });

  test("a process killed before it returned the id: the next run adopts its Machine", async () => {
    const { id } = await (await create()).made;
    expect((await (await create()).made).id).toBe(id);
    expect(await machines()).toHaveLength(1);
    expect(said.join()).toMatch(/was created by an interrupted run; it is adopted/);
  });

  test("a Machine of a killed run that appears late is waited for and adopted (F13)", async () => {
    const { id } = await (await create()).made;
    service.fail({ operation: "machines.list", list: { keep: 0 }, times: 3 });
    expect((await (await create()).made).id).toBe(id);
  });

  test("a Machine of a killed run that differs from the current inputs is destroyed", async () => {
    const { id } = await (await create()).made;
    const second = (await (await create({ config: { ...written, env: { A: "2" } } })).made).id;
    expect(second).not.toBe(id);
    expect((await machines()).map((machine) => machine.id)).toEqual([second]);
    expect(said.join()).toMatch(/differs from what is wanted now; it is destroyed/);
  });

  test("a job of a killed run that has destroyed itself is adopted, and does not run twice (F18)", async () => {
    const { id } = await (await create({ config: job() })).made;
    await untilGone();
    expect((await (await create({ config: job() })).made).id).toBe(id);
    expect(await states()).toEqual(["destroyed"]);
    expect(said.join()).toMatch(/was created by an interrupted run; it is adopted/);
  });

  test("a job of a killed run that has destroyed itself is reported if another one is wanted now", async () => {
    const { id } = await (await create({ config: job() })).made;
    await untilGone();
    const other = { ...job(), image: "registry.example.com/a:2" };
    expect((await (await create({ config: other })).made).id).not.toBe(id);
    expect(said).toEqual([
      expect.stringMatching(/and has ended; what is wanted now differs, so another one is created/),
    ]);
  });

  test("a job of a killed run that someone destroyed while it ran has not run, so it is created again", async () => {
    const runs = { ...job(), env: {} };
    const { id } = await (await create({ config: runs })).made;
    await expect.poll(states).toEqual(["started"]);
    await send(service, "DELETE", `/v1/apps/${app}/machines/${id}?force=true`);
    await untilGone();
    expect((await (await create({ config: runs })).made).id).not.toBe(id);
  });

  test("before that it waits for a client that holds the Machine's lease", async () => {
    const { id } = await (await create()).made;
    await send(service, "POST", `/v1/apps/${app}/machines/${id}/lease`, { ttl: 1 });
    const { made, sent } = await create({ config: { ...written, env: { A: "3" } } });
    expect((await made).id).not.toBe(id);
    expect(sent).toContain("machines.acquireLease 409");
    expect(await machines()).toHaveLength(1);
  });

  test("a Machine of a killed run with different metadata is destroyed", async () => {
    const { id } = await (await create({ config: { ...written, metadata: { ours: "1" } } })).made;
    const second = (await (await create({ config: { ...written, metadata: { ours: "2" } } })).made).id;
    expect(second).not.toBe(id);
    expect((await machines()).map((machine) => machine.id)).toEqual([second]);
  });

  test("a Machine whose id was returned is never adopted again", async () => {
    const { id } = await (await create()).made;
    restarted().settle("owner1");
    const { made } = await create();
    expect((await made).id).not.toBe(id);
    expect(await machines()).toHaveLength(2);
  });

  test.each<[what: string, then: More, now: More, isAdopted: boolean]>([
    ["other secrets", { body: { minSecretsVersion: 0 } }, { body: { minSecretsVersion: 1 } }, false],
    ["any secrets", {}, { body: { minSecretsVersion: 1 } }, false],
    ["the same secrets", { body: { minSecretsVersion: 1 } }, { body: { minSecretsVersion: 1 } }, true],
    ["secrets that no longer matter", { body: { minSecretsVersion: 0 } }, {}, true],
    ["a memory limit that is no longer wanted", { wanted: { memoryLimitMb: 128 } }, {}, false],
    ["another memory limit", { wanted: { memoryLimitMb: 128 } }, { wanted: { memoryLimitMb: 192 } }, true],
    ["no memory limit", {}, { wanted: { memoryLimitMb: 192 } }, true],
  ])(
    "a Machine of a killed run with %s is adopted only if it can become as wanted",
    async (_, then, now, isAdopted) => {
      await send(service, "POST", `/v1/apps/${app}/secrets`, { values: { TOKEN: "rotated" } });
      const { id } = await (await create(then)).made;
      const second = (await (await create(now)).made).id;
      expect(second === id).toBe(isAdopted);
      expect((await machines()).map((machine) => machine.id)).toEqual([second]);
    },
  );

  test("a Machine of a killed run with metadata that the program no longer has is destroyed", async () => {
    const withRole = { ...written, metadata: { team: "a", role: "primary" } };
    const { id } = await (await create({ config: withRole })).made;
    const second = (await (await create({ config: { ...written, metadata: { team: "a" } } })).made).id;
    expect(second).not.toBe(id);
    expect((await machines()).map((machine) => machine.id)).toEqual([second]);
  });

  test("a Machine of a killed run on which others set metadata is adopted", async () => {
    const { id } = await (await create()).made;
    await send(service, "POST", `/v1/apps/${app}/machines/${id}/metadata/theirs`, { value: "1" });
    expect((await (await create()).made).id).toBe(id);
  });

  test("a suspended Machine of a killed run is destroyed if a stopped one is wanted", async () => {
    const { id } = await (await create()).made;
    await expect.poll(states).toEqual(["started"]);
    await send(service, "POST", `/v1/apps/${app}/machines/${id}/suspend`);
    await expect.poll(states).toEqual(["suspended"]);
    const stopped: More = { body: { skipLaunch: true }, wanted: { state: "stopped" } };
    const second = (await (await create(stopped)).made).id;
    expect(second).not.toBe(id);
    expect((await machines()).map((machine) => machine.id)).toEqual([second]);
  });

  test.each([{ skipServiceRegistration: true }, { skipLaunch: true }])(
    "a Machine of a killed run created with %j is destroyed if that is no longer requested",
    async (otherwise) => {
      const { api, run } = jumpingClient(service, restarted());
      const call = { api, run, progress: () => undefined, warn: (message: string) => void said.push(message) };
      const { id } = await createOnce(call, "owner1", app, { config: written, ...otherwise }, { config: written });
      const second = (await (await create()).made).id;
      expect(second).not.toBe(id);
      expect((await machines()).map((machine) => machine.id)).toEqual([second]);
    },
  );

  test("a Machine of another owner or another endpoint is not adopted", async () => {
    const { id } = await (await create()).made;
    expect((await (await create({ owner: "owner2" })).made).id).not.toBe(id);
    const intents = restarted();
    const left = intents.find("owner1");
    if (!left) throw new Error("nothing was written down");
    await intents.write({ ...left, op: "another", endpoint: "http://elsewhere.example.com" });
    expect((await (await create()).made).id).not.toBe(id);
  });

  describe("in a region without capacity (F31)", () => {
    const regions = { region: "ams", fallbackRegions: ["fra", "lhr"] };
    const noRoom = { operation: "machines.create", capacity: true } as const;
    const asked = (sent: readonly string[]) => sent.filter((one) => one.startsWith("machines.create"));

    test.each([1, 2])("%i of them: the next one is tried, and the outcome is reported", async (times) => {
      service.fail({ ...noRoom, times });
      const { made, sent } = await create(regions);
      expect((await made).region).toBe(times === 1 ? "fra" : "lhr");
      expect(await machines()).toHaveLength(1);
      expect(asked(sent)).toHaveLength(times + 1);
      expect(said.filter((one) => /^region (ams|fra) has no room for Machine .*; trying (fra|lhr)$/.test(one))).toEqual(
        said,
      );
      expect(said).toHaveLength(times);
    });

    test.each([
      [409, "aborted: could not reserve resource for machine: insufficient CPUs available to fulfill request"],
      [412, "insufficient resources to create new machine"],
      [403, "organization is using 9 MB of memory in ams which is over the allowed quota"],
    ])("the next region is tried after status %i", async (status, error) => {
      service.fail({ operation: "machines.create", when: "before", status, body: { error } });
      expect((await (await create(regions)).made).region).toBe("fra");
    });

    test("if no region has capacity, the error names all, and nothing is left behind", async () => {
      service.fail({ ...noRoom, times: 3 });
      const { made } = await create(regions);
      await expect(made).rejects.toThrow(/none of ams, fra, lhr has room for the Machine: .*insufficient_capacity/);
      expect(await machines()).toEqual([]);
      expect(restarted().find("owner1")).toBeUndefined();
    });

    test("any other refusal is final", async () => {
      service.fail({ operation: "machines.create", when: "before", status: 422, body: { error: "quota of machines" } });
      const { made, sent } = await create(regions);
      await expect(made).rejects.toThrow(/422/);
      expect(asked(sent)).toHaveLength(1);
    });

    test("a quota that is used up is final, and the error says whose it is and what to do", async () => {
      const { store } = service.service.context;
      const org = ensureOrg(store, "personal").id;
      await store.write(() => setQuotas(store, { org }, { machines: 0 }));
      const { made, sent } = await create(regions);
      await expect(made).rejects.toThrow(
        /answered 422: quota exceeded: the limit of organization personal for machines is 0, it has \d+, and this adds 1 \(quota_exceeded\).*ask the operator of the service for a higher quota/,
      );
      await store.write(() => removeQuotas(store, { org }));
      expect(asked(sent)).toHaveLength(1);
      expect(await machines()).toEqual([]);
    });

    test("a lost answer is settled first: the created Machine stays in its region", async () => {
      service.fail({ operation: "machines.create", when: "after", status: 503 });
      const { made, sent } = await create(regions);
      expect((await made).region).toBe("ams");
      expect(asked(sent)).toEqual(["machines.create 503"]);
    });

    test("while a request is unsettled no other region is tried, and the next run reads again", async () => {
      service.fail({ operation: "machines.create", when: "before", status: 503 }, { ...noRoom, nth: 2 });
      const { made, sent } = await create(regions);
      await expect(made).rejects.toThrow(/422/);
      expect(asked(sent)).toEqual(["machines.create 503", "machines.create 422"]);
      expect(restarted().find("owner1")).toBeDefined();
    });

    test("a request whose first try took the last capacity is found, not created elsewhere", async () => {
      let looks = 0;
      service.fail({ operation: "machines.create", when: "after", status: 503 }, { ...noRoom, nth: 2 });
      service.fail({
        operation: "machines.list",
        when: "after",
        times: 1000,
        rewrite: (body) => (++looks <= 11 ? [] : body),
      });
      const { made } = await create(regions);
      expect((await made).region).toBe("ams");
      service.service.faults.clear();
      expect(await machines()).toHaveLength(1);
    });

    test("a Machine of an interrupted run in another listed region is adopted", async () => {
      service.fail(noRoom);
      const { id } = await (await create(regions)).made;
      expect((await (await create(regions)).made).id).toBe(id);
      const elsewhere = (await (await create({ ...regions, fallbackRegions: ["lhr"] })).made).id;
      expect(elsewhere).not.toBe(id);
      expect(await machines()).toHaveLength(1);
    });
  });

  test("tags are not outputs and survive updates; the file has no secret and no foreign path", async () => {
    const secret = { ...written, env: { A: "s3cr3t-canary" } };
    const { made } = await create({ owner: "../../etc/passwd", config: secret });
    await made;
    expect(readdirSync(join(home, "machines", "intents"))).toEqual([expect.stringMatching(/^\d+-[0-9a-f-]+\.jsonl$/)]);
    expect(JSON.stringify(restarted().find("../../etc/passwd"))).not.toContain("s3cr3t-canary");
  });

  test("many creates share disk writes, and settled ones leave nothing to find", async () => {
    const intents = restarted();
    const owners = Array.from({ length: 50 }, (_, i) => `owner${i}`);
    const written = owners.map((owner) =>
      intents.write({ owner, op: `op-${owner}`, endpoint: service.url, place: app, name: owner }),
    );
    await Promise.all(written);
    expect(owners.filter((owner) => restarted().find(owner)?.op !== `op-${owner}`)).toEqual([]);
    for (const owner of owners.slice(1)) intents.settle(owner);
    expect(owners.filter((owner) => restarted().find(owner))).toEqual(["owner0"]);
    // Settled by a process other than the one that recorded it.
    restarted().settle("owner0");
    expect(restarted().find("owner0")).toBeUndefined();
  });

  test("a create begun after everything was settled is found as well", async () => {
    const intents = restarted();
    const intent = (op: string) => ({ owner: op, op, endpoint: service.url, place: app, name: "web" });
    await intents.write(intent("first"));
    intents.settle("first");
    await intents.write(intent("second"));
    expect(restarted().find("second")).toEqual(intent("second"));
  });

  test("a create of a running process is not adopted", () => {
    const folder = join(home, "machines", "intents");
    mkdirSync(folder, { recursive: true });
    const intent = { owner: "owner1", op: "op1", endpoint: service.url, place: app, name: "web" };
    // The parent of this process and this process itself: both run.
    writeFileSync(join(folder, `${process.ppid}-1-a.jsonl`), JSON.stringify(intent));
    expect(restarted().find("owner1")).toBeUndefined();
    // Its engine is gone: nothing will save the id.
    writeFileSync(join(folder, `${process.ppid}-99999997-b.jsonl`), JSON.stringify({ ...intent, owner: "owner2" }));
    expect(restarted().find("owner2")).toBeDefined();
  });

  test("journals of dead processes are removed once they are empty", async () => {
    const folder = join(home, "machines", "intents");
    mkdirSync(folder, { recursive: true });
    const intent = { owner: "owner1", op: "op1", endpoint: service.url, place: app, name: "web" };
    // No process has such an id.
    writeFileSync(join(folder, "99999999-99999997-a.jsonl"), `${JSON.stringify(intent)}\n{"owner":"half a li`);
    expect(restarted().find("owner1")).toEqual(intent);
    writeFileSync(join(folder, "99999998-99999997-b.jsonl"), '{"settled":"op1"}\n');
    expect(restarted().find("owner1")).toBeUndefined();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a settled create stays settled, whatever other processes recorded since", async () => {
    const intent = (owner: string, op: string) => ({ owner, op, endpoint: service.url, place: app, name: "web" });
    // Its journal stays because of the unsettled create in it.
    const first = restarted();
    await first.write(intent("owner0", "open"));
    await first.write(intent("owner1", "first"));
    const second = restarted();
    second.settle("owner1");
    await second.write(intent("owner1", "second"));
    restarted().settle("owner1");
    expect([1, 2, 3].map(() => restarted().find("owner1"))).toEqual([undefined, undefined, undefined]);
    expect(restarted().find("owner0")?.op).toBe("open");
  });

  test("an unwritable folder is reported once, and the create continues", async () => {
    const intents = openJournal((message) => said.push(message), "/dev/null");
    await (
      await create({ intents })
    ).made;
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/cannot be used, so the object of an interrupted create could not be found again/);
  });
});
