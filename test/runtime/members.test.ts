// Members of one service on real container engines: only those on the engine with the Machines may lead, until another one is promoted (F97,
// F101).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type Dockerode from "dockerode";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { engineIdOf } from "../../service/runtime/docker/engineId.ts";
import { logSchema } from "../../service/replication/postgresLog.ts";
import { caller } from "../service/client.ts";
import { command, folder, foreground } from "../service/command.ts";
import { startPostgres, type TestPostgres } from "../service/replication/postgres.ts";
import { leaderOf, serviceOn, standing, type Member, type Service } from "../service/replication/processes.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { kill as killAll } from "../support/processes.ts";
import { removeOf } from "./cleaning.ts";
import { image, nextImage } from "./image.ts";
import { hasOwnEngines, startOwnEngine } from "./ownEngine.ts";
import { docker as here, hasEngine } from "./runtimes.ts";

/** The engine of most tests. */
const host = inject("engine") ?? "";

let server: TestPostgres;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server?.remove());
beforeEach(async () => {
  await server.query(`DROP SCHEMA IF EXISTS ${logSchema} CASCADE`);
});

const options = ["--runtime", "docker", "--http", "0", "--https", "0"];

/** Starts a member on an engine, in a folder that it may have had before. */
async function memberOn(service: Service, engine: string, data = folder()): Promise<Member> {
  return { ...(await foreground(data, service.options, { DOCKER_HOST: engine })), data };
}

// The specification tests on this engine have another client, which waits for Machines.
const callOf = ({ url, token }: Member) => caller(url, token);

const dataIdOf = ({ data }: Member): string => readFileSync(join(data, "data-id"), "utf8").trim();

/** Removes what a service has left on the common engine, once these members have ended. */
function removeAfterwards(...members: readonly [Member, ...Member[]]): void {
  const dataId = dataIdOf(members[0]);
  afterThisTest(async () => {
    for (const member of members) await kill(member);
    await removeOf(dataId);
  });
}

const containersOf = async (docker: Dockerode, dataId: string) => {
  const filters = { label: [`machines-service.data=${dataId}`] };
  const listed = await docker.listContainers({ all: true, filters });
  return Promise.all(listed.map(({ Id }) => docker.getContainer(Id).inspect()));
};

const startsOf = async (docker: Dockerode, dataId: string) =>
  (await containersOf(docker, dataId)).map(({ Id, State }) => [Id, State.StartedAt, State.Running]);

const stateOf = async (member: Member, id: string): Promise<string> =>
  (await callOf(member)("GET", `/apps/web/machines/${id}`)).body.state;

const reaches = (member: Member, id: string, state: string) => expect.poll(() => stateOf(member, id)).toBe(state);

const exec = async (member: Member, id: string, ...run: string[]) =>
  (await callOf(member)("POST", `/apps/web/machines/${id}/exec`, { command: run })).body;

const create = async (member: Member, config: object = {}): Promise<string> => {
  const answer = await callOf(member)("POST", "/apps/web/machines", { config: { image, ...config }, region: "ams" });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  await reaches(member, answer.body.id, "started");
  return answer.body.id;
};

const promote = ({ store, keyFile }: Service, { url }: Member, ...more: string[]) =>
  command(["members", "promote", url, "--store", store, "--key-file", keyFile, ...more]);

const kill = async ({ pid, end }: Member): Promise<void> => {
  killAll([pid]);
  await end;
};

