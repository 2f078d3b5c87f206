// Machines have to keep running after their start (F51, F52): the real provider and the real service in simulated time.
import { describe, expect, test } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { failures, refresh, up, type Report } from "../support/modelEngine.ts";
import { emptyStack, type Declared, type Kept, type Stack } from "../support/modelStack.ts";
import { withSimulation, type Simulation } from "../support/simulation.ts";
import { send } from "../support/around.ts";

const image = "registry.example.com/web:1.0.0";
const ending = { MACHINES_SIMULATE: "exit:3" };
const restartTwice = { policy: "on-failure", maxRetries: 2 };

/** The outcome of a run. */
interface Ran {
  readonly error: string | undefined;
  readonly changed: readonly string[];
  readonly seconds: number;
}

/** A program with an App and some Machines. */
class Program {
  readonly stack: Stack = emptyStack();
  readonly #simulation: Simulation;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  up(machines: Readonly<Record<string, Values>>): Promise<Ran> {
    const program: Declared[] = [
      { type: "App", name: "shop", inputs: { name: "shop" } },
      ...Object.entries(machines).map(([name, inputs]): Declared => ({
        type: "Machine",
        name,
        inputs: { app: { $of: "shop", get: "id" }, name, ...inputs },
      })),
    ];
    return this.#run((process) => up(this.stack, program, { bound: (type) => process.bound(type), parallel: 8 }));
  }

  refresh(): Promise<Ran> {
    return this.#run((process) => refresh(this.stack, process));
  }

  kept(name: string): Kept {
    const found = this.stack.resources.find((one) => one.name === name);
    if (found === undefined) throw new Error(`${name} is not in the stack`);
    return found;
  }

  async #run(work: (process: ReturnType<Simulation["start"]>) => Promise<Report>): Promise<Ran> {
    const { time } = this.#simulation;
    const since = time.now();
    const process = this.#simulation.start();
    const report = await process.run(() => work(process));
    if (report === "died") throw new Error("the provider died");
    const [wrong] = failures(report);
    return {
      error: wrong && (wrong.error instanceof Error ? wrong.error.message : JSON.stringify(wrong.error)),
      changed: report.filter(({ verb }) => verb !== "same" && verb !== "read").map(({ name }) => name),
      seconds: (time.now() - since) / 1000,
    };
  }
}

const inSimulation = (work: (program: Program, simulation: Simulation) => Promise<void>): Promise<void> =>
  withSimulation("keeps running", (simulation) => work(new Program(simulation), simulation));

