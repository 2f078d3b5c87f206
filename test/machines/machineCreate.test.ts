// Exactly one Machine, whatever became of the answer and of the process that asked.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openJournal, type Journal } from "../../provider/core/journal.ts";
import { createOnce } from "../../provider/machines/create.ts";
import { makeApp, send } from "../support/around.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

const written = { image: "registry.example.com/a:1", env: { A: "1" } };

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

  /** As a process that was just started: it knows what is on the disk. */
  const restarted = (): Journal => openJournal((message) => said.push(message), home);
  const create = async (
    options: {
      intents?: Journal;
      owner?: string;
      config?: typeof written;
      name?: string;
      region?: string;
      fallbackRegions?: readonly string[];
    } = {},
  ) => {
    const { intents = restarted(), owner = "owner1", config = written, name, region, fallbackRegions } = options;
    const client = jumpingClient(service, intents);
    const say = (message: string) => void said.push(message);
    const call = { api: client.api, run: client.run, progress: say, warn: say };
    return { ...client, made: createOnce(call, owner, app, { config, name, region }, { config, fallbackRegions }) };
  };
  const machines = () =>
    send<{ id: string; state: string; config: typeof written }[]>(service, "GET", `/v1/apps/${app}/machines`);

  test.each([503, "reset"] as const)(
    "an answer lost after it was applied (%s): the one that was made is found (F01, F03)",
    async (status) => {
      service.fail({ operation: "machines.create", when: "after", status });
      const { made, sent } = await create();
      const { id } = await made;
      expect((await machines()).map((machine) => machine.id)).toEqual([id]);
      expect(sent.filter((one) => one.startsWith("machines.create"))).toHaveLength(1);
    },
  );

  test.each([503, "reset"] as const)(
    "a request lost before it was applied (%s): sent again after a long look, one is made (F02, F03)",
    async (status) => {
      service.fail({ operation: "machines.create", when: "before", status });
      const { made, clock } = await create();
      const { id } = await made;
      expect((await machines()).map((machine) => machine.id)).toEqual([id]);
      expect(clock.slept.reduce((a, b) => a + b, 0)).toBeGreaterThanOrEqual(10_000);
    },
  );

  test("when nothing ever comes of it, it ends after three tries and says so", async () => {
    service.fail({ operation: "machines.create", when: "before", status: 503, times: 10 });
    const { made, sent } = await create();
    await expect(made).rejects.toThrow(/503.*may have taken effect/);
    expect(sent.filter((one) => one.startsWith("machines.create"))).toHaveLength(3);
    expect(await machines()).toEqual([]);
  });

  test("two made by a request that was sent again: the oldest stays", async () => {
    // The first is applied, hidden from every look, and comes to light after the second.
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

  test("a second request that is refused because the first was applied after all finds the first", async () => {
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

  test("a process that was killed before it handed over the id: the next run takes over what it made", async () => {
    const { id } = await (await create()).made;
    expect((await (await create()).made).id).toBe(id);
    expect(await machines()).toHaveLength(1);
    expect(said.join()).toMatch(/was created by an interrupted run; it is adopted/);
  });

  test("what it made shows late: it is waited for and taken over all the same (F13)", async () => {
    const { id } = await (await create()).made;
    service.fail({ operation: "machines.list", list: { keep: 0 }, times: 3 });
    expect((await (await create()).made).id).toBe(id);
  });

  test("what it made is destroyed when it differs from what is wanted now", async () => {
    const { id } = await (await create()).made;
    const second = (await (await create({ config: { ...written, env: { A: "2" } } })).made).id;
    expect(second).not.toBe(id);
    expect((await machines()).map((machine) => machine.id)).toEqual([second]);
    expect(said.join()).toMatch(/differs from what is wanted now; it is destroyed/);
  });

  test("whoever works on what it made is waited for before that is destroyed", async () => {
    const { id } = await (await create()).made;
    await send(service, "POST", `/v1/apps/${app}/machines/${id}/lease`, { ttl: 1 });
    const { made, sent } = await create({ config: { ...written, env: { A: "3" } } });
    expect((await made).id).not.toBe(id);
    expect(sent).toContain("machines.acquireLease 409");
    expect(await machines()).toHaveLength(1);
  });

  test("so is one whose metadata is not what is wanted now", async () => {
    const { id } = await (await create({ config: { ...written, metadata: { ours: "1" } } as typeof written })).made;
    const second = (await (await create({ config: { ...written, metadata: { ours: "2" } } as typeof written })).made)
      .id;
    expect(second).not.toBe(id);
    expect((await machines()).map((machine) => machine.id)).toEqual([second]);
  });

  test("once its id was handed over it is never taken up again", async () => {
    const { id } = await (await create()).made;
    restarted().settle("owner1");
    const { made } = await create();
    expect((await made).id).not.toBe(id);
    expect(await machines()).toHaveLength(2);
  });

  test.each([{ skipServiceRegistration: true }, { skipLaunch: true }])(
    "so is one that was made with %j, which is not what is wanted now",
    async (otherwise) => {
      const { api, run } = jumpingClient(service, restarted());
      const call = { api, run, progress: () => undefined, warn: (message: string) => void said.push(message) };
      const { id } = await createOnce(call, "owner1", app, { config: written, ...otherwise }, { config: written });
      const second = (await (await create()).made).id;
      expect(second).not.toBe(id);
      expect((await machines()).map((machine) => machine.id)).toEqual([second]);
    },
  );

  test("another owner's and another endpoint's are none of ours", async () => {
    const { id } = await (await create()).made;
    expect((await (await create({ owner: "owner2" })).made).id).not.toBe(id);
    const intents = restarted();
    const left = intents.find("owner1");
    if (!left) throw new Error("nothing was written down");
    await intents.write({ ...left, op: "another", endpoint: "http://elsewhere.example.com" });
    expect((await (await create()).made).id).not.toBe(id);
  });

  describe("in a region that has no room (F31)", () => {
    const regions = { region: "ams", fallbackRegions: ["fra", "lhr"] };
    const noRoom = { operation: "machines.create", capacity: true } as const;
    const asked = (sent: readonly string[]) => sent.filter((one) => one.startsWith("machines.create"));

    test.each([1, 2])("%i of them: the next one is tried, and what became of it is said", async (times) => {
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
    ])("in the words of a %i", async (status, error) => {
      service.fail({ operation: "machines.create", when: "before", status, body: { error } });
      expect((await (await create(regions)).made).region).toBe("fra");
    });

    test("when none has any, the error names them all and nothing is left behind", async () => {
      service.fail({ ...noRoom, times: 3 });
      const { made } = await create(regions);
      await expect(made).rejects.toThrow(/none of ams, fra, lhr has room for the Machine: .*insufficient_capacity/);
      expect(await machines()).toEqual([]);
      expect(restarted().find("owner1")).toBeUndefined();
    });

    test("another refusal is final", async () => {
      service.fail({ operation: "machines.create", when: "before", status: 422, body: { error: "quota of machines" } });
      const { made, sent } = await create(regions);
      await expect(made).rejects.toThrow(/422/);
      expect(asked(sent)).toHaveLength(1);
    });

    test("an answer that was lost is settled first: the one that was made stays, in its region", async () => {
      service.fail({ operation: "machines.create", when: "after", status: 503 });
      const { made, sent } = await create(regions);
      expect((await made).region).toBe("ams");
      expect(asked(sent)).toEqual(["machines.create 503"]);
    });

    test("while the fate of a request is open no other region is tried, and the next run looks again", async () => {
      service.fail({ operation: "machines.create", when: "before", status: 503 }, { ...noRoom, nth: 2 });
      const { made, sent } = await create(regions);
      await expect(made).rejects.toThrow(/422/);
      expect(asked(sent)).toEqual(["machines.create 503", "machines.create 422"]);
      expect(restarted().find("owner1")).toBeDefined();
    });

    test("a request whose first try took the last room is found, not made elsewhere", async () => {
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

    test("what an interrupted run made in another region of the list is taken over", async () => {
      service.fail(noRoom);
      const { id } = await (await create(regions)).made;
      expect((await (await create(regions)).made).id).toBe(id);
      const elsewhere = (await (await create({ ...regions, fallbackRegions: ["lhr"] })).made).id;
      expect(elsewhere).not.toBe(id);
      expect(await machines()).toHaveLength(1);
    });
  });

  test("tags are no outputs, stay through updates, and the file holds no secret and no path from outside", async () => {
    const secret = { ...written, env: { A: "s3cr3t-canary" } };
    const { made } = await create({ owner: "../../etc/passwd", config: secret });
    await made;
    expect(readdirSync(join(home, "machines", "intents"))).toEqual([expect.stringMatching(/^\d+-[0-9a-f-]+\.jsonl$/)]);
    expect(JSON.stringify(restarted().find("../../etc/passwd"))).not.toContain("s3cr3t-canary");
  });

  test("many at a time share the disk's time, and what is settled leaves nothing to find", async () => {
    const intents = restarted();
    const owners = Array.from({ length: 50 }, (_, i) => `owner${i}`);
    const written = owners.map((owner) =>
      intents.write({ owner, op: `op-${owner}`, endpoint: service.url, place: app, name: owner }),
    );
    await Promise.all(written);
    expect(owners.filter((owner) => restarted().find(owner)?.op !== `op-${owner}`)).toEqual([]);
    for (const owner of owners.slice(1)) intents.settle(owner);
    expect(owners.filter((owner) => restarted().find(owner))).toEqual(["owner0"]);
    // Settled by another process than the one that wrote it down.
    restarted().settle("owner0");
    expect(restarted().find("owner0")).toBeUndefined();
  });

  test("what is begun after everything was settled is found as well", async () => {
    const intents = restarted();
    const intent = (op: string) => ({ owner: op, op, endpoint: service.url, place: app, name: "web" });
    await intents.write(intent("first"));
    intents.settle("first");
    await intents.write(intent("second"));
    expect(restarted().find("second")).toEqual(intent("second"));
  });

  test("what a process that is at work has begun is none of ours", () => {
    const folder = join(home, "machines", "intents");
    mkdirSync(folder, { recursive: true });
    const intent = { owner: "owner1", op: "op1", endpoint: service.url, place: app, name: "web" };
    // The parent of this process and its own: both run.
    writeFileSync(join(folder, `${process.ppid}-1-a.jsonl`), JSON.stringify(intent));
    expect(restarted().find("owner1")).toBeUndefined();
    // Its engine is gone: nobody will write down the id.
    writeFileSync(join(folder, `${process.ppid}-99999997-b.jsonl`), JSON.stringify({ ...intent, owner: "owner2" }));
    expect(restarted().find("owner2")).toBeDefined();
  });

  test("journals of processes that are gone are removed once they have nothing left to say", async () => {
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

  test("what is settled stays so, however many processes have spoken of one another since", async () => {
    const intent = (owner: string, op: string) => ({ owner, op, endpoint: service.url, place: app, name: "web" });
    // Its journal stays for what is open in it.
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

  test("a folder that cannot be written is said once, and the create goes on", async () => {
    const intents = openJournal((message) => said.push(message), "/dev/null");
    await (
      await create({ intents })
    ).made;
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/cannot be used, so the object of an interrupted create could not be found again/);
  });
});
