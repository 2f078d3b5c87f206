// Machines that are stopped when they are idle, on simulated Machines. On containers: test/runtime/proxy.test.ts.
import { expect, test, vi } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { withReach } from "./reachable.ts";

const minute = 60_000;

/** A service of a Machine that is stopped when it is idle. */
const web = (more: object = {}) => ({
  protocol: "tcp",
  internal_port: 8080,
  ports: [{ port: 80, handlers: ["http"] }],
  autostop: "stop",
  autostart: true,
  ...more,
});

async function withClock() {
  const clock = new ManualClock();
  const app = await withReach({ clock, delays: "none" });
  const { store } = app.service.context;
  return {
    ...app,
    store,
    /** Lets time pass, and what follows from it. */
    async pass(minutes: number): Promise<void> {
      for (let i = 0; i < minutes; i++) {
        clock.advance(minute);
        // Also when it fails.
        await store.unsettled?.catch(() => {});
      }
    },
  };
}

test("min_machines_running counts Machines behind the same public port, not others of the App", async () => {
  const app = await withClock();
  const kept = { min_machines_running: 1 };
  const one = await app.machine({ services: [web(kept)] });
  const worker = await app.machine();
  const other = await app.machine({
    services: [web({ ports: [{ port: 8081, handlers: ["http"] }], autostop: "off", ...kept })],
  });
  await app.pass(3);
  for (const { id } of [one, worker, other]) expect(await app.state(id)).toBe("started");
});

test("of two idle Machines whose minute ends at the same time, the minimum is kept", async () => {
  const app = await withClock();
  const config = { services: [web({ min_machines_running: 1 })] };
  const made = [await app.machine(config), await app.machine(config)];
  await app.pass(5);
  expect((await Promise.all(made.map(({ id }) => app.state(id)))).sort()).toEqual(["started", "stopped"]);
});

test("a Machine without a public port of TCP is stopped when it is idle", async () => {
  const app = await withClock();
  const { id } = await app.machine({ services: [web({ protocol: "udp", ports: [{ port: 53 }] })] });
  await app.pass(3);
  expect(await app.state(id)).toBe("stopped");
});

test("a Machine that the minimum has kept is stopped once another one runs", async () => {
  const app = await withClock();
  const { id } = await app.machine({ services: [web({ min_machines_running: 1 })] });
  await app.pass(3);
  expect(await app.state(id)).toBe("started");
  // Not while it is cordoned, and in any region.
  const other = await app.machine({ services: [web({ autostop: "off" })] }, { region: "fra" });
  await app.call("POST", `${app.machines}/${other.id}/cordon`);
  await app.pass(3);
  expect(await app.state(id)).toBe("started");
  await app.call("POST", `${app.machines}/${other.id}/uncordon`);
  await app.pass(3);
  expect(await app.state(id)).toBe("stopped");
});

test("a Machine whose stop could not be stored is stopped later", async () => {
  const app = await withClock();
  const { id } = await app.machine({ services: [web()] });
  app.store.db.exec("CREATE TRIGGER refuse BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END");
  await app.pass(3);
  app.store.db.exec("DROP TRIGGER refuse");
  expect(await app.state(id)).toBe("started");
  await app.pass(3);
  expect(await app.state(id)).toBe("stopped");
});

test("a Machine that the minimum keeps is looked at once, until another one begins to run", async () => {
  const app = await withClock();
  await app.machine({ services: [web({ min_machines_running: 1 })] });
  await app.pass(3);
  const writeSpy = vi.spyOn(app.store, "write");
  await app.pass(60);
  expect(writeSpy).not.toHaveBeenCalled();
});