describe("F51: a program that ends is a failure", () => {
  test("a program that ends at creation is a failure, although it was started again", () =>
    inSimulation(async (program) => {
      const { error, seconds } = await program.up({ web: { config: { image, env: ending, restart: restartTwice } } });
      expect(error).toMatch(/Machine shop\/\w+ is stopped and not started: its main process exited \(code 3\)/);
      expect(seconds).toBeLessThan(3);
    }));

  test("the message about a program that ended has what it wrote at its end, without terminal controls", () =>
    inSimulation(async (program) => {
      const cmd = ["sh", "-c", "echo one; echo two; echo three; echo 'cannot read \u001b[31mconfig'; exit 3"];
      const { error } = await program.up({ web: { config: { image, init: { cmd } } } });
      expect(error).toMatch(
        /exited \(code 3\).*\nIts program wrote last:\n {2}one\n {2}two\n {2}three\n {2}cannot read /s,
      );
      expect(error).toMatch(/cannot read \\u001b\[31mconfig$/);
    }));

  test("at creation, although it is always started again", () =>
    inSimulation(async (program) => {
      const { error } = await program.up({ web: { config: { image, env: ending, restart: { policy: "always" } } } });
      expect(error).toMatch(/its main process exited \(code 3\)/);
    }));

  test("a program that ends with code 0 is a failure", () =>
    inSimulation(async (program) => {
      const { error } = await program.up({ web: { config: { image, env: { MACHINES_SIMULATE: "exit:0" } } } });
      expect(error).toMatch(/its main process exited \(code 0\)/);
    }));

  test("at an update, and then the previous configuration runs again if that is wanted", () =>
    inSimulation(async (program) => {
      expect(await program.up({ web: { config: { image } } })).toMatchObject({ error: undefined });
      const next = { config: { image, env: ending }, onUpdateFailure: "rollback" };
      expect((await program.up({ web: next })).error).toMatch(
        /failed, and the previous configuration runs again.*exited \(code 3\)/,
      );
      const kept = { config: { image, env: ending } };
      expect((await program.up({ web: kept })).error).toMatch(/Machine shop\/\w+ is stopped.*exited \(code 3\)/);
    }));

  test("a program that ends at a start, or at a restart by a trigger, is a failure", () =>
    inSimulation(async (program) => {
      const config = { image, env: ending };
      expect((await program.up({ web: { config, state: "stopped" } })).error).toBeUndefined();
      expect((await program.up({ web: { config, state: "started" } })).error).toMatch(/exited \(code 3\)/);
      const unwatched = { config, minHealthySeconds: 0 };
      expect((await program.up({ other: unwatched })).error).toBeUndefined();
      const restarted = { config, restart: { triggers: { again: "1" } } };
      expect((await program.up({ other: restarted })).error).toMatch(/exited \(code 3\)/);
    }));

  test("with checks that pass before it ends, if it has to keep running afterwards", () =>
    inSimulation(async (program) => {
      const checks = { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s" } };
      const config = { image, env: ending, checks };
      expect((await program.up({ web: { config, minHealthySeconds: 5 } })).error).toMatch(/exited \(code 3\)/);
    }));
});

describe("the healthy time", () => {
  test("the healthy time is three seconds, or what the program says", () =>
    inSimulation(async (program) => {
      const first = await program.up({ web: { config: { image } } });
      expect(first.seconds).toBeGreaterThanOrEqual(3);
      expect(first.seconds).toBeLessThan(4);
      const second = await program.up({ web: { config: { image: `${image}-2` }, minHealthySeconds: 20 } });
      expect(second.seconds).toBeGreaterThanOrEqual(20);
      const third = await program.up({ web: { config: { image: `${image}-3` }, minHealthySeconds: 0 } });
      expect(third.seconds).toBeLessThan(1);
    }));

  test("the healthy time of a hundred equal Machines adds at most four seconds in total", () =>
    inSimulation(async (program) => {
      const machines = Array.from({ length: 100 }, (_, i) => [`web-${i}`, { config: { image } }] as const);
      const { error, seconds } = await program.up(Object.fromEntries(machines));
      expect(error).toBeUndefined();
      // Without any healthy time, 13 rounds of eight Machines that take 0.4 s to start.
      expect(seconds).toBeLessThan(13 * 0.4 + 4);
    }));

  test("the healthy time of another image is spent again, and its failure is found", () =>
    inSimulation(async (program) => {
      const { error } = await program.up({
        good: { config: { image } },
        bad: { config: { image: `${image}-2`, env: ending } },
      });
      expect(error).toMatch(/exited \(code 3\)/);
    }));

  test("the healthy time is not proved by a Machine that had to keep running for less", () =>
    inSimulation(async (program) => {
      const short = { config: { image }, minHealthySeconds: 1 };
      const long = { config: { image }, minHealthySeconds: 20 };
      expect((await program.up({ short, long })).seconds).toBeGreaterThanOrEqual(20);
    }));

  test("the healthy time is not proved by a Machine that someone stops meanwhile", () =>
    inSimulation(async (program, { service, time }) => {
      let isStopped = false;
      time.beforeStep = () => {
        const { store } = service.service.context;
        const first = store.get<{ id: string }>("SELECT id FROM machines WHERE name = 'first' AND state = 'started'");
        if (isStopped || first === undefined) return;
        isStopped = true;
        void send(service, "POST", `/v1/apps/shop/machines/${first.id}/stop`, {});
      };
      const second = { config: { image }, region: { $of: "first", get: "placedRegion" } };
      const { error, seconds } = await program.up({ first: { config: { image } }, second });
      expect([isStopped, error]).toEqual([true, undefined]);
      expect(seconds).toBeGreaterThanOrEqual(3);
    }));

  test("the healthy time does not apply to Machines that end by themselves", () =>
    inSimulation(async (program) => {
      const config = { image, autoDestroy: true, env: { MACHINES_SIMULATE: "exit:0" } };
      const { error, seconds } = await program.up({ job: { config } });
      expect(error).toBeUndefined();
      expect(seconds).toBeLessThan(3);
    }));

  test("a healthy time that does not fit into the time of the operation fails with the reason", () =>
    inSimulation(async (program) => {
      const { error } = await program.up({ web: { config: { image }, minHealthySeconds: 3600 } });
      expect(error).toMatch(/has to keep running for 3600 s \(minHealthySeconds\), and less is left of the 10m/);
    }));

  test("the healthy time ends early, and well, for a Machine that someone stops", () =>
    inSimulation(async (program, simulation) => {
      const { service, time } = simulation;
      let isStopped = false;
      time.beforeStep = () => {
        if (isStopped) return;
        const machine = service.service.context.store.get<{ id: string }>(
          "SELECT id FROM machines WHERE state = 'started'",
        );
        if (machine === undefined) return;
        isStopped = true;
        void send(service, "POST", `/v1/apps/shop/machines/${machine.id}/stop`, {});
      };
      const { error } = await program.up({ web: { config: { image }, minHealthySeconds: 60 } });
      expect(isStopped).toBe(true);
      expect(error).toBeUndefined();
    }));
});

describe("F52: a failed Machine is always shown as changed", () => {
  test("a refresh shows it, and every up repairs it in place and fails again", () =>
    inSimulation(async (program, simulation) => {
      const machine = { config: { image, env: ending, restart: restartTwice }, minHealthySeconds: 0 };
      expect((await program.up({ web: machine })).error).toBeUndefined();
      await simulation.wait(60_000);
      const { id } = program.kept("web");
      await program.refresh();
      const { state } = program.kept("web");
      expect(state).toMatchObject({
        state: "failed",
        failure: "its main process exited (code 3) and was restarted 2 times",
      });
      for (let round = 0; round < 2; round++) {
        const again = await program.up({ web: { ...machine, minHealthySeconds: 3 } });
        expect(again.error).toMatch(/is stopped and not started: its main process exited \(code 3\)/);
        expect(program.kept("web").id).toBe(id);
      }
      const good = await program.up({ web: { config: { image } } });
      expect(good.error).toBeUndefined();
      expect(program.kept("web").id).toBe(id);
      expect(program.kept("web").state).not.toHaveProperty("failure");
    }));

  test("one that is restarted again and again is shown, too", () =>
    inSimulation(async (program, simulation) => {
      const machine = { config: { image, env: ending, restart: { policy: "always" } }, minHealthySeconds: 0 };
      await program.up({ web: machine });
      await simulation.wait(2000);
      for (let round = 0; round < 5; round++) {
        await simulation.wait(700);
        await program.refresh();
        expect(program.kept("web").state["failure"]).toMatch(/^its main process exited \(code 3\)/);
      }
    }));

  test.each([0, 400, 1500, 2900])(
    "one that was restarted once is not shown after an update has watched it, also if the service's clock is %d ms ahead",
    (ahead) =>
      inSimulation(async (program, simulation) => {
        const { service } = simulation;
        const machine = { config: { image, restart: { policy: "always" } } };
        await program.up({ web: machine });
        service.service.context.clock.advance(ahead);
        const path = `/v1/apps/${program.kept("web").id.replace("/", "/machines/")}`;
        await send(service, "POST", `${path}/signal`, { signal: "SIGKILL" });
        let isShown = false;
        for (let round = 0; !isShown && round < 80; round++) {
          await simulation.wait(100);
          await program.refresh();
          const { state, failure } = program.kept("web").state;
          isShown = state === "started" && failure !== undefined;
        }
        expect(isShown).toBe(true);
        expect((await program.up({ web: machine })).changed).toEqual(["web"]);
        await program.refresh();
        expect(program.kept("web").state).not.toHaveProperty("failure");
      }),
  );

  test("a failed Machine that someone stopped stays stopped", () =>
    inSimulation(async (program, simulation) => {
      await program.up({ web: { config: { image } } });
      const path = `/v1/apps/${program.kept("web").id.replace("/", "/machines/")}`;
      await send(simulation.service, "POST", `${path}/stop`, {});
      await simulation.wait(1000);
      await program.refresh();
      expect(program.kept("web").state).toMatchObject({ state: "stopped" });
      expect(program.kept("web").state).not.toHaveProperty("failure");
      expect(await program.up({ web: { config: { image } } })).toMatchObject({ error: undefined, changed: [] });
    }));
});
