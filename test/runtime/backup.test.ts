// The disk of a service dies, with its container engine: on a new one, a backup brings back every Machine, byte and row.
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Manifest } from "../../service/backup/contents.ts";
import { endServers } from "../../service/runtime/postgres/index.ts";
import { findRestic, testRepository, type TestRepository } from "../support/restic.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { kill } from "../support/processes.ts";
import { hang, wholeTest } from "../support/patience.mts";
import { caller, type Call } from "../service/client.ts";
import { command, folder, foreground } from "../service/command.ts";
import { requestsOfClusters } from "../service/postgres/servers.ts";
import { image } from "./image.ts";
import { hasOwnEngines, startOwnEngine } from "./ownEngine.ts";

const run = promisify(execFile);

type Engine = Awaited<ReturnType<typeof startOwnEngine>>;

/** What the App has to have again. */
interface Known {
  readonly token: string;
  readonly web: string;
  readonly volume: string;
  readonly snapshot: string;
  readonly cluster: string;
  readonly texts: readonly [first: string, second: string];
}

describe.runIf(hasOwnEngines)("a backup of containers and Postgres servers", () => {
  let engine: Engine | undefined;
  let restic = "";
  let repository: TestRepository;
  let known: Known;
  /** A moment between two rows. */
  let between = 0;

  const env = (): NodeJS.ProcessEnv => ({ ...repository.env, DOCKER_HOST: engine?.host });
  const ok = async (...args: string[]) => {
    const ended = await command(args, env());
    expect(ended, args.join(" ")).toMatchObject({ code: 0 });
    return ended.out;
  };
  const options = ["--runtime", "docker", "--postgres", "embedded", "--http", "0", "--https", "0"];
  const schedule = () => ["--backup", repository.at];

  /** A running service, and what tests ask of it. */
  async function serve(data: string, ...more: string[]) {
    // Before their folder is removed.
    afterThisTest(async () => void (await endServers(data)));
    const service = await foreground(data, [...options, ...more], env());
    const call = caller(service.url, service.token);
    return { ...service, data, call, clusters: requestsOfClusters(call), ...usesOf(call) };
  }

  function usesOf(call: Call) {
    const exec = async (machine: string, words: readonly string[], stdin = "") =>
      (await call("POST", `/apps/shop/machines/${machine}/exec`, { command: words, stdin })).body;
    return {
      reaches: (machine: string, state: string) =>
        expect
          .poll(async () => (await call("GET", `/apps/shop/machines/${machine}`)).body?.state, { interval: 50 })
          .toBe(state),
      write: async (machine: string, file: string, text: string) =>
        expect(await exec(machine, ["write", file, "640"], text)).toMatchObject({ exit_code: 0 }),
      read: async (machine: string, file: string): Promise<string> => (await exec(machine, ["cat", file])).stdout,
      mounting: async (volume: string, name: string): Promise<string> =>
        (
          await call("POST", "/apps/shop/machines", {
            ...{ name, region: "ams" },
            config: { image, mounts: [{ volume, path: "/data" }] },
          })
        ).body.id,
    };
  }

  type Served = Awaited<ReturnType<typeof serve>>;

  const rowsOf = async ({ clusters }: Served, id: string): Promise<readonly unknown[]> => {
    const client: pg.Client = await clusters.connect(await clusters.settled(id));
    try {
      return (await client.query({ text: "SELECT text FROM items ORDER BY id", rowMode: "array" })).rows.flat();
    } finally {
      await client.end();
    }
  };

  const insert = async ({ clusters }: Served, id: string, text: string): Promise<void> => {
    const client: pg.Client = await clusters.connect(await clusters.settled(id));
    await client.query("INSERT INTO items (text) VALUES ($1)", [text]);
    await client.end();
  };

  const last = async (): Promise<Manifest> =>
    (JSON.parse(await ok("backup", "list", "--json", "--from", repository.at)) as Manifest[]).at(-1) as Manifest;

  /** Ends a service as when its computer is gone. */
  async function lose({ pid, end, data }: Served): Promise<void> {
    kill([pid]);
    await end;
    await endServers(data);
    rmSync(join(data, ".."), { recursive: true, force: true, maxRetries: 10 });
  }

  beforeAll(async () => {
    restic = (await findRestic()) ?? "";
    engine = await startOwnEngine();
  }, wholeTest);
  afterAll(async () => {
    await engine?.remove();
  }, hang);

  test(
    "every Machine, row and byte is there after the disk and the engine were lost",
    async () => {
      repository = testRepository(restic);
      const data = folder();
      const first = await serve(data, ...schedule());
      // The first one of the schedule pauses no Machine of the test.
      await expect.poll(() => ok("status", "--data", data)).toContain("complete, just now");
      const { call, clusters } = first;
      await call("POST", "/apps", { name: "shop", org_slug: "personal" });
      await call("POST", "/apps/shop/secrets", { values: { KEY: "the value" } });
      await call("POST", "/apps/shop/certificates/acme", { hostname: "shop.example.com" });
      const { id: volume } = (await call("POST", "/apps/shop/volumes", { name: "data", region: "ams", size_gb: 1 }))
        .body;
      const web = await first.mounting(volume, "web");
      await first.reaches(web, "started");
      const texts = [randomBytes(300_000).toString("base64"), "changed"] as const;
      await first.write(web, "/data/large", texts[0]);
      // Chunks of restic have a megabyte.
      for (let i = 0; i < 6; i++) await first.write(web, `/data/more-${i}`, randomBytes(750_000).toString("base64"));
      await first.write(web, "/data/small", "first");
      await call("POST", `/apps/shop/volumes/${volume}/snapshots`);
      const snapshot = async () => (await call("GET", `/apps/shop/volumes/${volume}/snapshots`)).body.at(-1);
      await expect.poll(async () => (await snapshot()).status).toBe("created");
      const cluster = await clusters.cluster({ name: "db" });
      const client: pg.Client = await clusters.connect(cluster);
      await client.query("CREATE TABLE items (id serial PRIMARY KEY, text text)");
      await client.query("INSERT INTO items (text) VALUES ('one')");
      await client.end();
      await ok("backup", "--data", data);
      const whole = await last();
      expect(whole.missing).toEqual([]);
      expect(Object.keys(whole.volumes).sort()).toEqual([volume, (await snapshot()).id].sort());
      expect(Object.keys(whole.clusters)).toEqual([cluster.id]);

      // The second one has only what has changed.
      await first.write(web, "/data/small", texts[1]);
      await insert(first, cluster.id, "two");
      const again = JSON.parse(await ok("backup", "--data", data, "--json")) as { addedBytes: number; result: string };
      expect(again.result).toBe("complete");
      expect(again.addedBytes).toBeLessThan((whole.volumes[volume]?.bytes ?? 0) / 2);
      // A snapshot never changes, so it is stored once.
      expect((await last()).volumes[(await snapshot()).id]).toEqual(whole.volumes[(await snapshot()).id]);
      await insert(first, cluster.id, "three");
      between = Date.now();
      await expect.poll(() => Date.now()).toBeGreaterThan(between + 1);
      await insert(first, cluster.id, "four");
      await ok("backup", "--data", data);
      // Nothing is left of the way.
      expect(existsSync(join(data, "backup", "staging"))).toBe(false);
      const left = (await engine?.docker.listVolumes())?.Volumes ?? [];
      expect(left.filter(({ Name }) => Name.includes("backup-"))).toEqual([]);
      const pauses = (await call("GET", `/apps/shop/machines/${web}`)).body;
      expect(pauses.state).toBe("started");
      const certificate = async (from: Served) => (await from.call("GET", "/apps/shop/certificates")).body.certificates;
      const served = await certificate(first);
      expect(served).toHaveLength(1);
      known = { token: first.token, web, volume, snapshot: (await snapshot()).id, cluster: cluster.id, texts };
      const secret = (await call("GET", "/apps/shop/secrets/KEY?show_secrets=true")).body.value;

      await lose(first);
      await engine?.remove();
      engine = await startOwnEngine();
      const target = folder();
      await ok("restore", "--data", target, "--from", repository.at);
      const second = await serve(target);
      expect(second.token).toBe(known.token);
      await second.reaches(web, "started");
      expect(await second.read(web, "/data/large")).toBe(texts[0]);
      expect(await second.read(web, "/data/small")).toBe(texts[1]);
      expect((await second.call("GET", "/apps/shop/secrets/KEY?show_secrets=true")).body.value).toBe(secret);
      expect(await certificate(second)).toEqual(served);
      expect(await rowsOf(second, cluster.id)).toEqual(["one", "two", "three", "four"]);
      expect(existsSync(join(target, "postgres", cluster.id, "restored"))).toBe(false);
      // The snapshot has what it had.
      const { id: of } = (
        await second.call("POST", "/apps/shop/volumes", { name: "old", region: "ams", snapshot_id: known.snapshot })
      ).body;
      const old = await second.mounting(of, "old");
      await second.reaches(old, "started");
      expect(await second.read(old, "/data/small")).toBe("first");

      // One App into the running service.
      const refused = await command(["restore", "--data", target, "--from", repository.at, "--app", "shop"], env());
      expect(refused.err).toMatch(/has an App "shop"; delete it first/);
      expect((await second.call("DELETE", "/apps/shop?force=true")).status).toBe(202);
      await expect.poll(async () => (await second.call("GET", "/apps/shop")).status).toBe(404);
      await expect
        .poll(
          async () =>
            (await command(["restore", "--data", target, "--from", repository.at, "--app", "shop"], env())).err,
        )
        .toBe("");
      await second.reaches(web, "started");
      expect(await second.read(web, "/data/small")).toBe(texts[1]);
      expect((await second.call("GET", "/apps/shop/secrets/KEY?show_secrets=true")).body.value).toBe(secret);
      await second.call("DELETE", "/apps/shop?force=true");
      await lose(second);

      // Any moment between two backups.
      const third = folder();
      await ok("restore", "--data", third, "--from", repository.at, "--at", new Date(between).toISOString());
      const past = await serve(third);
      expect(await rowsOf(past, cluster.id)).toEqual(["one", "two", "three"]);
      await past.reaches(web, "started");
      await past.call("DELETE", "/apps/shop?force=true");
      await lose(past);

      const late = await command(
        ["restore", "--data", folder(), "--from", repository.at, "--at", new Date(Date.now()).toISOString()],
        env(),
      );
      expect(late.err).toMatch(/--at: the log of cluster \w+ ends at/);

      // What the repository does not have is reported, and never shown as if it were there.
      const newest = await last();
      await run(restic, ["forget", newest.volumes[volume]?.stored ?? ""], {
        env: { ...process.env, RESTIC_REPOSITORY: repository.at, RESTIC_PASSWORD_FILE: passphraseOf(repository) },
      });
      const verified = await command(["backup", "verify", "--from", repository.at, "--data", folder()], env());
      expect(verified).toMatchObject({ code: 1, err: expect.stringContaining(`volume ${volume}`) });
      const fourth = folder();
      const partly = await command(["restore", "--data", fourth, "--from", repository.at], env());
      expect(partly).toMatchObject({ code: 1, err: expect.stringContaining(`volume ${volume} could not be restored`) });
      const lacking = await serve(fourth);
      await expect
        .poll(async () => (await lacking.call("GET", `/apps/shop/volumes/${volume}`)).body.state)
        .toBe("restoring");
      await expect
        .poll(async () => JSON.stringify((await lacking.call("GET", `/apps/shop/machines/${web}`)).body.events))
        .toContain("could not be written");
      expect((await lacking.call("GET", `/apps/shop/machines/${web}`)).body.state).not.toBe("started");
      expect(readdirSync(join(fourth, "backup")).sort()).toEqual(["cache", "lineage"]);
      await lose(lacking);
    },
    2 * wholeTest,
  );
});

const passphraseOf = ({ env }: TestRepository): string => env["MACHINES_SERVICE_BACKUP_PASSPHRASE_FILE"] ?? "";