describe.runIf(hasEngine)("members on one engine", () => {
  test("when the leader is killed, a standby leads, and a Machine keeps the container that it has", async () => {
    const service = serviceOn(server.url, ...options);
    const members = [await memberOn(service, host), await memberOn(service, host), await memberOn(service, host)];
    const first = await leaderOf(members);
    const dataId = dataIdOf(first);
    removeAfterwards(first, ...members);
    const [standby] = members.filter((one) => one !== first) as [Member];
    await callOf(standby)("POST", "/apps", { name: "web", org_slug: "personal" });
    const id = await create(standby, { env: { KEY: "value" } });
    const before = await startsOf(here, dataId);
    expect(before).toHaveLength(1);
    const events = async (member: Member) => (await callOf(member)("GET", `/apps/web/machines/${id}`)).body.events;
    const [last] = await events(standby);

    await kill(first);
    const second = await leaderOf(members.filter((one) => one !== first));
    // It runs in the same container, and the new leader knows how to reach it.
    expect((await exec(second, id, "env")).stdout).toContain("KEY=value");
    const update = { config: { image: nextImage, env: { KEY: "next" } } };
    expect(await startsOf(here, dataId)).toEqual(before);
    expect((await events(second))[0]).toEqual(last);

    // A member that was killed is back, and passes an update on.
    const back = await memberOn(service, host, first.data);
    expect((await callOf(back)("POST", `/apps/web/machines/${id}`, update)).status).toBe(200);
    await reaches(back, id, "started");
    expect((await exec(back, id, "env")).stdout).toContain("KEY=next");
    const running = async () => (await startsOf(here, dataId)).filter(([, , isRunning]) => isRunning);
    await expect.poll(running).toHaveLength(1);
    await callOf(back)("DELETE", `/apps/web/machines/${id}?force=true`);
    await expect.poll(() => containersOf(here, dataId)).toEqual([]);
  });

  test("a container that ends while no member leads is started again by the next leader", async () => {
    const service = serviceOn(server.url, ...options);
    const first = await memberOn(service, host);
    const dataId = dataIdOf(first);
    removeAfterwards(first);
    await callOf(first)("POST", "/apps", { name: "web", org_slug: "personal" });
    const id = await create(first, { restart: { policy: "always" } });
    const [container] = await containersOf(here, dataId);
    await kill(first);
    await here.getContainer(container?.Id ?? "").kill();
    const second = await memberOn(service, host);
    await leaderOf([second]);
    const ids = async () =>
      (await startsOf(here, dataId)).filter(([, , runs]) => runs).map(([one]) => one !== container?.Id);
    await expect.poll(ids).toEqual([true]);
    await reaches(second, id, "started");
  });
});

