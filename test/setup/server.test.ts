// machines-service setup and doctor on a Debian with a real systemd, Docker and PostgreSQL.
import { afterAll, beforeAll, expect, test } from "vitest";
import { debianServer } from "../../tools/setup/debianServer.mjs";
import { resticProgram } from "../../tools/setup/restic.mjs";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { image } from "../runtime/image.ts";
import { version } from "../../service/version.ts";
import { asVersion } from "../support/otherBuild.ts";
import { Server } from "./server.ts";

/** The version of another package. */
const newer = "0.9.0";

let server: Server;
let isThere = false;
beforeAll(async () => {
  const { root, reason } = await debianServer(process.env);
  if (root === undefined) return leaveOut("setup on a server", reason);
  const { program: restic, reason: noRestic } = await resticProgram(process.env);
  if (restic === undefined) return leaveOut("setup on a server", noRestic);
  server = Server.create(root, restic);
  await server.boot();
  isThere = true;
});
afterAll(async () => {
  await server?.cutPower();
  server?.remove();
});

/** A test of the server, if there can be one. */
const withServer = (name: string, body: () => Promise<void>): void =>
  test(name, async ({ skip }) => {
    skip(!isThere);
    await body();
  });

const unit = "machines-service.service";
const shown = (property: string): Promise<string> => server.shown(property);
const call = (method: string, path: string, body?: object) => server.call(method, path, body);

/** The state of a Machine. */
const stateOf = async (id: string): Promise<string> => (await call("GET", `/v1/apps/web/machines/${id}`)).body.state;

const problems = (): Promise<readonly string[]> => server.problems("backups");

let machine = "";

withServer("a rehearsal says what is left, and changes nothing", async () => {
  const out = await server.output("machines-service", "setup", "--dry-run");
  expect(out).toContain("would: writes /etc/systemd/system/machines-service.service\n");
  expect(out).toContain("would: starts the service\n");
  expect((await server.run("ls", "/etc/machines-service")).code).not.toBe(0);
  expect(await problems()).toEqual(
    expect.arrayContaining(["machines-service is not running (data /root/.machines-service)"]),
  );
});

withServer("an option that start would refuse is refused before anything changes", async () => {
  const { code, err } = await server.run("machines-service", "setup", "--keep-history", "long");
  expect([code, err]).toEqual([1, expect.stringContaining("--keep-history takes a time")]);
  expect((await server.run("ls", "/etc/machines-service")).code).not.toBe(0);
});

withServer("setup takes no service over that a user has started", async () => {
  const data = ["--data", "/var/lib/machines-service"];
  await server.output("machines-service", "start", "--detach", ...data);
  const { code, err } = await server.run("machines-service", "setup");
  expect([code, err]).toEqual([1, expect.stringContaining("stop it first: machines-service stop")]);
  expect((await server.run("ls", "/etc/machines-service")).code).not.toBe(0);
  await server.output("machines-service", "stop", ...data);
  await server.output("rm", "-r", "/var/lib/machines-service");
});

withServer("setup leaves a service that is ready, and doctor finds nothing", async () => {
  await server.configureDocker();
  server.write("root/passphrase", "correct horse battery staple\n");
  const backup = ["--backup", "/mnt/backups", "--backup-passphrase-file", "/root/passphrase"];
  const out = await server.output("machines-service", "setup", ...backup);
  expect(out).toContain("starts the service\nmachines-service is ready at http://127.0.0.1:4280");
  expect([await shown("ActiveState"), await shown("NRestarts"), await shown("Type")]).toEqual([
    "active",
    "0",
    "notify",
  ]);
  expect(await problems()).toEqual([]);
  expect(await server.output("machines-service", "setup")).toContain("nothing was left to do\n");
  expect((await server.output("stat", "--format", "%a", "/etc/machines-service/service.env")).trim()).toBe("600");
});

