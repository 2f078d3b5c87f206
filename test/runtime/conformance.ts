// What every runtime does.
import { describe, expect, test } from "vitest";
import { image } from "./image.ts";
import type { AppOnRuntime } from "./runtimes.ts";

/** What only some runtimes do. */
interface Abilities {
  /** Whether a Machine can keep its root file system from one start to the next. */
  readonly keepsRootfs: boolean;
}

/** The tests of a runtime. `start` starts a service on it. */
export const describeRuntime = (
  name: string,
  start: () => Promise<AppOnRuntime>,
  { keepsRootfs }: Abilities = { keepsRootfs: true },
): void => {
  describe(`the ${name} runtime`, () => {
    test("a Machine is created, stopped, started, restarted and destroyed", async () => {
      const app = await start();
      const id = await app.create();
      await app.reaches(id, "started");
      await app.post(id, "stop");
      await app.reaches(id, "stopped");
      expect(await app.exit(id)).toMatchObject({ requested_stop: true, oom_killed: false });
      await app.post(id, "start");
      await app.reaches(id, "started");
      await app.post(id, "restart");
      await app.reaches(id, "started");
      await app.call("DELETE", `${app.machines}/${id}?force=true`);
      await app.reaches(id, "destroyed");
    });

    test("skip_launch prepares a Machine and does not start it", async () => {
      const app = await start();
      const id = await app.create({}, { skip_launch: true });
      await app.reaches(id, "stopped");
      await app.post(id, "start");
      await app.reaches(id, "started");
    });

    test("an update replaces what runs, and keeps the Machine", async () => {
      const app = await start();
      const id = await app.create({ env: { COLOUR: "red" } });
      await app.reaches(id, "started");
      const { version } = await app.get(id);
      await app.call("POST", `${app.machines}/${id}`, { config: { image, env: { COLOUR: "blue" } } });
      await app.reaches(id, "started");
      expect((await app.exec(id, "env")).stdout).toMatch(/^COLOUR=blue$/m);
      expect((await app.get(id)).version).not.toBe(version);
    });

    test("a Machine starts with a volume, its fork and a volume restored from its snapshot", async () => {
      const app = await start();
      const { id: volume } = await app.volume();
      await app.reaches(await app.create({ mounts: [{ volume, path: "/data" }] }), "started");
      const { id: fork } = await app.volume({ source_volume_id: volume });
      await app.call("POST", `/apps/web/volumes/${volume}/snapshots`);
      const snapshot = async () => (await app.call("GET", `/apps/web/volumes/${volume}/snapshots`)).body[0];
      await expect.poll(async () => (await snapshot()).status).toBe("created");
      const { id: restored } = await app.volume({ snapshot_id: (await snapshot()).id });
      for (const copy of [fork, restored]) {
        await app.reaches(await app.create({ mounts: [{ volume: copy, path: "/data" }] }), "started");
        expect((await app.call("GET", `/apps/web/volumes/${copy}`)).body.state).toBe("created");
      }
    });

    test("a suspended Machine resumes", async () => {
      const app = await start();
      const id = await app.create();
      await app.reaches(id, "started");
      await app.post(id, "suspend");
      await app.reaches(id, "suspended");
      await app.post(id, "start");
      await app.reaches(id, "started");
      await app.post(id, "suspend");
      await app.reaches(id, "suspended");
      await app.post(id, "stop");
      await app.reaches(id, "stopped");
    });

    test("a process that exits with an error is started again, up to max_retries times", async () => {
      const app = await start();
      const id = await app.create({
        env: { MACHINES_SIMULATE: "exit:3" },
        restart: { policy: "on-failure", max_retries: 2 },
      });
      await app.reaches(id, "failed");
      expect(await app.exit(id)).toMatchObject({ exit_code: 3, requested_stop: false, restarting: false });
      const { body } = await app.call("GET", `${app.machines}/${id}/events?limit=50`);
      expect(body.filter(({ type }: { type: string }) => type === "exit")).toHaveLength(3);
    });

    test("a process that exits stays stopped without a restart policy, and is destroyed with auto_destroy", async () => {
      const app = await start();
      const env = { MACHINES_SIMULATE: "exit:0" };
      const id = await app.create({ env, restart: { policy: "no" } });
      const other = await app.create({ env, auto_destroy: true });
      await app.reaches(id, "stopped");
      await app.reaches(other, "destroyed");
      expect(await app.exit(id)).toMatchObject({ exit_code: 0 });
    });

    /** Exits of Machines that use a secret. */
    const withExits = async () => {
      const app = await start();
      await app.call("POST", "/apps/web/secrets/TOKEN", { value: "canary-of-the-app" });
      return {
        ...app,
        exits: async (id: string) => {
          const { body } = await app.call("GET", `${app.machines}/${id}/events?limit=50`);
          return body.flatMap(({ request }: { request: { exit_event?: object; restart_count?: number } | null }) =>
            request?.exit_event ? [{ ...request.exit_event, count: request.restart_count }] : [],
          );
        },
      };
    };
    const said = { exit_code: 3, requested_stop: false, oom_killed: false };
    /** The exits of a Machine that was started again once. */
    const twice = (last_lines: readonly string[]) => [
      { ...said, last_lines, restarting: false, count: 1 },
      { ...said, last_lines, restarting: true, count: 0 },
    ];
    const restart = { policy: "on-failure", max_retries: 1 };

    test("each exit has the last lines of its own run, with secrets masked", async () => {
      const app = await withExits();
      const script = "echo first; echo begun; echo token $TOKEN; echo ''; echo 'cannot read config'; echo last; exit 3";
      const lines = ["begun", "token [secret]", "", "cannot read config", "last"];
      const exec = ["/bin/sh", "-c", script];
      const fresh = await app.create({ init: { exec }, restart });
      const leaving = await app.create({ init: { exec }, auto_destroy: true });
      await app.reaches(fresh, "failed");
      expect(await app.exits(fresh)).toMatchObject(twice(lines));
      await app.reaches(leaving, "destroyed");
      expect(await app.exits(leaving)).toMatchObject([{ ...said, last_lines: lines, restarting: false }]);
    });

    // Its container, if it has one, is started again.
    test.runIf(keepsRootfs)(
      "each exit of a Machine that keeps its root file system has only the lines of its own run",
      async () => {
        const app = await withExits();
        const exec = ["/bin/sh", "-c", "echo token $TOKEN; exit 3"];
        const id = await app.create({ init: { exec }, restart, rootfs: { persist: "always" } });
        await app.reaches(id, "failed");
        expect(await app.exits(id)).toMatchObject(twice(["token [secret]"]));
      },
    );

    test("the entrypoint of the image gets the command of a Machine, and a job is gone when it has ended", async () => {
      const app = await withExits();
      // As a fleet runs its release command.
      const job = { restart: { policy: "no" }, auto_destroy: true };
      const id = await app.create({ init: { cmd: ["sh", "-c", "echo migrated; exit 3"] }, ...job });
      await app.reaches(id, "destroyed");
      expect(await app.exits(id)).toMatchObject([{ ...said, last_lines: ["migrated"], restarting: false }]);
    });

    test("a process without memory is killed, and the exit says so", async () => {
      const app = await start();
      const id = await app.create({ env: { MACHINES_SIMULATE: "oom" }, restart: { policy: "no" } });
      await app.reaches(id, "stopped");
      expect(await app.exit(id)).toMatchObject({ exit_code: 137, oom_killed: true });
    });

    test("a process that ignores the signal is killed after the timeout", async () => {
      const app = await start();
      const id = await app.create({ env: { MACHINES_SIMULATE: "deaf" }, checks: { up: { type: "http", port: 8080 } } });
      // It ignores signals once it answers.
      await expect.poll(async () => (await app.get(id)).checks[0].status).toBe("passing");
      await app.post(id, "stop", { timeout: "200ms" });
      await app.reaches(id, "stopped");
      expect(await app.exit(id)).toMatchObject({ exit_code: 137, guest_signal: 9 });
    });

    test("a signal reaches the process", async () => {
      const app = await start();
      const id = await app.create({ restart: { policy: "no" } });
      await app.reaches(id, "started");
      await app.post(id, "signal", { signal: "SIGTERM" });
      await app.reaches(id, "stopped");
      expect(await app.exit(id)).toMatchObject({ requested_stop: false, guest_signal: 15 });
    });

    test("commands have the environment, files and secrets of the Machine, and standard input", async () => {
      const app = await start();
      const secret = Buffer.from("from a secret").toString("base64");
      await app.call("POST", "/apps/web/secrets/FILE", { value: secret });
      const id = await app.create({
        env: { COLOUR: "red" },
        files: [
          { guest_path: "/etc/app/plain", raw_value: Buffer.from("plain").toString("base64") },
          { guest_path: "/secret", secret_name: "FILE" },
        ],
      });
      await app.reaches(id, "started");
      const { stdout } = await app.exec(id, "env");
      for (const line of ["COLOUR=red", "FLY_APP_NAME=web", `FLY_MACHINE_ID=${id}`, `FILE=${secret}`])
        expect(stdout.split("\n")).toContain(line);
      expect((await app.exec(id, "cat", "/etc/app/plain", "/secret")).stdout).toBe("plainfrom a secret");
      expect(await app.exec(id, "cat", "/missing")).toMatchObject({
        exit_code: 1,
        stderr: "cat: /missing: No such file or directory\n",
      });
      expect((await app.post(id, "exec", { command: ["cat"], stdin: "hello" })).body).toMatchObject({
        stdout: "hello",
      });
      expect((await app.post(id, "exec", { command: ["sleep", "60"], timeout: 1 })).status).toBe(408);
    });

    test("checks pass or fail", async () => {
      const app = await start();
      const checks = { web: { type: "http", port: 8080, interval: "1s" } };
      const services = [{ protocol: "tcp", internal_port: 8080, checks: [{ type: "tcp" }] }];
      const id = await app.create({ checks, services });
      const statuses = async (of: string) => (await app.get(of)).checks.map(({ status }: { status: string }) => status);
      await expect.poll(() => statuses(id)).toEqual(["passing", "passing"]);
      const failing = await app.create({ checks, env: { MACHINES_SIMULATE: "checks:critical" } });
      await expect.poll(() => statuses(failing)).toEqual(["critical"]);
    });

    test("memory has a limit that can be changed while the Machine runs", async () => {
      const app = await start();
      const id = await app.create({ guest: { memory_mb: 512 } });
      await app.reaches(id, "started");
      const at = `${app.machines}/${id}/memory`;
      expect((await app.call("PUT", at, { limit_mb: 256 })).body).toEqual({ limit_mb: 256, available_mb: 256 });
      expect((await app.call("GET", at)).body).toEqual({ limit_mb: 256, available_mb: 256 });
    });

    test("processes are listed", async () => {
      const app = await start();
      const id = await app.create();
      await app.reaches(id, "started");
      const { body } = await app.call("GET", `${app.machines}/${id}/ps`);
      expect(body.length).toBeGreaterThan(0);
      expect(body.every(({ pid, rss }: { pid: number; rss: number }) => pid > 0 && rss >= 0)).toBe(true);
    });

    test("destroying an App destroys its Machines", async () => {
      const app = await start();
      await app.reaches(await app.create(), "started");
      await app.call("DELETE", "/apps/web?force=true");
      await expect.poll(async () => (await app.call("GET", "/apps/web")).status).toBe(404);
    });
  });
};
