// Where Machines run decides which members may lead.
import { mkdirSync } from "node:fs";
import type Dockerode from "dockerode";
import { expect, test } from "vitest";
import { followsOnly, placeOf, type Place } from "../../../service/local/place.ts";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { engineIdOf } from "../../../service/runtime/docker/engineId.ts";
import { folder } from "../command.ts";

const logOf = () => new MemoryLog(() => 0);
const docker = (engine: string): Place => ({ runtime: "docker", postgres: "simulated", engine });

test("only members on the engine of the first one may lead, and the others say why", async () => {
  const log = logOf();
  expect(await followsOnly(log, docker("one"))).toBeUndefined();
  expect(await followsOnly(log, docker("two"))).toMatch(/only follows: .* engine one, and the one here is two/);
  expect(await followsOnly(log, docker("one"))).toBeUndefined();
});

test("an engine without Docker's networks is recognized by the label of a volume", async () => {
  const volumes = new Map<string, object>();
  const missing = Object.assign(new Error("no such network"), { statusCode: 404 });
  const docker = {
    info: async () => ({ ID: "another one each time" }),
    getNetwork: () => ({ inspect: () => Promise.reject(missing) }),
    createVolume: async ({ Name, Labels }: { Name: string; Labels: object }) =>
      void volumes.set(Name, volumes.get(Name) ?? Labels),
    getVolume: (name: string) => ({ inspect: async () => ({ Labels: volumes.get(name) }) }),
  } as unknown as Dockerode;
  const id = await engineIdOf({ docker });
  expect(id).toMatch(/^[0-9a-f]{64}$/);
  expect(await engineIdOf({ docker })).toBe(id);
  volumes.set("machines-engine", {});
  await expect(engineIdOf({ docker })).rejects.toThrow("its volume machines-engine has no label");
});

test("of two engines that start at once, one has the Machines", async () => {
  const log = logOf();
  const found = await Promise.all([docker("one"), docker("two")].map((place) => followsOnly(log, place)));
  expect(found.filter((reason) => reason === undefined)).toHaveLength(1);
});

test("only the member with the data of the Postgres servers may lead, also after a restart", async () => {
  const log = logOf();
  const folders = [folder(), folder()] as const;
  for (const one of folders) mkdirSync(one);
  const at = (data: string) => placeOf({ postgres: "embedded" }, data);
  expect(await followsOnly(log, await at(folders[0]))).toBeUndefined();
  expect(await followsOnly(log, await at(folders[1]))).toMatch(/only follows: the Postgres servers/);
  expect(await followsOnly(log, await at(folders[0]))).toBeUndefined();
});

test("a member with another runtime or another engine of Postgres clusters is refused", async () => {
  const log = logOf();
  const simulated = await placeOf({}, "");
  await followsOnly(log, simulated);
  await expect(followsOnly(log, { ...simulated, runtime: "kubernetes" })).rejects.toThrow(
    "--runtime kubernetes: this service has --runtime simulated, and all of its members must have the same",
  );
  await expect(followsOnly(log, { ...simulated, postgres: "embedded" })).rejects.toThrow("--postgres embedded");
});