withServer("the service has few rights of root, and runs containers and databases", async () => {
  const pid = await shown("MainPID");
  const status = await server.output("cat", `/proc/${pid}/status`);
  const bounding = BigInt(`0x${/^CapBnd:\s*(\w+)/m.exec(status)?.[1]}`);
  const sysAdmin = 21n;
  expect([(bounding >> sysAdmin) & 1n, /^NoNewPrivs:\s*(\d)/m.exec(status)?.[1]]).toEqual([0n, "1"]);
  expect((await server.run("nsenter", "-t", pid, "-m", "touch", "/etc/x")).code).not.toBe(0);
  await server.loadImage();
  expect((await call("POST", "/v1/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  const made = await call("POST", "/v1/apps/web/machines", { config: { image } });
  expect([made.status, made.body.error]).toEqual([200, undefined]);
  machine = made.body.id;
  await expect.poll(() => stateOf(machine)).toBe("started");
  const cluster = await call("POST", "/v1/postgres", {
    name: "data",
    region: "ams",
    org_slug: "personal",
    plan: "basic",
  });
  expect([cluster.status < 300, cluster.body.error]).toEqual([true, undefined]);
  const ready = async () => (await call("GET", `/v1/postgres/${cluster.body.data.id}`)).body.data.status;
  await expect.poll(ready).toBe("ready");
});

const containers = (): Promise<string> => server.output("docker", "ps", "--quiet", "--no-trunc");
const servers = (): Promise<string> => server.output("sh", "-c", "pgrep -x -o postgres");

withServer("a killed service is started again, and its Machines and databases never ended", async () => {
  const [pid, running, databases] = [await shown("MainPID"), await containers(), await servers()];
  await server.output("kill", "-KILL", pid);
  await expect.poll(() => shown("NRestarts")).toBe("1");
  await expect.poll(() => shown("ActiveState")).toBe("active");
  expect(await stateOf(machine)).toBe("started");
  expect([await containers(), await servers()]).toEqual([running, databases]);
});

withServer("a service that no longer answers is started again", async () => {
  await server.output(
    "sh",
    "-c",
    `mkdir -p /etc/systemd/system/${unit}.d && printf '[Service]\\nWatchdogSec=3s\\n' > /etc/systemd/system/${unit}.d/watchdog.conf && systemctl daemon-reload && systemctl restart ${unit}`,
  );
  const pid = await shown("MainPID");
  await server.output("kill", "-STOP", pid);
  await expect.poll(() => shown("MainPID")).not.toBe(pid);
  await expect.poll(() => shown("ActiveState")).toBe("active");
  expect(await stateOf(machine)).toBe("started");
  await server.output(
    "sh",
    "-c",
    `rm -r /etc/systemd/system/${unit}.d && systemctl daemon-reload && systemctl restart ${unit}`,
  );
});

withServer("another setup changes what was given and keeps the rest, without a refused connection", async () => {
  await server.output("sh", "-c", "echo '# mine' >> /etc/machines-service/service.env");
  const load = "for i in $(seq 1 200); do curl -s -o /dev/null http://127.0.0.1:4280/healthz || echo failed; done";
  const [failed, out] = await Promise.all([
    server.output("sh", "-c", load),
    server.output("machines-service", "setup", "--keep-history", "30d"),
  ]);
  expect(failed).toBe("");
  expect(out).toMatch(/writes \/etc\/machines-service\/service.env\nrestarts the service\n/);
  const settings = await server.output("cat", "/etc/machines-service/service.env");
  expect(settings.split("\n")).toEqual(
    expect.arrayContaining(["# mine", "MACHINES_SERVICE_KEEP_HISTORY=30d", "MACHINES_RUNTIME=docker"]),
  );
});

withServer("another package and setup replace the version, and nothing that runs notices", async () => {
  const [running, databases] = [await containers(), await servers()];
  server.installPackage(asVersion(newer));
  const check = JSON.parse(await server.output("machines-service", "upgrade", "--check", "--json"));
  expect(check).toMatchObject({ from: version, installed: newer, published: null });
  const found = (about: string) => check.findings.find((one: { readonly about: string }) => one.about === about);
  expect(found("tables").text).toMatch(/^1 change, from schema \d+ to \d+; before, the store is copied/);
  expect(found("requests").text).toContain("systemd holds the ports");
  expect(found("Postgres").text).toBe("Servers, poolers and their connections stay as they are");
  const load = "for i in $(seq 1 200); do curl -s -o /dev/null http://127.0.0.1:4280/healthz || echo failed; done";
  const [failed, out] = await Promise.all([
    server.output("sh", "-c", load),
    server.output("machines-service", "setup"),
  ]);
  expect(failed).toBe("");
  expect(out).toContain(`restarts the service, which has version ${version}, with ${newer}\n`);
  expect(await stateOf(machine)).toBe("started");
  expect([await containers(), await servers()]).toEqual([running, databases]);
  expect(await problems()).toEqual([]);
});

withServer("the version before refuses to start, says how to return, and then has everything from before", async () => {
  const [running, databases] = [await containers(), await servers()];
  server.installPackage();
  const refused = await server.run("machines-service", "setup");
  expect([refused.code, refused.err]).toEqual([
    1,
    expect.stringContaining(`was written by machines-service ${newer} (schema`),
  ]);
  await server.output("systemctl", "stop", unit, "machines-service-api.socket");
  const back =
    "cd /var/lib/machines-service && mkdir newer && mv service.db service.db-* newer && mv service.db.backup-* service.db";
  await server.output("sh", "-c", back);
  await server.output("machines-service", "setup");
  expect(await stateOf(machine)).toBe("started");
  expect([await containers(), await servers()]).toEqual([running, databases]);
  expect(await problems()).toEqual([]);
});

withServer("stop says what ends a unit, and logs shows its journal", async () => {
  const { code, err } = await server.run("machines-service", "stop");
  expect([code, err]).toEqual([1, expect.stringContaining(`systemctl stop ${unit}`)]);
  expect(await server.output("machines-service", "logs", "--lines", "500")).toContain('"msg":"ready"');
});

withServer("after a loss of power everything is there again", async () => {
  await server.cutPower();
  await server.boot();
  await expect.poll(() => shown("ActiveState")).toBe("active");
  await expect.poll(() => stateOf(machine)).toBe("started");
  expect(await problems()).toEqual([]);
});

withServer("a server that lost its data has everything again after a restore", async () => {
  await server.output("machines-service", "backup");
  await server.output("systemctl", "stop", unit, "machines-service-api.socket");
  await server.output(
    "sh",
    "-c",
    "pkill -KILL -x postgres; rm -rf /var/lib/machines-service; docker ps --quiet | xargs docker rm --force",
  );
  const out = await server.output(
    ...["machines-service", "restore", "--from", "/mnt/backups", "--backup-passphrase-file", "/root/passphrase"],
  );
  expect(out).not.toBe("");
  expect(await server.output("machines-service", "setup")).toContain("starts the service\n");
  await expect.poll(() => stateOf(machine)).toBe("started");
  const listed = await call("GET", "/v1/postgres?org_slug=personal");
  await expect
    .poll(async () => (await call("GET", `/v1/postgres/${listed.body.data[0].id}`)).body.data.status)
    .toBe("ready");
  expect(await problems()).toEqual([]);
});
