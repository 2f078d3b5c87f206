// What only containers show: images, refusals, networks, and what remains after the service or the engine was killed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { socketsIn } from "../../service/runtime/docker/sockets.ts";
import { tarOf } from "../../service/runtime/docker/tar.ts";
import { command } from "../service/command.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { processesWith } from "../support/processes.ts";
import { image } from "./image.ts";
import { docker, hasEngine, withRuntime } from "./runtimes.ts";

const containersOf = (dataId: string) =>
  docker.listContainers({ all: true, filters: { label: [`machines-service.data=${dataId}`] } });

/** The processes by which the engine forwards a port of this computer. */
const forwardersOf = (port: number): number[] =>
  processesWith(([program, ...words]) => program?.endsWith("docker-proxy") === true && words.includes(String(port)));

/** The connections to a port of this computer whose client has closed, and that are still open there. */
const abandonedAt = (at: number): number =>
  socketsIn(readFileSync("/proc/net/tcp", "utf8")).filter(({ port, state }) => port === at && state === "08").length;

describe.runIf(hasEngine)("the docker runtime", () => {
  test("an image is found when a Machine is created, with its digest and labels", async () => {
    const app = await withRuntime("docker");
    const { Id, RepoDigests } = await docker.getImage(image).inspect();
    // Podman gives a digest of a registry also to an image that only the engine has.
    const digest = RepoDigests?.[0]?.split("@")[1] ?? Id;
    const id = await app.create();
    expect((await app.get(id)).image_ref).toEqual({
      registry: "docker.io",
      repository: "machines-test/app",
      tag: "1",
      digest,
      labels: { "test.image": "app" },
    });
    // By its digest, as a promotion names it.
    await app.reaches(await app.create({ image: `machines-test/app@${digest}` }), "started");
  });

  test("an image that does not exist is refused, and nothing is created", async () => {
    const app = await withRuntime("docker", {}, { registries: ["127.0.0.1:9"] });
    const config = { image: "127.0.0.1:9/no-such-image:1" };
    const answer = await app.call("POST", app.machines, { config });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatch(
      /^invalid config\.image, got "127\.0\.0\.1:9\/no-such-image:1", the engine does not have it and cannot fetch it: .+ \(requested without credentials; docker login saves them\)$/,
    );
    expect((await app.call("GET", app.machines)).body).toEqual([]);
  });

  test("the names of containers say App and Machine, also those of two services with equal Machines", async () => {
    const apps = [await withRuntime("docker"), await withRuntime("docker")];
    for (const app of apps) {
      const long = `a${"-long".repeat(12)}`;
      await app.call("POST", "/apps", { name: long, org_slug: "personal" });
      const { body } = await app.call("POST", `/apps/${long}/machines`, { config: { image } });
      const id = await app.create();
      await app.reaches(id, "started");
      // Its next container is another one, and the one before is kept for its logs.
      for (const [operation, state] of [
        ["stop", "stopped"],
        ["start", "started"],
      ] as const) {
        await app.post(id, operation);
        await app.reaches(id, state);
      }
      const names = async () => (await containersOf(app.dataId())).flatMap(({ Names }) => Names).sort();
      await expect
        .poll(async () => new Set((await names()).map((name) => name.slice(0, -9))))
        .toEqual(new Set([`/machines-${long}-${body.id}`, `/machines-web-${id}`]));
      expect((await names()).length).toBe(3);
    }
  });

  test("a Machine starts although its network was removed after its container was created", async () => {
    const app = await withRuntime("docker");
    const id = await app.create({}, { skip_launch: true });
    await app.reaches(id, "stopped");
    const [network] = await docker.listNetworks({ filters: { label: [`machines-service.data=${app.dataId()}`] } });
    await docker.getNetwork(network?.Id ?? "").remove();
    await app.post(id, "start");
    await app.reaches(id, "started");
  });

  test("what containers cannot do is refused by name", async () => {
    const app = await withRuntime("docker");
    const refused = async (config: object) =>
      (await app.call("POST", app.machines, { config: { image, ...config } })).body.error;
    expect(await refused({ guest: { gpus: 1 } })).toBe("invalid config.guest.gpus, the docker runtime has no GPUs");
    expect(await refused({ init: { kernel_args: ["quiet"] } })).toBe(
      "invalid config.init.kernel_args, the docker runtime shares the kernel of the host",
    );
    const refusedPort = (port: object, protocol = "tcp") =>
      refused({ services: [{ protocol, internal_port: 8080, ports: [{ port: 80 }, port] }] });
    expect(await refusedPort({ port: 53 }, "udp")).toBe(
      "invalid config.services[0].ports[0], the docker runtime forwards no UDP; Machines can use it between them",
    );
    expect(await refusedPort({ port: 443, handlers: ["pg_tls"] })).toBe(
      "invalid config.services[0].ports[1].handlers, the docker runtime does not negotiate TLS for Postgres",
    );
    expect(await refusedPort({ start_port: 1000, end_port: 2000 })).toBe(
      "invalid config.services[0].ports[1].end_port, the docker runtime forwards at most 100 ports of a range",
    );
    expect(await refusedPort({ port: 443, http_options: { h2_backend: true } })).toBe(
      "invalid config.services[0].ports[1].http_options.h2_backend, the docker runtime speaks HTTP/1.1 to Machines",
    );
  });

  test("a check that cannot be asked is critical, and others go on", async () => {
    const app = await withRuntime("docker");
    const odd = { type: "http", port: 8080, path: "/a b", headers: [{ name: "x y", values: ["z"] }], method: "GET IT" };
    const id = await app.create({ checks: { odd, rare: { type: "tcp", port: 8080, interval: "720h" } } });
    await app.reaches(id, "started");
    const statuses = async () =>
      ((await app.get(id)).checks as { readonly name: string; readonly status: string }[])
        .map(({ name, status }) => `${name} ${status}`)
        .sort();
    await expect.poll(statuses).toEqual(["odd critical", "rare passing"]);
  });

  test.runIf(inject("hasOwnEngines"))(
    "a TCP check passes when a program listens, not when the engine is slow",
    async () => {
      const app = await withRuntime("docker");
      const checks = { alive: { type: "tcp", port: 8080, interval: "1s" } };
      const alive = async (id: string) => (await app.get(id)).checks[0];
      const refused = { status: "critical", output: "connection refused" };
      const id = await app.create({ init: { exec: ["sleep", "1000"] }, checks });
      await expect.poll(() => alive(id)).toMatchObject(refused);
      const [container] = await containersOf(app.dataId());
      const port = container?.Ports.find(({ PrivatePort }) => PrivatePort === 8080)?.PublicPort ?? 0;
      const [forwarder = 0, ...others] = forwardersOf(port);
      expect([forwarder > 0, others]).toEqual([true, []]);
      process.kill(forwarder, "SIGSTOP");
      afterThisTest(() => void process.kill(forwarder, "SIGCONT"));
      // Connections stay open now, and nothing reads them.
      await expect.poll(() => abandonedAt(port)).toBeGreaterThan(3);
      expect(await alive(id)).toMatchObject(refused);
      const right = await app.create({ checks });
      await expect.poll(() => alive(right)).toMatchObject({ status: "passing" });
    },
  );

  test("a program that cannot be started ends the Machine, and the exit says why", async () => {
    const app = await withRuntime("docker");
    const exitOf = async (init: object) => {
      const id = await app.create({ init, restart: { policy: "no" } });
      await expect.poll(() => app.exit(id)).toBeDefined();
      const { exit_code, restarting, error } = await app.exit(id);
      return { exit_code, restarting, error };
    };
    expect(await exitOf({ exec: ["no-such-program"] })).toEqual({
      exit_code: 127,
      restarting: false,
      error: "exec no-such-program failed: No such file or directory",
    });
    expect(await exitOf({ exec: ["/tmp"], tty: true })).toMatchObject({
      exit_code: 126,
      error: "exec /tmp failed: Permission denied",
    });
    // The program itself has ended with this code.
    expect(await exitOf({ exec: ["exit", "127"] })).toMatchObject({ exit_code: 127, error: "" });
  });

  test("a secret in a line that the engine keeps in parts is masked as a whole", async () => {
    const app = await withRuntime("docker");
    await app.call("POST", "/apps/web/secrets/LONG", { value: "s3cret ".repeat(7000).trim() });
    for (const tty of [false, true]) {
      const exec = ["/bin/sh", "-c", 'echo "$LONG and more"; exit 1'];
      const id = await app.create({ init: { exec, tty }, restart: { policy: "no" } });
      await app.reaches(id, "stopped");
      expect(await app.exit(id)).toMatchObject({ exit_code: 1, last_lines: ["[secret] and more"] });
    }
  });

  test("Machines find each other by name inside a network, and not in another one", async () => {
    const app = await withRuntime("docker");
    await app.call("POST", "/apps", { name: "other", org_slug: "personal", network: "apart" });
    const ids = [await app.create(), await app.create()];
    const { body: apart } = await app.call("POST", "/apps/other/machines", { config: { image } });
    for (const id of ids) await app.reaches(id, "started");
    await expect
      .poll(async () => (await app.call("GET", `/apps/other/machines/${apart.id}`)).body.state)
      .toBe("started");
    const [id = "", other = ""] = ids;
    expect((await app.exec(id, "get", `http://${other}.vm.web.internal:8080/`)).stdout).toBe(`${other} of web\n`);
    expect((await app.exec(id, "lookup", "web.internal")).stdout.trim().split(" ")).toHaveLength(2);
    const address = (await app.exec(id, "lookup", `${other}.vm.web.internal`)).stdout.trim();
    expect((await app.exec(id, "get", `http://${address}:8080/`)).stdout).toBe(`${other} of web\n`);
    const outside = async (...words: string[]) =>
      (await app.call("POST", `/apps/other/machines/${apart.id}/exec`, { command: words })).body;
    expect(await outside("lookup", "web.internal")).toMatchObject({ exit_code: 1 });
    // Docker before 27 lifts its separation for a moment whenever a network is created, as other tests do meanwhile.
    await expect
      .poll(() => outside("get", `http://${address}:8080/`), { timeout: 60_000 })
      .toMatchObject({ exit_code: 1, stdout: "" });
  });

  test("ports are published on this computer alone, and secrets are in no label", async () => {
    const app = await withRuntime("docker");
    await app.call("POST", "/apps/web/secrets/PASSWORD", { value: "hush-hush" });
    await app.reaches(await app.create({ services: [{ protocol: "tcp", internal_port: 8080 }] }), "started");
    const [container] = await containersOf(app.dataId());
    expect(container?.Ports).toEqual([expect.objectContaining({ IP: "127.0.0.1", PrivatePort: 8080 })]);
    expect(JSON.stringify(container?.Labels)).not.toContain("hush-hush");
  });

  test("each start has a fresh root file system, unless the configuration keeps it", async () => {
    const app = await withRuntime("docker");
    const written = async (config: object): Promise<number> => {
      const id = await app.create({ init: { exec: ["/app"] }, ...config });
      await app.reaches(id, "started");
      const [container] = (await containersOf(app.dataId())).filter(
        ({ Labels }) => Labels["machines-service.machine"] === id,
      );
      const archive = await tarOf([{ name: "mark", mode: 0o644 }]);
      await docker.getContainer(container?.Id ?? "").putArchive(archive, { path: "/" });
      await app.post(id, "stop");
      await app.reaches(id, "stopped");
      await app.post(id, "start");
      await app.reaches(id, "started");
      return (await app.exec(id, "cat", "/mark")).exit_code;
    };
    expect(await written({})).toBe(1);
    expect(await written({ rootfs: { persist: "always" } })).toBe(0);
  });

  test("a container that someone else removes or kills is reported, and the Machine starts again", async () => {
    const app = await withRuntime("docker");
    const id = await app.create({ restart: { policy: "always" } });
    for (let round = 0; round < 2; round++) {
      await app.reaches(id, "started");
      const [container] = await containersOf(app.dataId());
      await docker.getContainer(container?.Id ?? "").remove({ force: true });
      await expect
        .poll(async () =>
          (await containersOf(app.dataId())).some(({ Id, State }) => Id !== container?.Id && State === "running"),
        )
        .toBe(true);
    }
    await app.reaches(id, "started");
    expect(await app.exit(id)).toMatchObject({ exit_code: 137, requested_stop: false });
  });

  test("Machines run on while the service is down, and it continues with them and removes what has no Machine", async () => {
    const data = mkdtempSync(join(tmpdir(), "machines-docker-"));
    afterThisTest(() => rmSync(data, { recursive: true, force: true }));
    const first = await withRuntime("docker", { data });
    const [kept, gone] = [await first.create(), await first.create()];
    await first.reaches(kept, "started");
    await first.reaches(gone, "started");
    const before = (await first.get(kept)).events.length;
    await first.close();
    const containers = await containersOf(first.dataId());
    expect(containers.map(({ State }) => State)).toEqual(["running", "running"]);
    const ofGone = containers.find(({ Labels }) => Labels["machines-service.machine"] === gone);
    await docker.getContainer(ofGone?.Id ?? "").kill();
    // The container of a Machine that the store does not have.
    await docker.createContainer({
      Image: image,
      Labels: { "machines-service.data": first.dataId(), "machines-service.machine": "4d8990000000" },
    });
    const second = await withRuntime("docker", { data });
    await expect.poll(async () => (await second.exit(gone))?.exit_code).toBe(137);
    await second.reaches(gone, "started");
    expect(await second.get(kept)).toMatchObject({ state: "started", events: { length: before } });
    const machinesOf = async () =>
      new Set((await containersOf(first.dataId())).map(({ Labels }) => Labels["machines-service.machine"]));
    await expect.poll(machinesOf).toEqual(new Set([kept, gone]));
  });

  test("two services on one engine do not touch each other's containers", async () => {
    const [one, other] = [await withRuntime("docker"), await withRuntime("docker")];
    const id = await one.create();
    await one.reaches(id, "started");
    await other.reaches(await other.create(), "started");
    await other.call("DELETE", "/apps/web?force=true");
    await expect.poll(async () => (await containersOf(other.dataId())).length).toBe(0);
    expect(await one.state(id)).toBe("started");
    expect(await containersOf(one.dataId())).toHaveLength(1);
  });

  test("the command says which runtime it has, and without an engine why it does not start", async () => {
    const data = mkdtempSync(join(tmpdir(), "machines-docker-"));
    afterThisTest(async () => {
      await command(["stop", "--data", data]);
      rmSync(data, { recursive: true, force: true });
    });
    const arguments_ = ["start", "--detach", "--data", data, "--listen", "127.0.0.1:0", "--runtime", "docker"];
    expect(await command(arguments_, { ...process.env, DOCKER_HOST: `unix://${data}/none.sock` })).toMatchObject({
      code: 1,
      err: `machines-service: no container engine answers at unix://${data}/none.sock (ENOENT). Start Docker, set DOCKER_HOST, or use --runtime simulated.\n`,
    });
    expect((await command(arguments_)).out).toContain(", runtime docker)");
    expect((await command(["status", "--data", data])).out).toContain(", runtime docker)");
  });
});
