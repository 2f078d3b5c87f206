// The units of systemd, and what the service says to it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { managerOf, unitOf } from "../../service/local/systemd.ts";
import { folders } from "../../service/setup/setup.ts";
import { needsRoot, unitsOf, type Installed } from "../../service/setup/units.ts";
import { afterThisTest } from "../support/leftovers.ts";

const alone: Installed = {
  command: ["/usr/bin/node", "/usr/lib/node_modules/machines-service/dist/service/main.js", "start"],
  data: "/var/lib/machines-service",
  listen: "127.0.0.1:4280",
  runtime: "docker",
  postgres: "embedded",
  public: [],
  ports: { http: "80", https: "443" },
  backups: undefined,
  drain: 30,
};

const lines = (installed: Installed, unit = "machines-service.service"): string[] =>
  (unitsOf(installed).get(unit) ?? "").split("\n");

test("a service of containers is root with a few of its rights, and one of Pods has a user without any", () => {
  expect(needsRoot(alone)).toBe(true);
  expect(lines(alone)).toEqual(
    expect.arrayContaining([
      "NoNewPrivileges=yes",
      "ProtectSystem=strict",
      "After=network-online.target time-sync.target docker.service machines-service-api.socket",
    ]),
  );
  expect(lines(alone).find((line) => line.startsWith("CapabilityBoundingSet="))).not.toMatch(
    /SYS_ADMIN|SYS_PTRACE|SYS_MODULE/,
  );
  expect(lines(alone).some((line) => line.startsWith("User="))).toBe(false);
  const ofPods = { ...alone, runtime: "kubernetes", postgres: "simulated" };
  expect(lines(ofPods)).toEqual(
    expect.arrayContaining(["User=machines-service", "CapabilityBoundingSet=", "ProtectHome=yes"]),
  );
});

test("the time for a stop contains the time for requests", () => {
  expect(lines(alone)).toContain("TimeoutStopSec=90");
});

test("systemd opens each address of the proxy and of the API", () => {
  expect([...unitsOf(alone).keys()]).toEqual(["machines-service-api.socket", "machines-service.service"]);
  const open = { ...alone, public: ["0.0.0.0", "::"], listen: "localhost:4280" };
  expect(lines(open, "machines-service-api.socket")).toContain("ListenStream=127.0.0.1:4280");
  const https = lines(open, "machines-service-https.socket");
  expect(https).toEqual(
    expect.arrayContaining(["ListenStream=0.0.0.0:443", "ListenStream=[::]:443", "FileDescriptorName=https"]),
  );
  expect(lines(open)).toContain(
    "Requires=machines-service-api.socket machines-service-http.socket machines-service-https.socket",
  );
});

test("the service may write its data and its backups, and waits for their disks", () => {
  expect(lines(alone)).toContain("ReadWritePaths=/var/lib/machines-service /run");
  const backedUp = lines({ ...alone, backups: "/mnt/my backups" });
  expect(backedUp).toContain('ReadWritePaths=/var/lib/machines-service "/mnt/my backups" /run');
  expect(backedUp).toContain('RequiresMountsFor=/var/lib/machines-service "/mnt/my backups"');
});

test("words with a space, a percent or a dollar sign reach the program as they are", () => {
  const odd = { ...alone, command: ["/opt/no de/bin/node", "a%b$c"] };
  expect(lines(odd)).toContain(`ExecStart="/opt/no de/bin/node" "a%%b$$c"`);
});

test("the service says that it is ready, alive and about to end, and its programs cannot", async () => {
  const env: NodeJS.ProcessEnv = { NOTIFY_SOCKET: "/run/notify", WATCHDOG_USEC: "3000", WATCHDOG_PID: "1", OTHER: "x" };
  const said: string[] = [];
  const manager = managerOf(env, async (state, socket) => void said.push(`${state} ${socket}`));
  expect(env).toEqual({ OTHER: "x" });
  manager?.ready();
  await expect.poll(() => said).toContain("WATCHDOG=1 /run/notify");
  manager?.stopping();
  expect([said[0], said.at(-1)]).toEqual(["READY=1 /run/notify", "STOPPING=1 /run/notify"]);
});

test("a process that systemd did not start is no unit", () => {
  expect(managerOf({})).toBeUndefined();
  expect(unitOf({ SYSTEMD_EXEC_PID: "1" })).toBeUndefined();
});

test("data of another user are given to the user of the service, unless that is root", async () => {
  const data = mkdtempSync(join(tmpdir(), "machines-owner-"));
  afterThisTest(() => rmSync(data, { recursive: true }));
  const titles = async (more: Partial<Installed>) =>
    (await folders({ ...alone, ...more, data })).map(({ title }) => title);
  expect(await titles({ runtime: "kubernetes", postgres: "simulated" })).toEqual([
    `gives ${data} to the user machines-service`,
  ]);
  expect(await titles({})).toEqual([]);
});