describe.runIf(hasOwnEngines)("members on two engines", () => {
  let other: Awaited<ReturnType<typeof startOwnEngine>>;
  beforeAll(async () => {
    other = await startOwnEngine();
    // The other tests of this run use the common one.
    process.env["DOCKER_HOST"] = host;
  });
  afterAll(() => other?.remove());

  /** A service with a Machine on the common engine, and a member on the other one. */
  async function onTwo() {
    const service = serviceOn(server.url, ...options);
    const first = await memberOn(service, host);
    const dataId = dataIdOf(first);
    removeAfterwards(first);
    await callOf(first)("POST", "/apps", { name: "web", org_slug: "personal" });
    const second = await memberOn(service, other.host);
    return { service, first, second, dataId };
  }

  test("an engine that was killed and started again is the same", async () => {
    const before = await engineIdOf(other);
    await other.kill();
    await other.start();
    expect(await engineIdOf(other)).toBe(before);
  });

  test("a member on another engine only follows, says so, and passes requests on", async () => {
    const { service, first, second, dataId } = await onTwo();
    const ids = await Promise.all([here, other.docker].map((docker) => engineIdOf({ docker })));
    const [one, two] = ids.map((id) => id.slice(0, 12));
    expect(one).not.toBe(two);
    expect(second.said()).toContain(
      `this member only follows: the Machines run on the container engine ${one}, and the one here is ${two}`,
    );
    const id = await create(second);
    expect((await exec(second, id, "echo", "hello")).stdout).toBe("hello\n");
    expect(await containersOf(other.docker, dataId)).toEqual([]);
    await kill(first);
    await expect.poll(async () => (await standing(second))?.leader).toBe(null);
    expect(await standing(second)).toMatchObject({ role: "standby", leader: null });
    // The Machines continue without a leader.
    expect((await startsOf(here, dataId)).map(([, , isRunning]) => isRunning)).toEqual([true]);
    const again = await memberOn(service, host, first.data);
    await leaderOf([again]);
    expect(await stateOf(second, id)).toBe("started");
  });

  test("a promoted member starts the Machines again, with image, secrets and env; its volumes are empty, as announced", async () => {
    const { service, first, second, dataId } = await onTwo();
    const call = callOf(second);
    await call("POST", "/apps/web/secrets", { values: { SECRET: "kept" } });
    const { body: volume } = await call("POST", "/apps/web/volumes", { name: "data", region: "ams" });
    const mounting = await create(second, { mounts: [{ volume: volume.id, path: "/data" }], env: { KEY: "value" } });
    await call("POST", `/apps/web/machines/${mounting}/exec`, {
      command: ["write", "/data/file", "644"],
      stdin: "text",
    });
    expect((await exec(second, mounting, "cat", "/data/file")).stdout).toBe("text");
    await call("POST", `/apps/web/volumes/${volume.id}/snapshots`);
    const snapshots = async () => (await call("GET", `/apps/web/volumes/${volume.id}/snapshots`)).body;
    await expect.poll(async () => (await snapshots())[0]?.status).toBe("created");
    const once = await create(second, { restart: { policy: "no" } });
    const stopped = await create(second);
    await call("POST", `/apps/web/machines/${stopped}/stop`);
    await reaches(second, stopped, "stopped");
    const suspended = await create(second);
    await call("POST", `/apps/web/machines/${suspended}/suspend`);
    await reaches(second, suspended, "suspended");

    expect((await promote(service, second, "--accept-data-loss")).err).toContain(
      `${first.url} may lead, and is running`,
    );
    await kill(first);
    await expect.poll(async () => (await promote(service, second)).err).toContain("--accept-data-loss");
    const { code, err } = await promote(service, second, "--yes");
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(
        /Machines that start again there: 2; volumes that begin without their contents: 1; volume snapshots that are gone: 1\. Add --accept-data-loss/,
      ),
    ]);
    expect(await promote(service, second, "--accept-data-loss")).toMatchObject({ code: 0, err: "" });
    await leaderOf([second]);

    await reaches(second, mounting, "started");
    const { stdout } = await exec(second, mounting, "env");
    expect(stdout).toContain("KEY=value");
    expect(stdout).toContain("SECRET=kept");
    expect((await exec(second, mounting, "cat", "/data/file")).exit_code).toBe(1);
    const { body } = await call("GET", `/apps/web/machines/${mounting}`);
    expect(body.events.slice(0, 3).map(({ type }: { type: string }) => type)).toEqual(["start", "start", "exit"]);
    expect(body.events[2].request.exit_event).toMatchObject({
      ...{ error: "its container engine was lost", restarting: true, requested_stop: false },
    });
    expect(await snapshots()).toEqual([]);
    // What never restarts, was stopped, or has lost its memory, does not run.
    for (const id of [once, stopped, suspended]) expect(await stateOf(second, id)).toBe("stopped");
    await call("POST", `/apps/web/machines/${suspended}/start`);
    await reaches(second, suspended, "started");
    expect((await containersOf(other.docker, dataId)).filter(({ State }) => State.Running)).toHaveLength(2);
    await call("POST", `/apps/web/machines/${mounting}/exec`, {
      command: ["write", "/data/file", "644"],
      stdin: "new",
    });

    // The lost engine is back: its member only follows, and ends the containers there. The volume stays.
    const again = await memberOn(service, host, first.data);
    expect(again.said()).toContain("this member only follows");
    const left = async () => (await containersOf(here, dataId)).filter(({ State }) => State.Running).length;
    await expect.poll(left).toBe(0);
    expect((await here.listVolumes({ filters: { label: [`machines-service.data=${dataId}`] } })).Volumes).not.toEqual(
      [],
    );
    expect(await stateOf(again, mounting)).toBe("started");

    // What was lost is created again once: another leadership there changes nothing.
    const before = await startsOf(other.docker, dataId);
    process.kill(second.pid, "SIGTERM");
    await second.end;
    const third = await memberOn(service, other.host, second.data);
    await leaderOf([third]);
    expect((await exec(third, mounting, "cat", "/data/file")).stdout).toBe("new");
    expect(await startsOf(other.docker, dataId)).toEqual(before);
    await callOf(third)("DELETE", "/apps/web?force=true");
    await expect.poll(() => containersOf(other.docker, dataId)).toEqual([]);
  });
});
